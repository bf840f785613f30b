/* The validator: what a document says, and what is wrong with it. */
#include "policy/document.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/digest.h"
#include "t/scratch.h"
#include "t/tap.h"

static struct abx_document *parse_as(const char *name, bool json, const char *text, struct abx_err *err)
{
	char ci[] = "CI_TOKEN=t0ken", again[] = "CI_AGAIN=t0ken", other[] = "OTHER_TOKEN=0ther", bad[] = "BAD_TOKEN=a b";
	char *env[] = { ci, again, other, bad, NULL };
	struct abx_settings settings = { .host = NULL };
	const struct abx_document_source source = { .name = name, .json_only = json, .settings = &settings, .env = env };
	struct abx_document *document = abx_document_parse(&source, text, strlen(text), err);

	abx_settings_release(&settings);
	return document;
}

static struct abx_document *parse(const char *text, struct abx_err *err)
{
	return parse_as("p.yaml", false, text, err);
}

#define UPLOAD "version: 1\nendpoints:\n  upload:\n    "
#define SHELL  "version: 1\nendpoints:\n  shell:\n    "

static const struct {
	const char *text, *message;
} errors[] = {
	/* the document itself */
	{ "[a]", "p.yaml:1: must be a map, not a list" },
	{ "just text", "p.yaml:1: must be a map, not text" },
	{ "version: 2", "p.yaml:1: version: must be 1: this server knows no other version" },
	{ "version: '1'", "p.yaml:1: version: must be a number, not text" },
	{ "version: 1.0", "p.yaml:1: version: must be a whole number" },
	{ "\nversoin: 1", "p.yaml:2: unknown key 'versoin': did you mean 'version'?" },
	{ "endpoint: {}", "p.yaml:1: unknown key 'endpoint': did you mean 'endpoints'?" },
	{ "qwertz: {}", "p.yaml:1: unknown key 'qwertz'" },
	{ "preset: read_only", "p.yaml:1: preset: unknown preset 'read_only': did you mean 'read-only'?" },
	{ "preset: [full]", "p.yaml:1: preset: must be text, not a list" },
	{ "preset:", "p.yaml:1: preset: must be text, not nothing" },
	{ "base_dir: home", "p.yaml:1: base_dir: 'home' is not an absolute path" },
	{ "base_dir: '/a\"b'", "p.yaml:1: base_dir: a path cannot hold a quote, backslash or line break" },
	{ "base_dir: ''", "p.yaml:1: base_dir: must not be empty" },
	{ "base_dir: 5", "p.yaml:1: base_dir: must be text, not a number: put it in quotes" },
	/* groups */
	{ "groups: [dev_tool]", "p.yaml:1: groups: unknown group 'dev_tool': did you mean 'dev_tools'?" },
	{ "groups: {process: 1}", "p.yaml:1: groups.process: must be true or false, not a number" },
	{ "groups: {process: 'no'}", "p.yaml:1: groups.process: must be true or false, not text" },
	{ "groups:\n  core: false", "p.yaml:2: groups: core is always on" },
	{ "groups: dev_tools", "p.yaml:1: groups: must be a map, not text" },
	{ "groups: [[dev_tools]]", "p.yaml:1: groups: must be text, not a list" },
	/* endpoints */
	{ "endpoints:\n  shel:\n    enabled: true", "p.yaml:2: endpoints.shel: unknown endpoint 'shel': did you mean 'shell'?" },
	{ "endpoints:\n  filesstat: {}", "p.yaml:2: endpoints.filesstat: unknown endpoint 'filesstat': did you mean 'files_stat'?" },
	{ "endpoints: {upload: true}", "p.yaml:1: endpoints.upload: must be a map, not true or false" },
	{ "endpoints: [upload]", "p.yaml:1: endpoints: must be a map, not a list" },
	{ "endpoints: {health: {enabled: false}}", "p.yaml:1: endpoints.health: core is always on: 'health' cannot be turned off" },
	{ SHELL "enbled: true", "p.yaml:4: endpoints.shell: unknown key 'enbled': did you mean 'enabled'?" },
	{ SHELL "enabled: 1", "p.yaml:4: endpoints.shell.enabled: must be true or false, not a number" },
	{ SHELL "scopes: shell:run", "p.yaml:4: endpoints.shell.scopes: must be a list, not text" },
	{ SHELL "scopes: [1]", "p.yaml:4: endpoints.shell.scopes: must be text, not a number: put it in quotes" },
	{ SHELL "scopes: ['']", "p.yaml:4: endpoints.shell.scopes: holds an empty text" },
	{ SHELL "commands: ['git *']", "p.yaml:4: endpoints.shell.commands: must be a map, not a list" },
	{ SHELL "commands: {alow: []}", "p.yaml:4: endpoints.shell.commands: unknown key 'alow': did you mean 'allow'?" },
	{ SHELL "paths: {allow: []}", "p.yaml:4: endpoints.shell.paths.allow: names no path: to turn the endpoint off, write enabled: false" },
	{ SHELL "paths: {allow: [home]}", "p.yaml:4: endpoints.shell.paths.allow: 'home' is not an absolute path: begin with '/' or '**/'" },
	{ SHELL "paths: {deny: ['~/x']}", "p.yaml:4: endpoints.shell.paths.deny: '~/x' is not an absolute path, and '~' is nobody's home here: begin with '/' or '**/'" },
	{ SHELL "paths: {deny: ['a/../b']}", "p.yaml:4: endpoints.shell.paths.deny: 'a/../b' holds a component '.' or '..'" },
	{ SHELL "paths: {deny: ['/a/../b']}", "p.yaml:4: endpoints.shell.paths.deny: '/a/../b' holds a component '.' or '..'" },
	{ SHELL "limits: {rate: 10}", "p.yaml:4: endpoints.shell.limits.rate: must be text, not a number: put it in quotes" },
	{ SHELL "limits: {rate: 10/m}", "p.yaml:4: endpoints.shell.limits.rate: '10/m' is not a rate: write a number, '/', and s, min, h or d, as in 10/min" },
	{ SHELL "limits: {rate: 0/s}", "p.yaml:4: endpoints.shell.limits.rate: '0/s' is not a rate: write a number, '/', and s, min, h or d, as in 10/min" },
	{ SHELL "limits: {rate: -1/s}", "p.yaml:4: endpoints.shell.limits.rate: '-1/s' is not a rate: write a number, '/', and s, min, h or d, as in 10/min" },
	{ SHELL "limits: {rate: 1000001/d}", "p.yaml:4: endpoints.shell.limits.rate: '1000001/d': no more than 1000000 calls can be counted" },
	{ SHELL "limits: {max_concurrent: 0}", "p.yaml:4: endpoints.shell.limits.max_concurrent: must be 1 or more" },
	{ SHELL "limits: {timeout_seconds: -5}", "p.yaml:4: endpoints.shell.limits.timeout_seconds: must be 1 or more" },
	{ SHELL "limits: {timeout_seconds: 1.5}", "p.yaml:4: endpoints.shell.limits.timeout_seconds: must be a whole number" },
	{ SHELL "limits: {timeout: 5}", "p.yaml:4: endpoints.shell.limits: unknown key 'timeout'" },
	{ SHELL "confine: {filesystem: 1}", "p.yaml:4: endpoints.shell.confine.filesystem: must be true or false, not a number" },
	{ SHELL "confine: {net: false}", "p.yaml:4: endpoints.shell.confine: unknown key 'net'" },
	{ UPLOAD "allow_extensions: [py]", "p.yaml:4: endpoints.upload.allow_extensions: 'py' does not begin with a dot: did you mean '.py'?" },
	{ UPLOAD "allow_extensions: ['.']", "p.yaml:4: endpoints.upload.allow_extensions: '.' is not the extension of a file name" },
	{ UPLOAD "deny_extensions: ['.a/b']", "p.yaml:4: endpoints.upload.deny_extensions: '.a/b' is not the extension of a file name" },
	{ UPLOAD "overwrite: 'no'", "p.yaml:4: endpoints.upload.overwrite: must be true or false, not text" },
	{ "endpoints: {code_run: {languages: [pyhton]}}", "p.yaml:1: endpoints.code_run.languages: unknown language 'pyhton': did you mean 'python'?" },
	{ "endpoints: {browser_navigate: {url_allow: [example.org]}}",
	  "p.yaml:1: endpoints.browser_navigate.url_allow: 'example.org' is not a URL glob: write scheme://host/path" },
	{ "endpoints: {browser_navigate: {url_allow: ['ftp://x/']}}",
	  "p.yaml:1: endpoints.browser_navigate.url_allow: 'ftp://x/' can match neither http:// nor https://" },
	/* what nothing enforces yet */
	{ "endpoints:\n  pty_connect: {limits: {rate: 5/s}}", "p.yaml:2: endpoints.pty_connect.limits.rate: is not implemented yet for this endpoint" },
	/* identities */
	{ "identities: {}", "p.yaml:1: identities: must be a list, not a map" },
	{ "identities: [ci]", "p.yaml:1: identities[0]: must be a map, not text" },
	{ "identities:\n- {token_env: CI_TOKEN}", "p.yaml:2: identities[0]: the key 'id' is missing" },
	{ "identities:\n- {id: ci}", "p.yaml:2: identities[0]: give either token_env or token_sha256" },
	{ "identities:\n- {id: ci, token_env: CI_TOKEN, token_sha256: '00'}", "p.yaml:2: identities[0]: give either token_env or token_sha256" },
	{ "identities:\n- {id: ci, token: x}", "p.yaml:2: identities[0]: unknown key 'token'" },
	{ "identities:\n- {id: ci, token_sha256: 'x'}", "p.yaml:2: identities[0]: token_sha256 must be 64 hex digits" },
	{ "identities:\n- {id: ci, token_env: NO_SUCH}", "p.yaml:2: identities[0]: token_env: the variable NO_SUCH is not set" },
	{ "identities:\n- {id: ci, token_env: BAD_TOKEN}",
	  "p.yaml:2: identities[0]: token_env: BAD_TOKEN: a token cannot hold a comma, blank or control character" },
	{ "identities:\n- {id: ci, token_env: 'A B'}", "p.yaml:2: identities[0]: token_env: 'A B' is not the name of a variable" },
	{ "identities:\n- {id: 'a b', token_env: CI_TOKEN}",
	  "p.yaml:2: identities[0]: 'a b' is not an id: letters, digits and . _ @ : + - are allowed" },
	{ "identities:\n- {id: anonymous, token_env: CI_TOKEN}", "p.yaml:2: identities[0]: 'anonymous' is everybody where there is no token" },
	{ "identities:\n- {id: ci, token_env: CI_TOKEN}\n- {id: ci, token_env: OTHER_TOKEN}", "p.yaml:3: identities[1]: the id 'ci' is repeated" },
	{ "identities:\n- {id: ci, token_env: CI_TOKEN}\n- {id: re, token_env: CI_AGAIN}", "p.yaml:3: identities[1]: has the same token as 'ci'" },
	/* audit and cage */
	{ "audit: /var/log/x", "p.yaml:1: audit: must be a map, not text" },
	{ "audit: {all: true}", "p.yaml:1: audit: the key 'file' is missing" },
	{ "audit: {file: x}", "p.yaml:1: audit.file: 'x' is not an absolute path" },
	{ "audit: {flie: /x}", "p.yaml:1: audit: unknown key 'flie': did you mean 'file'?" },
	{ "cage: {fileops: true}", "p.yaml:1: cage: unknown group 'fileops': did you mean 'file_ops'?" },
	{ "cage: {file_ops: 0}", "p.yaml:1: cage.file_ops: must be true or false, not a number" },
	/* YAML that is more than a policy needs */
	{ "base_dir: &b /x", "p.yaml:1: base_dir: an anchor (&) is not supported" },
	{ "endpoints: {shell: *b}", "p.yaml:1: endpoints.shell: an alias (*) is not supported" },
	{ "preset: !!str full", "p.yaml:1: preset: a tag (!) is not supported" },
	/* templates */
	{ "server: {verison: 1}", "p.yaml:1: server: unknown key 'verison': did you mean 'version'?" },
	{ "name: x\nserver:\n  endpoints:\n    shel: {}", "p.yaml:4: server.endpoints.shel: unknown endpoint 'shel': did you mean 'shell'?" },
	{ "server: {version: 1}\ngroups: [dev_tools]",
	  "p.yaml:2: the key 'groups' stands outside of the section 'server', where the policy of a template is" },
	{ "server: [a]", "p.yaml:1: server: must be a map, not a list" },
};

