/* Documents as trees: YAML and JSON, with the lines of their values. */
#include "policy/node.h"

#include <string.h>

#include "t/tap.h"

/* The document as compact JSON, or "error: …". */
static const char *parse(bool json, const char *text)
{
	static char out[4096];
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_node struct abx_node *root =
		json ? abx_json_parse_nodes("f", text, strlen(text), &err) : abx_yaml_parse("f", text, strlen(text), &err);
	abx_auto_strbuf struct abx_strbuf canonical = ABX_STRBUF_INIT;

	if (!root) {
		snprintf(out, sizeof(out), "error: %s", err.message);
		return out;
	}
	abx_node_canonical(root, &canonical);
	snprintf(out, sizeof(out), "%s", canonical.buf);
	return out;
}

/* Made with PyYAML 6 (safe_load) and json.dumps(sort_keys=True, separators=(",", ":"), ensure_ascii=False), but for dates and base 60. */
static const struct {
	const char *yaml, *json;
} values[] = {
	{ "", "null" },
	{ "# nothing\n", "null" },
	{ "---\n...\n", "null" },
	{ "a: b", "{\"a\":\"b\"}" },
	{ "b: 1\na: 2", "{\"a\":2,\"b\":1}" },
	{ "[a, b]", "[\"a\",\"b\"]" },
	{ "- a\n- b", "[\"a\",\"b\"]" },
	{ "a: {b: [c, {d: e}]}", "{\"a\":{\"b\":[\"c\",{\"d\":\"e\"}]}}" },
	{ "a:", "{\"a\":null}" },
	{ "a: ~", "{\"a\":null}" },
	{ "[null, Null, NULL, nULL]", "[null,null,null,\"nULL\"]" },
	{ "[true, True, TRUE, tRUE, yes, Yes, YES, on, On, ON, y]", "[true,true,true,\"tRUE\",true,true,true,true,true,true,\"y\"]" },
	{ "[false, no, off, Off, n]", "[false,false,false,false,\"n\"]" },
	{ "['true', \"no\", '1']", "[\"true\",\"no\",\"1\"]" },
	{ "[0, 1, -1, +1, 1_000, 00, 010, -010, 08]", "[0,1,-1,1,1000,0,8,-8,\"08\"]" },
	{ "[0x1f, 0XFF, 0b101, 0o17, 1e3]", "[31,\"0XFF\",5,\"0o17\",\"1e3\"]" },
	{ "[1.5, -1.5, .5, 1., 1.5e+3, 1.5e3, 1_0.5, 1.2.3]", "[1.5,-1.5,0.5,1.0,1500.0,\"1.5e3\",10.5,\"1.2.3\"]" },
	{ "[10/min, 1-2, \"-\", +, 1__0, _1]", "[\"10/min\",\"1-2\",\"-\",\"+\",10,\"_1\"]" },
	{ "[9223372036854775807, -9223372036854775808]", "[9223372036854775807,-9223372036854775808]" },
	{ "'a b': \"c\\td\\u00e9\"", "{\"a b\":\"c\\td\303\251\"}" },
	{ "a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}" },
	{ "a: >-\n  x\n  y\n", "{\"a\":\"x y\"}" },
	{ "{\"a\": [1, true, null, \"x\"]}", "{\"a\":[1,true,null,\"x\"]}" },
	{ "a: '\303\251\360\237\230\200'", "{\"a\":\"\303\251\360\237\230\200\"}" },
	{ "1: a", "{\"1\":\"a\"}" },
	{ "# c\na: b # c\n", "{\"a\":\"b\"}" },
};

static const struct {
	const char *text, *message;
} yaml_errors[] = {
	{ "a: b\na: c", "f:2: the key 'a' is repeated" },
	{ "a: {b: 1, b: 2}", "f:1: the key 'b' is repeated" },
	{ "a: 1\n---\nb: 2", "f:2: a second document begins here; there must be one" },
	{ "a: &x 1\n<<: *x", "f:2: merge keys (<<) are not supported" },
	{ "[a, b]: c", "f:1: a key must be text" },
	{ "a: 1\n? *x\n: 2", "f:2: a key must be text" },
	{ "\"a\\0b\": c", "f:1: a key holds a NUL character" },
	{ "a: [b", "f:2: did not find expected ',' or ']' while parsing a flow sequence" },
	{ "a: b: c", "f:1: mapping values are not allowed in this context" },
	{ "a: 'b", "f:1: found unexpected end of stream while scanning a quoted scalar" },
	{ "a:\n\t- b", "f:2: found character that cannot start any token while scanning for the next token" },
	{ "a: b\n\377", "f: invalid leading UTF-8 octet at byte 5" },
};

static const struct {
	const char *text, *message;
} json_errors[] = {
	{ "", "f: " },
	{ "{\"a\": 1, \"a\": 2}", "f: " },
	{ "{\"a\": 1,}", "f: " },
	{ "{'a': 1}", "f: " },
	{ "{\"a\": NaN}", "f: " },
};

