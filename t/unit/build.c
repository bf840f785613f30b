/* From a document to the effective policy: limits, values, identities, warnings, and the way through the published form. */
#include "policy/document.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/digest.h"
#include "t/tap.h"

/* Variables of the environment, one string for all: "A=1 B=2". */
static struct abx_policy *build(const char *environment, const char *text, struct abx_err *err)
{
	const char *const name = "p.yaml";
	abx_auto_free char *copy = strdup(environment);
	char *env[8] = { NULL }, *save = NULL;
	struct abx_settings settings;
	struct abx_policy *policy = NULL;
	size_t n = 0;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		env[n++] = word;
	if (abx_settings_load(env, &settings, err) < 0)
		return NULL;
	const struct abx_document_source source = { .name = name, .settings = &settings, .env = env };
	abx_auto_document struct abx_document *document = abx_document_parse(&source, text, strlen(text), err);
	if (document)
		policy = abx_policy_build(&settings, document, err);
	abx_settings_release(&settings);
	return policy;
}

static const struct abx_rule *rule(const struct abx_policy *policy, const char *id)
{
	return abx_policy_rule(policy, abx_endpoint_find(id));
}

/* ---- limits: what a policy gives, what holds, whether it warns */

static const struct {
	const char *id, *limit;
	long long given, holds;
	bool warns;
} limits[] = {
	{ "shell", "timeout_seconds", 60, 60, false },
	{ "shell", "timeout_seconds", 300, 300, false },
	{ "shell", "timeout_seconds", 600, 600, false }, /* 300 is the default, not a maximum */
	{ "shell", "max_output_bytes", 1024, 1024, false },
	{ "shell", "max_output_bytes", 67108864, 67108864, false },
	{ "shell", "max_output_bytes", 67108865, 67108864, true },
	{ "code_run", "timeout_seconds", 30, 30, false },
	{ "code_run", "timeout_seconds", 300, 300, false },
	{ "code_run", "timeout_seconds", 301, 300, true },
	{ "git_diff", "timeout_seconds", 10, 10, false },
	{ "git_diff", "timeout_seconds", 31, 30, true },
	{ "git_diff", "max_output_bytes", 1048577, 1048576, true },
	{ "packages", "timeout_seconds", 11, 10, true },
	{ "upload", "max_bytes", 1, 1, false },
	{ "upload", "max_bytes", 50000, 50000, false },
	{ "upload", "max_bytes", 50001, 50000, true }, /* ABX_MAX_UPLOAD_SIZE of this test */
	{ "download", "max_bytes", 104857600, 50000, true },
	{ "files_archive", "max_bytes", 104857601, 104857600, true },
	{ "files_archive", "max_files", 100, 100, false },
	{ "files_archive", "max_files", 10001, 10000, true },
	{ "files_list", "max_depth", 1, 1, false },
	{ "files_list", "max_depth", 5, 5, false }, /* 3 is the default: a policy may set 1 to 32 */
	{ "files_list", "max_depth", 32, 32, false },
	{ "files_list", "max_depth", 33, 32, true },
	{ "files_search", "max_depth", 32, 32, false },
	{ "files_search", "timeout_seconds", 5, 5, false },
	{ "files_search", "timeout_seconds", 60, 10, true },
	{ "files_watch", "max_duration_seconds", 60, 60, false },
	{ "files_watch", "max_duration_seconds", 100000, 100000, false },
};