static void test_errors(void)
{
	for (size_t i = 0; i < ABX_N(errors); i++) {
		struct abx_err err = ABX_ERR_INIT;
		abx_auto_document struct abx_document *document = parse(errors[i].text, &err);

		ok(document == NULL, "error %zu: refused", i);
		is_int(err.kind, ABX_E_VALUE, "error %zu: kind", i);
		is_str(err.message, errors[i].message, "error %zu: message", i);
	}
}

static const struct abx_entry *entry(const struct abx_document *document, const char *id)
{
	return &document->entries[abx_endpoint_index(abx_endpoint_find(id))];
}

/* The contract's example, as far as it is implemented. */
static const char example[] =
	"version: 1\n"
	"preset: default            # default | read-only\n"
	"base_dir: /home/user\n"
	"groups: [dev_tools]\n"
	"endpoints:\n"
	"  shell:\n"
	"    enabled: true\n"
	"    scopes: [shell:run]\n"
	"    commands: {allow: [\"git *\", \"ls*\"], deny: [\"rm *\"]}\n"
	"    paths: {allow: [\"/home/user\", \"/tmp/build\"], deny: [\"**/.ssh/**\"]}\n"
	"    limits: {timeout_seconds: 60, max_output_bytes: 1048576, rate: 10/min, max_concurrent: 4}\n"
	"  upload: {allow_extensions: [.py, .txt], deny_extensions: [.so], overwrite: false, limits: {max_bytes: 1048576}}\n"
	"  files_list: {limits: {max_depth: 5}}\n"
	"  files_archive: {limits: {max_files: 100, max_bytes: 1048576}}\n"
	"  files_watch: {limits: {max_duration_seconds: 60}}\n"
	"  code_run: {languages: [python]}\n"
	"  env_get: {allow_vars: [\"LANG\", \"LC_*\"], deny_vars: [\"AWS_*\"]}\n"
	"identities:\n"
	"  - {id: ci, token_env: CI_TOKEN, scopes: [\"shell:run\", \"files:*\"]}\n"
	"  - {id: reader, token_sha256: \"2BB80D537B1DA3E38BD30361AA855686BDE0EACD7162FEF6A25FE97BF527A25B\", scopes: []}\n"
	"audit: {file: /var/log/abx/audit.jsonl}\n"
	"cage: {file_ops: false, core: true}\n";