static const struct abx_node *at(const struct abx_node *node, const char *key)
{
	return node ? abx_node_find(node, key) : NULL;
}

/* The same document in both languages: values and keys are on the same lines. */
static void lines(void)
{
	static const char yaml[] = "# first\na: 1\n\nb:\n  c: [x,\n      y]\n  'd': \"q\\\"w\"\ne: {}\nf: []\n";
	static const char json[] = "\n{\"a\": 1,\n\n\"b\": {\n  \"c\": [\"x\",\n\"y\"],\n  \"d\": \"q\\\"w\"},\n\"e\": { } ,\n\"f\" :[\r]}\n";
	struct abx_err err = ABX_ERR_INIT;

	for (int i = 0; i < 2; i++) {
		abx_auto_node struct abx_node *root =
			i ? abx_json_parse_nodes("f", json, strlen(json), &err) : abx_yaml_parse("f", yaml, strlen(yaml), &err);
		const char *name = i ? "JSON" : "YAML";

		is_int(at(root, "a")->line, 2, "%s: a", name);
		is_int(at(root, "b")->key_line, 4, "%s: the key b", name);
		is_int(at(at(root, "b"), "c")->line, 5, "%s: b.c", name);
		is_int(at(at(root, "b"), "c")->first->line, 5, "%s: b.c[0]", name);
		is_int(at(at(root, "b"), "c")->last->line, 6, "%s: b.c[1]", name);
		is_int(at(at(root, "b"), "d")->line, 7, "%s: b.d", name);
		is_str(at(at(root, "b"), "d")->text, "q\"w", "%s: its text", name);
		is_int(at(root, "e")->line, 8, "%s: e", name);
		is_int(at(root, "f")->line, 9, "%s: f", name);
		ok(at(root, "f")->first == NULL, "%s: f is empty", name);
		ok(at(root, "g") == NULL, "%s: there is no g", name);
	}
}

/* What no policy may use is told where it is used; elsewhere in a template it is nobody's business. */
static void refusals(void)
{
	static const struct {
		const char *text, *refused;
	} cases[] = {
		{ "a: &x 1", "an anchor (&)" },	      { "a: *x", "an alias (*)" },	  { "a: !!str 1", "a tag (!)" },
		{ "a: !x {b: c}", "a tag (!)" },      { "a: &x [1]", "an anchor (&)" },	  { "a: .inf", "a number that is not finite" },
		{ "a: .NaN", "a number that is not finite" }, { "a: \"x\\0y\"", "a NUL character" }, { "a: 1", NULL },
	};
	struct abx_err err = ABX_ERR_INIT;

	for (size_t i = 0; i < ABX_N(cases); i++) {
		abx_auto_node struct abx_node *root = abx_yaml_parse("f", cases[i].text, strlen(cases[i].text), &err);

		is_str(root ? at(root, "a")->refused : err.message, cases[i].refused, "%s", cases[i].text);
	}
	abx_auto_node struct abx_node *json = abx_json_parse_nodes("f", "{\"a\": \"x\\u0000y\"}", 17, &err);
	is_str(at(json, "a")->refused, "a NUL character", "a NUL in JSON");
}

static void depth(void)
{
	char text[2 * ABX_NODE_DEPTH + 8];

	for (int json = 0; json < 2; json++) {
		memset(text, '[', ABX_NODE_DEPTH);
		memset(text + ABX_NODE_DEPTH, ']', ABX_NODE_DEPTH);
		text[2 * ABX_NODE_DEPTH] = '\0';
		is_str(parse(json, text), text, "%d levels", ABX_NODE_DEPTH);
		memset(text, '[', ABX_NODE_DEPTH + 2);
		memset(text + ABX_NODE_DEPTH + 2, ']', ABX_NODE_DEPTH + 2);
		text[2 * ABX_NODE_DEPTH + 4] = '\0';
		is_str(parse(json, text), "error: f:1: is nested more than 64 levels deep", "two more");
	}
}

int main(void)
{
	for (size_t i = 0; i < ABX_N(values); i++)
		is_str(parse(false, values[i].yaml), values[i].json, "YAML value %zu", i);
	for (size_t i = 0; i < ABX_N(yaml_errors); i++) {
		const char *got = parse(false, yaml_errors[i].text);

		is_str(strncmp(got, "error: ", 7) == 0 ? got + 7 : got, yaml_errors[i].message, "YAML error %zu", i);
	}
	for (size_t i = 0; i < ABX_N(json_errors); i++)
		ok(strncmp(parse(true, json_errors[i].text), "error: f: ", 10) == 0, "JSON error %zu", i);
	is_str(parse(true, "{\"b\": [1, -2.5, true, null, \"\\u00e9\\ud83d\\ude00\"], \"a\": {}}"),
	       "{\"a\":{},\"b\":[1,-2.5,true,null,\"\303\251\360\237\230\200\"]}", "a JSON value");
	lines();
	refusals();
	depth();
	return done_testing();
}
