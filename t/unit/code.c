/* The table of a template's own code, and the frames that its worker speaks in. */
#include <stdlib.h>
#include <string.h>

#include "common/strbuf.h"
#include "common/worker.h"
#include "policy/code.h"
#include "policy/document.h"
#include "policy/policy.h"
#include "t/tap.h"

#define COMMAND(name, more) "{\"name\":\"" name "\",\"description\":\"\",\"args\":[],\"hidden\":false,\"scopes\":[]" more "}"
#define ROUTE(id, method, path, group) \
	"{\"id\":\"" id "\",\"method\":\"" method "\",\"path\":\"" path "\",\"group\":\"" group "\",\"summary\":\"\",\"streaming\":true,\"auth_required\":false,\"scopes\":[\"a\",\"b\"]}"

static struct abx_code *parse(const char *groups, const char *commands, const char *routes, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;

	abx_strbuf_addf(&text, "{\"version\":1,\"name\":\"c.py\",\"groups\":{%s},\"commands\":[%s],\"routes\":[%s]}", groups, commands, routes);
	return abx_code_parse(text.buf, text.len, err);
}

static const struct {
	const char *groups, *commands, *routes, *message;
} wrong[] = {
	{ "\"core\":false", "", "", "c.py: group 'core': core is always on: it cannot be disabled" },
	{ "\"cores\":true", "", "", "c.py: group 'cores': is unknown, or neither true nor false" },
	{ "\"browser\":1", "", "", "c.py: group 'browser': is unknown, or neither true nor false" },
	{ "", COMMAND("a", "") "," COMMAND("a", ""), "", "c.py: command 'a': is defined twice" },
	{ "", COMMAND("a/b", ""), "", "c.py: command 'a/b': its name is empty, or holds '/' or a control character" },
	{ "", COMMAND("", ""), "", "c.py: command '': its name is empty, or holds '/' or a control character" },
	{ "", COMMAND("a\\u0001", ""), "", "c.py: command 'a\x01': its name is empty, or holds '/' or a control character" },
	{ "", COMMAND("a", ",\"timeout\":0"), "", "c.py: command 'a': its timeout must be a positive number" },
	{ "", COMMAND("a", ",\"timeout\":\"1\""), "", "c.py: command 'a': its timeout must be a positive number" },
	{ "", "{\"name\":\"a\"}", "", "c.py: command 'a': a member is missing or of a wrong type" },
	{ "", "7", "", "c.py: command '': its name is empty, or holds '/' or a control character" },
	{ "", "{\"name\":\"a\",\"description\":\"\",\"hidden\":false,\"args\":[{}],\"scopes\":[]}", "",
	  "c.py: command 'a': a member of an argument is missing or of a wrong type" },
	{ "", "{\"name\":\"a\",\"description\":\"\",\"hidden\":false,\"args\":[],\"scopes\":[\"\"]}", "", "c.py: command 'a': its scopes must be texts" },
	{ "", "", "{\"id\":\"x\"}", "c.py: a route 'x': a member is missing or of a wrong type" },
	{ "", "", ROUTE("", "GET", "/a", "core"), "c.py: route '': its name must have 1 to 160 bytes and no control character" },
	{ "", "", ROUTE("x", "PUT", "/a", "core"), "c.py: route 'x': its method must be GET, POST or DELETE" },
	{ "", "", ROUTE("x", "GET", "/a", "no"), "c.py: route 'x': its group is unknown" },
	{ "", "", ROUTE("health", "GET", "/a", "core"), "c.py: route 'health': an endpoint of the server has this id" },
	{ "", "", ROUTE("x", "GET", "/a", "core") "," ROUTE("x", "GET", "/b", "core"), "c.py: route 'x': another route has this id" },
	{ "", "", ROUTE("x", "GET", "/a/{b}", "core") "," ROUTE("y", "GET", "/a/{c}", "core"), "c.py: route 'y': GET /a/{c} is 'x' already" },
	{ "", "", ROUTE("x", "GET", "/process/{id}", "core"), "c.py: route 'x': GET /process/{id} is 'process_get' already" },
	{ "", "", ROUTE("x", "GET", "/health", "core"), "c.py: route 'x': GET /health is 'health' already" },
};