static void test_example(void)
{
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_document struct abx_document *d = parse(example, &err);
	unsigned char hash[ABX_TOKEN_HASH];

	ok(d != NULL, "the example is taken: %s", err.message);
	if (!d)
		return;
	is_str(d->preset, "default", "preset");
	is_str(d->base_dir, "/home/user", "base_dir");
	is_int(d->groups[ABX_GROUP_DEV_TOOLS], 1, "a group");
	is_int(d->groups[ABX_GROUP_PROCESS], -1, "a group that is not mentioned");
	ok(d->warnings == NULL, "no warning");

	const struct abx_entry *e = entry(d, "shell");
	is_int(e->line, 6, "the line of an endpoint");
	is_int(e->values.given, ABX_KEY_ENABLED | ABX_KEY_SCOPES | ABX_KEY_COMMANDS | ABX_KEY_PATHS | ABX_KEY_TIMEOUT | ABX_KEY_MAX_OUTPUT |
	       ABX_KEY_RATE | ABX_KEY_CONCURRENT, "its keys");
	ok(e->enabled, "enabled");
	is_str(e->values.scopes[0], "shell:run", "scopes");
	is_str(e->values.lists[ABX_ALLOW_COMMANDS][1], "ls*", "commands.allow");
	is_str(e->values.lists[ABX_DENY_COMMANDS][0], "rm *", "commands.deny");
	is_str(e->values.lists[ABX_ALLOW_PATHS][1], "/tmp/build", "paths.allow");
	is_str(e->values.lists[ABX_DENY_PATHS][0], "**/.ssh/**", "paths.deny");
	is_int(e->values.limits.timeout_seconds, 60, "timeout_seconds");
	is_int(e->values.limits.max_output_bytes, 1048576, "max_output_bytes");
	is_int(e->values.rate.count, 10, "rate");
	is_int(e->values.rate.window_ms, 60000, "its window");
	is_int(e->values.max_concurrent, 4, "max_concurrent");
	e = entry(d, "upload");
	is_str(e->values.lists[ABX_ALLOW_EXTENSIONS][0], ".py", "allow_extensions");
	is_str(e->values.lists[ABX_DENY_EXTENSIONS][0], ".so", "deny_extensions");
	ok(e->values.keep_existing, "overwrite: false");
	is_int(e->values.limits.max_bytes, 1048576, "max_bytes");
	is_int(entry(d, "files_list")->values.limits.max_depth, 5, "max_depth");
	is_int(entry(d, "files_archive")->values.limits.max_files, 100, "max_files");
	is_int(entry(d, "files_watch")->values.limits.max_duration_seconds, 60, "max_duration_seconds");
	is_str(entry(d, "code_run")->values.lists[ABX_ALLOW_LANGUAGES][0], "python", "languages");
	is_str(entry(d, "env_get")->values.lists[ABX_ALLOW_VARIABLES][1], "LC_*", "allow_vars");
	is_str(entry(d, "env_get")->values.lists[ABX_DENY_VARIABLES][0], "AWS_*", "deny_vars");
	is_int(entry(d, "download")->line, 0, "an endpoint that is not mentioned");

	is_int(d->n_identities, 2, "identities");
	is_str(d->identities[0].id, "ci", "id");
	is_str(d->identities[0].scopes[1], "files:*", "scopes");
	abx_digest("t0ken", 5, hash);
	is_mem(d->identities[0].token_hash, ABX_TOKEN_HASH, hash, ABX_TOKEN_HASH, "token_env");
	abx_digest("0ther", 5, hash);
	ok(d->identities[1].has_token, "token_sha256");
	is_int(d->identities[1].token_hash[0], 0x2b, "its first byte");
	is_int(d->identities[1].token_hash[31], 0x5b, "its last byte");
	is_str(d->identities[1].scopes[0], NULL, "no scopes");
	is_str(d->secrets[0], "CI_TOKEN", "the variable is a secret");
	is_str(d->secrets[1], NULL, "and no other");
	is_str(d->audit_file, "/var/log/abx/audit.jsonl", "audit.file");
	ok(!d->audit_all, "audit.all");
	ok(d->cage_off[ABX_GROUP_FILE_OPS], "cage: false");
	ok(!d->cage_off[ABX_GROUP_CORE], "cage: true");
}