static long long limit_of(const struct abx_rule *r, const char *name)
{
	const struct {
		const char *name;
		int64_t value;
	} fields[] = {
		{ "timeout_seconds", r->limits.timeout_seconds }, { "max_output_bytes", r->limits.max_output_bytes },
		{ "max_bytes", r->limits.max_bytes },		  { "max_files", r->limits.max_files },
		{ "max_depth", r->limits.max_depth },		  { "max_duration_seconds", r->limits.max_duration_seconds },
	};

	for (size_t i = 0; i < ABX_N(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			return fields[i].value;
	return -1;
}

static void test_limits(void)
{
	for (size_t i = 0; i < ABX_N(limits); i++) {
		struct abx_err err = ABX_ERR_INIT;
		abx_auto_free char *text = NULL;
		struct abx_policy *policy;
		bool opt_in = abx_groups[abx_endpoint_find(limits[i].id)->group].opt_in;

		if (asprintf(&text, "groups: %s\nendpoints:\n  %s:\n    limits:\n      %s: %lld\n", opt_in ? "[dev_tools]" : "[]", limits[i].id,
			     limits[i].limit, limits[i].given) < 0)
			text = NULL;
		policy = build("ABX_MAX_UPLOAD_SIZE=50000", text, &err);
		ok(policy != NULL, "%s %s %lld %s", limits[i].id, limits[i].limit, limits[i].given, err.message);
		if (!policy)
			continue;
		is_int(limit_of(rule(policy, limits[i].id), limits[i].limit), limits[i].holds, "what holds");
		is_int(policy->warnings[0] != NULL, limits[i].warns, "a warning");
		if (policy->warnings[0])
			ok(strncmp(policy->warnings[0], "p.yaml:5: endpoints.", 20) == 0, "names file, line and key: %s", policy->warnings[0]);
		abx_policy_free(policy);
	}
}

static void test_timeouts(void)
{
	static const struct {
		const char *id;
		long long most, with_policy;
	} cases[] = {
		{ "shell", 0, 20 }, { "code_run", 300, 20 }, { "git_status", 30, 20 }, { "files_search", 10, 10 }, { "upload", 0, 0 },
	};
	struct abx_err err = ABX_ERR_INIT;
	struct abx_policy *plain = build("A=1", "{}", &err);
	struct abx_policy *own = build("A=1",
				       "groups: [dev_tools]\n"
				       "endpoints: {shell: {limits: {timeout_seconds: 20}}, code_run: {limits: {timeout_seconds: 20}}, "
				       "git_status: {limits: {timeout_seconds: 20}}}",
				       &err);

	for (size_t i = 0; i < ABX_N(cases); i++) {
		is_int(rule(plain, cases[i].id)->max_timeout, cases[i].most, "%s: what a caller may ask for", cases[i].id);
		is_int(rule(own, cases[i].id)->max_timeout, cases[i].with_policy, "%s: with a policy", cases[i].id);
	}
	abx_policy_free(plain);
	abx_policy_free(own);
}

/* ---- everything that a document can say, built, published, loaded */

static const char everything[] =
	"version: 1\n"
	"preset: full\n"
	"base_dir: /srv/x\n"
	"endpoints:\n"
	"  shell:\n"
	"    enabled: false\n"
	"    scopes: [a, b:c]\n"
	"    commands: {allow: ['git *'], deny: ['rm *', 'x']}\n"
	"    paths: {allow: [/srv/x, /tmp/y], deny: ['**/.ssh/**']}\n"
	"    limits: {rate: 10/h, max_concurrent: 3, timeout_seconds: 7}\n"
	"  upload: {allow_extensions: ['', .py], deny_extensions: [], overwrite: false}\n"
	"  env_get: {allow_vars: [A], deny_vars: [B]}\n"
	"  code_run: {languages: [bash]}\n"
	"  agents_create: {scopes: []}\n"
	"  'GET /x y': {enabled: false, scopes: [s], limits: {rate: 1/d}}\n"
	"identities:\n"
	"  - {id: ci, token_env: CI, scopes: ['x:*']}\n"
	"  - {id: re, token_sha256: '0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fff'}\n"
	"audit: {file: /a/b, all: true}\n"
	"cage: {process: false}\n";

static void check_everything(const struct abx_policy *p, const char *name)
{
	const struct abx_rule *r = rule(p, "shell");

	ok(p->configured, "%s: configured", name);
	is_str(p->preset, "full", "%s: preset", name);
	is_str(p->base_dir, "/srv/x", "%s: base_dir beats the setting", name);
	ok(!r->enabled, "%s: enabled", name);
	is_str(r->rule, "policy:endpoints.shell", "%s: rule", name);
	is_str(r->values_rule, "policy:endpoints.shell", "%s: rule of values", name);
	is_str(r->scopes[1], "b:c", "%s: scopes", name);
	is_str(abx_rule_scopes_name(r), "policy:endpoints.shell", "%s: rule of scopes", name);
	is_str(r->lists[ABX_ALLOW_COMMANDS][0], "git *", "%s: commands.allow", name);
	is_str(r->lists[ABX_DENY_COMMANDS][1], "x", "%s: commands.deny", name);
	is_str(r->lists[ABX_ALLOW_PATHS][1], "/tmp/y", "%s: paths.allow", name);
	is_str(r->lists[ABX_DENY_PATHS][0], "**/.ssh/**", "%s: paths.deny", name);
	is_int(r->rate.count, 10, "%s: rate", name);
	is_int(r->rate.window_ms, 3600000, "%s: window", name);
	is_int(r->max_concurrent, 3, "%s: max_concurrent", name);
	is_int(r->limits.timeout_seconds, 7, "%s: timeout", name);
	is_int(r->max_timeout, 7, "%s: the most that may be asked for", name);
	ok(r->given & ABX_KEY_PATHS && !(r->given & ABX_KEY_EXTENSIONS), "%s: which keys are given", name);
	r = rule(p, "upload");
	is_str(r->rule, "preset:full", "%s: rule of another endpoint", name);
	is_str(r->lists[ABX_ALLOW_EXTENSIONS][0], "", "%s: an empty extension", name);
	is_str(r->lists[ABX_ALLOW_EXTENSIONS][1], ".py", "%s: and another", name);
	ok(r->lists[ABX_DENY_EXTENSIONS] && !r->lists[ABX_DENY_EXTENSIONS][0], "%s: an empty list is not the same as none", name);
	ok(!r->lists[ABX_ALLOW_PATHS], "%s: none", name);
	ok(r->keep_existing, "%s: overwrite", name);
	ok(!r->rate.count && !r->max_concurrent, "%s: no rate", name);
	is_str(rule(p, "env_get")->lists[ABX_DENY_VARIABLES][0], "B", "%s: deny_vars", name);
	is_str(rule(p, "code_run")->lists[ABX_ALLOW_LANGUAGES][0], "bash", "%s: languages", name);
	is_str(rule(p, "agents_create")->scopes[0], NULL, "%s: scopes taken away", name);
	is_str(rule(p, "agents_list")->scopes[0], "agents:use", "%s: scopes of the endpoint", name);
	is_str(abx_rule_scopes_name(rule(p, "agents_list")), "default:scopes", "%s: their rule", name);
	is_int(p->n_identities, 3, "%s: identities", name);
	is_str(p->identities[0].id, "ci", "%s: the first", name);
	is_str(p->identities[0].scopes[0], "x:*", "%s: its scopes", name);
	is_int(p->identities[1].token_hash[31], 0xff, "%s: the second's hash", name);
	is_str(p->identities[1].scopes[0], NULL, "%s: its scopes", name);
	is_str(p->identities[2].id, "admin", "%s: the token of the environment", name);
	is_str(p->identities[2].scopes[0], "*", "%s: may do all", name);
	ok(!p->local, "%s: not in local mode", name);
	is_str(p->secrets[0], "CI", "%s: secrets", name);
	is_str(p->audit_file, "/a/b", "%s: audit.file", name);
	ok(p->audit_all, "%s: audit.all", name);
	ok(p->cage_off[ABX_GROUP_PROCESS] && !p->cage_off[ABX_GROUP_CORE], "%s: cage", name);
	ok(p->warnings[0] && strstr(p->warnings[0], "GET /x y"), "%s: warnings", name);
}

static void test_everything(void)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_policy *built = build("CI=s3cret ABX_SERVER_TOKEN=t0p ABX_SERVER_BASE_DIR=/other", everything, &err), *loaded;
	int fd;
	char text[262144];
	ssize_t n;

	ok(built != NULL, "built: %s", err.message);
	if (!built)
		return;
	check_everything(built, "built");
	built->rules[abx_endpoint_index(abx_endpoint_find("shell"))].slots = calloc(3, sizeof(int32_t));
	for (int i = 0; i < 3; i++)
		built->rules[abx_endpoint_index(abx_endpoint_find("shell"))].slots[i] = 10 * i;
	fd = abx_policy_publish(built, &err);
	n = pread(fd, text, sizeof(text), 0);
	ok(n > 0 && !memmem(text, (size_t)n, "s3cret", 6) && !memmem(text, (size_t)n, "t0p", 3), "no token is published");
	loaded = abx_policy_load(fd, &err);
	ok(loaded != NULL, "loaded: %s", err.message);
	if (loaded) {
		check_everything(loaded, "loaded");
		is_int(rule(loaded, "shell")->slots[2], 20, "slots of the counters");
		ok(rule(loaded, "upload")->slots == NULL, "no slots without a rate");
	}
	close(fd);
	abx_policy_free(built);
	abx_policy_free(loaded);
}

static const struct {
	const char *env, *text, *message;
} errors[] = {
	{ "ABX_SERVER_TOKEN=x T=y", "identities: [{id: admin, token_env: T}]",
	  "The identity 'admin' is that of ABX_SERVER_TOKEN: the policy needs another id" },
	{ "ABX_SERVER_TOKEN=x T=x", "identities: [{id: ci, token_env: T}]", "The identity 'ci' has the same token as ABX_SERVER_TOKEN" },
};

static void test_identities(void)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_policy *policy;

	for (size_t i = 0; i < ABX_N(errors); i++) {
		ok(build(errors[i].env, errors[i].text, &err) == NULL, "identities %zu: refused", i);
		is_str(err.message, errors[i].message, "identities %zu: message", i);
		is_int(err.kind, ABX_E_VALUE, "identities %zu: kind", i);
	}
	policy = build("A=1", "version: 1", &err);
	ok(policy->local, "no identity: local mode, also with a policy");
	is_str(policy->identities[0].id, "anonymous", "everyone is anonymous");
	abx_policy_free(policy);
	policy = build("T=x", "identities: [{id: admin, token_env: T}]", &err);
	ok(policy && !policy->local, "an identity ends it, and may be called admin without a token of the environment");
	is_int(policy->n_identities, 1, "nobody else is there");
	abx_policy_free(policy);
}