static const struct {
	const char *path, *why; /* NULL: nothing is wrong with it */
} paths[] = {
	{ "/", NULL },
	{ "/a", NULL },
	{ "/a/{b}/{c_1}", NULL },
	{ "/-._~!$&'()*+,;=:@9", NULL },
	{ "/.hidden", NULL },
	{ "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}", NULL },
	{ "", "it does not begin with '/'" },
	{ "a", "it does not begin with '/'" },
	{ "/a/", "it ends with '/': leave that out, callers may send it all the same" },
	{ "/a//b", "it holds an empty segment" },
	{ "//", "it holds an empty segment" },
	{ "/a/./b", "it holds a segment '.' or '..'" },
	{ "/..", "it holds a segment '.' or '..'" },
	{ "/a b", "it holds a character that cannot stand in a URL's path" },
	{ "/a?b", "it holds a character that cannot stand in a URL's path" },
	{ "/a#b", "it holds a character that cannot stand in a URL's path" },
	{ "/a%20b", "it holds a character that cannot stand in a URL's path" },
	{ "/\\u00e9", "it holds a character that cannot stand in a URL's path" },
	{ "/a\\\"b", "it holds a character that cannot stand in a URL's path" },
	{ "/a\\\\b", "it holds a character that cannot stand in a URL's path" },
	{ "/a[b]", "it holds a character that cannot stand in a URL's path" },
	{ "/b{a}", "it holds a character that cannot stand in a URL's path" },
	{ "/{a}b", "a parameter is one whole segment, {name}" },
	{ "/{}", "a parameter is one whole segment, {name}" },
	{ "/{1a}", "a parameter is one whole segment, {name}" },
	{ "/{a", "a parameter is one whole segment, {name}" },
	{ "/{a-b}", "the name of a parameter has letters, digits and '_' only" },
	{ "/{a}/{a}", "a parameter's name occurs twice" },
	{ "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", "it has too many segments or parameters" },
	{ "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "it has too many segments or parameters" },
	{ "/__lighttpd_error", "it is the server's own" },
};

static void test_wrong(void)
{
	for (size_t i = 0; i < ABX_N(wrong); i++) {
		struct abx_err err = ABX_ERR_INIT;

		ok(!parse(wrong[i].groups, wrong[i].commands, wrong[i].routes, &err), "refused: %s", wrong[i].message);
		is_str(err.message, wrong[i].message, "why");
		is_int(err.kind, ABX_E_VALUE, "kind");
	}
	for (size_t i = 0; i < ABX_N(paths); i++) {
		abx_auto_strbuf struct abx_strbuf route = ABX_STRBUF_INIT, message = ABX_STRBUF_INIT;
		struct abx_err err = ABX_ERR_INIT;

		abx_strbuf_addf(&route, ROUTE("x", "GET", "%s", "core"), paths[i].path);
		abx_strbuf_addf(&message, "c.py: route 'x': %s", paths[i].why);
		struct abx_code *code = parse("", "", route.buf, &err);
		is_str(code ? "fine" : err.message, paths[i].why ? message.buf : "fine", "the path %s", paths[i].path);
		abx_code_free(code);
	}
}

static void test_text(void)
{
	static const char *const texts[] = {
		"", "{}", "[]", "{\"version\":2}", "{\"version\":1}", "{\"version\":1,\"name\":\"\"}", "{\"version\":1,\"name\":\"a/b\",\"groups\":{},\"commands\":[],\"routes\":[]}",
		"{\"version\":1,\"name\":\"a\",\"groups\":[],\"commands\":[],\"routes\":[]}", "{\"version\":1,\"name\":\"a\",\"groups\":{},\"commands\":{},\"routes\":[]}",
		"{\"version\":1,\"name\":\"a\",\"groups\":{},\"commands\":[],\"routes\":{}}", "{\"version\":1,\"name\":\"a\",\"groups\":{},\"commands\":[]}",
	};

	for (size_t i = 0; i < ABX_N(texts); i++) {
		struct abx_err err = ABX_ERR_INIT;

		ok(!abx_code_parse(texts[i], strlen(texts[i]), &err) && err.kind == ABX_E_VALUE, "no table: %s (%s)", texts[i], err.message);
	}
}

/* The last test: what a process has taken as its code stays. */
static void test_use(void)
{
	static const char routes[] = ROUTE("GET /a/{x}", "GET", "/a/{x}", "browser") "," ROUTE("mine", "POST", "/a", "core");
	size_t n = abx_endpoint_count();
	struct abx_err err = ABX_ERR_INIT;
	struct abx_code *code = parse("\"browser\":true,\"process\":false", COMMAND("c", ",\"timeout\":2.5"), routes, &err);
	struct abx_settings settings;
	char *env[] = { NULL };
	const struct abx_endpoint *row;

	ok(code != NULL, "a table: %s", err.message);
	if (!code)
		return;
	is_int((long long)code->n_rows, 2, "two routes");
	is_int(code->groups[ABX_GROUP_BROWSER], 1, "a group that is on");
	is_int(code->groups[ABX_GROUP_PROCESS], 0, "one that is off");
	is_int(code->groups[ABX_GROUP_SYSTEM], -1, "one of which nothing is said");
	ok(!abx_endpoint_find("mine") && abx_endpoint_count() == n, "no row yet");
	ok(!abx_code_current(), "and no code");
	abx_code_use(code);
	is_int((long long)abx_endpoint_count(), (long long)n + 2, "two rows more");
	is_int((long long)abx_endpoint_count_builtin(), (long long)n, "which are not built in");
	row = abx_endpoint_find("mine");
	ok(row && abx_endpoint_is_custom(row) && abx_endpoint_at(abx_endpoint_index(row)) == row, "the second is found");
	ok(row && row->group == ABX_GROUP_CORE && abx_endpoint_home(row) == ABX_GROUP_COMMANDS, "it is of core, and served by commands");
	ok(row && (row->flags & ABX_EP_OPEN) && (row->flags & ABX_EP_STREAM) && (row->flags & ABX_EP_RAW_ARGS), "its flags");
	ok(!abx_endpoint_is_custom(abx_endpoint_find("shell")) && abx_endpoint_home(abx_endpoint_find("shell")) == ABX_GROUP_PROCESS, "a built-in one is served by its own");
	ok(abx_endpoint_at(n + 2) == NULL, "an index past the end");
	if (abx_settings_load(env, &settings, &err) < 0)
		return;
	struct abx_policy *policy = abx_policy_build(&settings, NULL, &err), *loaded;
	ok(policy != NULL, "a policy: %s", err.message);
	int fd = abx_policy_publish(policy, &err);
	loaded = abx_policy_load(fd, &err);
	ok(loaded != NULL, "which can be published: %s", err.message);
	is_str(loaded->code, code->text, "with the table");
	is_str(abx_policy_rule(loaded, abx_endpoint_find("shell"))->rule, "code:c.py", "the rule of a group that is off");
	ok(!abx_policy_rule(loaded, abx_endpoint_find("shell"))->enabled, "it is off");
	ok(abx_policy_rule(loaded, abx_endpoint_find("GET /a/{x}"))->enabled, "a route of a group that is on");
	is_str(abx_policy_rule(loaded, abx_endpoint_find("GET /a/{x}"))->rule, "code:c.py", "its rule");
	is_str(abx_policy_rule(loaded, row)->rule, "core:always-on", "one of core");
	is_str(abx_policy_rule(loaded, row)->scopes[1], "b", "its scopes");
	is_int(abx_policy_rule(loaded, row)->limits.timeout_seconds, ABX_CODE_TIMEOUT, "its time");
	is_int(abx_key_effect(row, ABX_KEY_SCOPES), ABX_KEY_IDLE, "scopes can do nothing where nobody is asked who he is");
	is_int(abx_key_effect(row, ABX_KEY_RATE), ABX_KEY_WORKS, "a rate can");
	is_int(abx_key_effect(row, ABX_KEY_PATHS), ABX_KEY_IDLE, "paths cannot");
	abx_policy_free(policy);
	abx_policy_free(loaded);
	abx_settings_release(&settings);
	close(fd);
}

static void test_frames(void)
{
	static const struct {
		const char *bytes;
		char kind; /* 0: none */
		uint32_t len;
	} cases[] = {
		{ "\0\0\0\0T\0\0\0", 0, 0 },	 { "\1\0\0\0T\0\0\0", 0, 0 },	  { "\0\0\0\0Z\0\0\0", 'Z', 0 },       { "\1\0\0\0Z\0\0\0", 0, 0 },
		{ "\1\2\3\4R\0\0\0", 'R', 0x04030201 }, { "\377\377\377\377D\0\0\0", 'D', UINT32_MAX }, { "\0\0\20\0F\0\0\0", 'F', 1 << 20 }, { "\1\0\20\0F\0\0\0", 0, 0 },
		{ "\1\0\20\0H\0\0\0", 0, 0 },	 { "\0\0\0\0Q\0\0\0", 0, 0 },	  { "\0\0\0\0B\0\0\0", 0, 0 },	       { "\0\0\0\0\0\0\0\0", 0, 0 },
		{ "\0\0\0\0Z\1\0\0", 0, 0 },	 { "\0\0\0\0Z\0\1\0", 0, 0 },	  { "\0\0\0\0Z\0\0\1", 0, 0 },	       { "HTTP/1.1", 0, 0 },
	};

	for (size_t i = 0; i < ABX_N(cases); i++) {
		struct abx_worker_frame frame = { .kind = '?' };
		unsigned char header[ABX_WORKER_HEADER], again[ABX_WORKER_HEADER];

		memcpy(header, cases[i].bytes, sizeof(header));
		int result = abx_worker_parse(header, &frame);

		is_int(result, cases[i].kind ? 0 : -1, "frame %zu", i);
		is_int(frame.kind, cases[i].kind ? cases[i].kind : '?', "its kind");
		if (result < 0)
			continue;
		is_int(frame.len, cases[i].len, "its length");
		abx_worker_header(frame.kind, frame.len, again);
		ok(memcmp(header, again, sizeof(header)) == 0, "written it is the same");
	}
}

int main(void)
{
	test_wrong();
	test_text();
	test_frames();
	test_use();
	return done_testing();
}