/* Every way to write the same policy has the same revision: sha256 of {"endpoints":{"shell":{"enabled":false}},"version":1}. */
static void test_revision(void)
{
	static const char revision[] = "9828d4483b5ed94f";
	static const struct {
		const char *name, *text;
		bool json;
	} same[] = {
		{ "p.yaml", "version: 1\nendpoints: {shell: {enabled: false}}", false },
		{ "p.yaml", "endpoints:\n  shell:\n    enabled: no\nversion: 1\n", false },
		{ "p.yaml", "{\"version\": 1, \"endpoints\": {\"shell\": {\"enabled\": false}}}", false },
		{ "p.yaml", "{version: 1, endpoints: {shell: {enabled: false}}}", false },
		{ "p.yaml", "\xef\xbb\xbfversion: 1\nendpoints: {shell: {enabled: false}}", false },
		{ "ABX_SERVER_POLICY", "{\"endpoints\":{\"shell\":{\"enabled\":false}},\"version\":1}", true },
		{ "x.json", " \n{\"endpoints\":{\"shell\":{\"enabled\":false}},\"version\":1}", false },
		{ "template.yaml", "name: x\nversion: 7\nanchored: &a [1]\nother: *a\nserver:\n  version: 1\n  endpoints: {shell: {enabled: false}}", false },
		{ "/a/template.yml", "server: {version: 1, endpoints: {shell: {enabled: false}}}", false },
		{ "p.yaml", "name: x\nserver: {version: 1, endpoints: {shell: {enabled: false}}}", false },
	};
	static const struct {
		const char *name, *text;
	} empty[] = {
		{ "p.yaml", "" }, { "p.yaml", "# only a comment\n" }, { "p.yaml", "{}" }, { "template.yaml", "name: x\ncapabilities: [shell]" },
		{ "p.yaml", "server: {}" }, { "p.yaml", "server:" },
	};
	struct abx_err err = ABX_ERR_INIT;

	for (size_t i = 0; i < ABX_N(same); i++) {
		abx_auto_document struct abx_document *document = parse_as(same[i].name, same[i].json, same[i].text, &err);

		is_str(document ? document->revision : err.message, revision, "the same policy, spelling %zu", i);
		if (document)
			ok(!entry(document, "shell")->enabled && entry(document, "shell")->line > 0, "it says the same");
	}
	for (size_t i = 0; i < ABX_N(empty); i++) {
		abx_auto_document struct abx_document *document = parse_as(empty[i].name, false, empty[i].text, &err);

		is_str(document ? document->revision : err.message, "44136fa355b3678a", "an empty policy, spelling %zu", i);
	}
	/* Made with Python: hashlib.sha256(json.dumps(…, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()). */
	abx_auto_document struct abx_document *document = parse("endpoints: {upload: {allow_extensions: [\".\303\251\", \".\\t\"]}}", &err);
	is_str(document ? document->revision : err.message, "0aebd81ebee13473", "characters are taken as they are");
}