static void test_authenticate(void)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_policy *p = build("A=first B=second", "identities: [{id: a, token_env: A}, {id: b, token_env: B}]", &err);
	static const struct {
		const char *bearer, *token, *second_token, *id;
		enum abx_error kind;
	} cases[] = {
		{ "Bearer first", NULL, NULL, "a", 0 },
		{ "bearer second", NULL, NULL, "b", 0 },
		{ NULL, "first", NULL, "a", 0 },
		{ NULL, "first", "second", NULL, ABX_E_AMBIGUOUS_CREDENTIALS },
		{ "Bearer first", "second", NULL, "a", 0 },
		{ "Bearer second", "first", NULL, "b", 0 },
		{ "Bearer nobody", "second", NULL, "b", 0 },
		{ "Bearer first", "gateway", NULL, "a", 0 },
		{ "Basic first", NULL, NULL, NULL, ABX_E_UNAUTHORIZED },
		{ "Bearer nobody", "neither", NULL, NULL, ABX_E_UNAUTHORIZED },
		{ "Bearer ", NULL, NULL, NULL, ABX_E_UNAUTHORIZED },
		{ "Bearer firs", NULL, NULL, NULL, ABX_E_UNAUTHORIZED },
		{ "Bearer first2", NULL, NULL, NULL, ABX_E_UNAUTHORIZED },
		{ NULL, NULL, NULL, NULL, ABX_E_UNAUTHORIZED },
	};

	for (size_t i = 0; i < ABX_N(cases); i++) {
		struct abx_credentials creds = { .n_access_tokens = 0 };
		struct abx_err why = ABX_ERR_INIT;
		const struct abx_identity *identity;

		if (cases[i].bearer)
			creds.authorizations[creds.n_authorizations++] = cases[i].bearer;
		if (cases[i].token)
			creds.access_tokens[creds.n_access_tokens++] = cases[i].token;
		if (cases[i].second_token)
			creds.access_tokens[creds.n_access_tokens++] = cases[i].second_token;
		identity = abx_policy_authenticate(p, &creds, &why);
		is_str(identity ? identity->id : NULL, cases[i].id, "credentials %zu: who", i);
		is_int(why.kind, cases[i].kind, "credentials %zu: the error", i);
	}
	abx_policy_free(p);
}