/* JSON that is no YAML is told as JSON where nothing else can be meant, else as YAML. */
static void test_languages(void)
{
	struct abx_err err = ABX_ERR_INIT;

	ok(parse_as("p.json", false, "{version: 1}", &err) == NULL, "a .json file is JSON");
	ok(strncmp(err.message, "p.json: ", 8) == 0, "message: %s", err.message);
	ok(parse_as("ABX_SERVER_POLICY", true, "{version: 1}", &err) == NULL, "the variable is JSON");
	ok(strncmp(err.message, "ABX_SERVER_POLICY: ", 19) == 0, "message: %s", err.message);
	ok(parse_as("ABX_SERVER_POLICY", true, "{\"version\": 1,\n\"x\": 2}", &err) == NULL, "an unknown key in JSON");
	is_str(err.message, "ABX_SERVER_POLICY:2: unknown key 'x'", "with its line");
}

static const struct {
	const char *text, *warning;
} warnings[] = {
	{ "endpoints:\n  upload: {commands: {allow: [x]}}", "p.yaml:2: endpoints.upload.commands: can have no effect on this endpoint" },
	{ "endpoints:\n  shell: {overwrite: false}", "p.yaml:2: endpoints.shell.overwrite: can have no effect on this endpoint" },
	{ "endpoints:\n  health: {scopes: [x]}", "p.yaml:2: endpoints.health.scopes: can have no effect on this endpoint" },
	{ "endpoints:\n  capabilities: {paths: {allow: [/x]}}", "p.yaml:2: endpoints.capabilities.paths: can have no effect on this endpoint" },
	{ "endpoints:\n  upload: {limits: {timeout_seconds: 5}}", "p.yaml:2: endpoints.upload.limits.timeout_seconds: can have no effect on this endpoint" },
	{ "endpoints:\n  browser_navigate: {block_private_networks: true}",
	  "p.yaml:2: endpoints.browser_navigate.block_private_networks: has no effect yet: the endpoint is not implemented and refuses every call" },
	{ "endpoints:\n  'GET /hello': {enabled: false}", "p.yaml:2: endpoints.'GET /hello': no route of your own is registered under this id" },
};

static void test_warnings(void)
{
	for (size_t i = 0; i < ABX_N(warnings); i++) {
		struct abx_err err = ABX_ERR_INIT;
		abx_auto_document struct abx_document *document = parse(warnings[i].text, &err);

		is_str(document && document->warnings ? document->warnings[0] : err.message, warnings[i].warning, "warning %zu", i);
	}
}

static void test_denied(void)
{
	static const char *const want[] = { "**/*.pem", "**/a/b", "/a", "**", "**/x/**", "**/**c**" };
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_document struct abx_document *d = parse("endpoints: {download: {paths: {deny: ['*.pem', a/b, /a, '**', '**/x/**', '**c**']}}}", &err);

	for (size_t i = 0; i < ABX_N(want); i++)
		is_str(d ? entry(d, "download")->values.lists[ABX_DENY_PATHS][i] : err.message, want[i], "what is denied is denied anywhere");
}

static void test_custom(void)
{
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_document struct abx_document *d =
		parse("endpoints: {'GET /a b': {enabled: false, scopes: [x], limits: {rate: 5/s}}, 'POST /c': {paths: {allow: [/x]}}}", &err);

	is_int(d->n_custom, 2, "rules for routes of one's own");
	is_str(d->custom[0].id, "GET /a b", "id");
	ok(!d->custom[0].enabled && (d->custom[0].values.given & ABX_KEY_ENABLED), "enabled");
	is_str(d->custom[0].values.scopes[0], "x", "scopes");
	is_int(d->custom[0].values.rate.window_ms, 1000, "rate");
	is_str(d->warnings[1], "p.yaml:1: endpoints.'POST /c'.paths: can have no effect on a route of your own", "a key that such routes do not have");
}