static const struct {
	const char *text, *warning;
} warnings[] = {
	{ "endpoints:\n  shell: {enabled: false, commands: {deny: ['rm *']}}",
	  "p.yaml:2: endpoints.shell: has no effect, because rule 'policy:endpoints.shell' turns the endpoint off" },
	{ "groups: {process: false}\nendpoints:\n  shell: {limits: {rate: 5/s}}",
	  "p.yaml:3: endpoints.shell: has no effect, because rule 'policy:groups.process' turns the endpoint off" },
	{ "endpoints:\n  code_run: {languages: [python]}",
	  "p.yaml:2: endpoints.code_run: has no effect, because rule 'default:opt-in:dev_tools' turns the endpoint off" },
	{ "base_dir: /srv/x\nendpoints:\n  upload: {paths: {deny: [/etc/**]}}",
	  "p.yaml:3: endpoints.upload.paths.deny: '/etc/**' lies outside of the allowed directories" },
	{ "endpoints:\n  upload: {paths: {allow: [/srv/a], deny: [/srv/ab/*]}}",
	  "p.yaml:2: endpoints.upload.paths.deny: '/srv/ab/*' lies outside of the allowed directories" },
	{ "endpoints:\n  shell: {commands: {allow: []}}", "p.yaml:2: endpoints.shell.commands.allow: is empty, so that nothing is allowed" },
	{ "endpoints:\n  shell: {commands: {allow: ['a', 'b *'], deny: ['b *']}}",
	  "p.yaml:2: endpoints.shell.commands.allow: 'b *' is denied as well, which counts" },
	{ "endpoints:\n  upload: {allow_extensions: [.py], deny_extensions: [.py]}",
	  "p.yaml:2: endpoints.upload.allow_extensions: '.py' is denied as well, which counts" },
	/* no warning */
	{ "endpoints:\n  shell: {enabled: false}", NULL },
	{ "endpoints:\n  upload: {paths: {deny: ['**/.ssh/**']}}", NULL },
	{ "base_dir: /srv/x\nendpoints:\n  upload: {paths: {deny: [/srv/x/y/**]}}", NULL },
	{ "base_dir: /srv/x\nendpoints:\n  upload: {paths: {deny: [/srv/*/y]}}", NULL },
	{ "endpoints:\n  upload: {paths: {allow: [/srv/*/a], deny: [/srv/b/**]}}", NULL },
};