static void test_files(void)
{
	struct abx_settings settings = { .host = NULL };
	struct abx_document *document = NULL;
	struct abx_err err = ABX_ERR_INIT;
	char *env[] = { NULL };
	char path[PATH_MAX + 32], big[1024];
	FILE *out;

	is_int(abx_document_load(&settings, env, &document, &err), 0, "no document is named");
	ok(document == NULL, "so there is none");
	snprintf(path, sizeof(path), "%s/none.yaml", scratch);
	settings.policy = path;
	is_int(abx_document_load(&settings, env, &document, &err), -1, "a file that is missing");
	ok(err.kind == ABX_E_VALUE && strstr(err.message, "none.yaml: cannot be read: No such file"), "message: %s", err.message);
	settings.policy = scratch;
	is_int(abx_document_load(&settings, env, &document, &err), -1, "a directory");
	snprintf(path, sizeof(path), "%s/big.yaml", scratch);
	out = fopen(path, "w");
	memset(big, '#', sizeof(big));
	for (size_t i = 0; out && i < ABX_NODE_SIZE / sizeof(big) + 1; i++)
		fwrite(big, 1, sizeof(big), out);
	if (out)
		fclose(out);
	settings.policy = path;
	is_int(abx_document_load(&settings, env, &document, &err), -1, "a file that is too large");
	ok(strstr(err.message, "is larger than") != NULL, "message: %s", err.message);
	snprintf(path, sizeof(path), "%s/p.yaml", scratch);
	out = fopen(path, "w");
	if (out) {
		fputs("preset: locked\n", out);
		fclose(out);
	}
	is_int(abx_document_load(&settings, env, &document, &err), 0, "a file");
	is_str(document->preset, "locked", "is read");
	is_str(document->name, path, "under its name");
	abx_document_free(document);
	char inline_text[] = "{\"preset\": \"full\"}";
	settings.policy = inline_text;
	is_int(abx_document_load(&settings, env, &document, &err), 0, "the document itself");
	is_str(document->preset, "full", "is read");
	abx_document_free(document);
}

int main(void)
{
	scratch_enter();
	test_errors();
	test_example();
	test_revision();
	test_languages();
	test_warnings();
	test_denied();
	test_custom();
	test_files();
	return done_testing();
}