static void test_warnings(void)
{
	for (size_t i = 0; i < ABX_N(warnings); i++) {
		struct abx_err err = ABX_ERR_INIT;
		struct abx_policy *policy = build("A=1", warnings[i].text, &err);

		is_str(policy ? policy->warnings[0] : err.message, warnings[i].warning, "warning %zu", i);
		abx_policy_free(policy);
	}
}

static void test_runtimes(void)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_policy *policy = build("A=1", "groups: [dev_tools]", &err);

	is_int(abx_policy_warn_runtimes(policy, "/nonexistent:/none", &err), 0, "no program is there");
	is_str(policy->warnings[0], "code_run needs the program 'python3', which is not installed", "is told");
	abx_policy_free(policy);
	policy = build("A=1", "{}", &err);
	abx_policy_warn_runtimes(policy, "/nonexistent", &err);
	is_str(policy->warnings[0], NULL, "what is off needs nothing");
	abx_policy_free(policy);
}

static void test_rate_text(void)
{
	static const struct {
		struct abx_rate rate;
		const char *text;
	} cases[] = { { { 10, 60000 }, "10/min" }, { { 1, 1000 }, "1/s" }, { { 5, 3600000 }, "5/h" }, { { 1000000, 86400000 }, "1000000/d" } };
	char text[ABX_RATE_TEXT];

	for (size_t i = 0; i < ABX_N(cases); i++) {
		abx_rate_text(&cases[i].rate, text);
		is_str(text, cases[i].text, "%s", cases[i].text);
	}
}

int main(void)
{
	test_limits();
	test_timeouts();
	test_everything();
	test_identities();
	test_authenticate();
	test_warnings();
	test_runtimes();
	test_rate_text();
	return done_testing();
}
