#include "common/json.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_SANITIZER 1
#endif

/* Half of what a responder's thread has; a sanitizer's frames are many times as large. */
#ifdef WITH_SANITIZER
#define SMALL_STACK ((size_t)4 << 20)
#else
#define SMALL_STACK ((size_t)128 << 10)
#endif

static const char *const cut_names[] = { "content", "content_base64", NULL };

static void test_values(void)
{
	static const struct {
		const char *text, *type;
	} rows[] = {
		{ "{}", "object" },
		{ " [ ] ", "array" },
		{ "\"x\"", "string" },
		{ "12", "integer" },
		{ "-9223372036854775808", "integer" },
		{ "9223372036854775807", "integer" },
		{ "1.0", "number" },
		{ "1e3", "number" },
		{ "true", "boolean" },
		{ "false", "boolean" },
		{ "\r\n\tnull\n", "null" },
		{ "\"\\ud83d\\ude00\"", "string" },
	};

	for (size_t i = 0; i < ABX_N(rows); i++) {
		struct abx_err err = ABX_ERR_INIT;
		json_auto_t *value = abx_json_parse(rows[i].text, strlen(rows[i].text), &err);
		is_str(value ? abx_json_type_name(value) : err.message, rows[i].type, "%zu: type", i);
		is_int(err.kind, ABX_E_NONE, "and no error");
	}
	struct abx_err err = ABX_ERR_INIT;
	json_auto_t *value = abx_json_parse("\"a\\u0000b\"", 10, &err);
	is_mem(json_string_value(value), json_string_length(value), "a\0b", 3, "an escaped NUL is data");
	json_auto_t *part = abx_json_parse("[1]garbage", 3, &err);
	ok(part != NULL, "nothing behind the length is read");
}

static void test_refused(void)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "", "unexpected token at line 1 column 1 (byte 0)" },
		{ "  \n ", "unexpected token at line 2 column 2 (byte 4)" },
		{ "{\"a\" 1}", "':' expected at line 1 column 6 (byte 5)" },
		{ "{\"a\": 1", "'}' expected at line 1 column 8 (byte 7)" },
		{ "{\"a\": 1,}", "string or '}' expected at line 1 column 9 (byte 8)" },
		{ "{\"a\": 1, \"b\": 2, \"a\": 3}", "duplicate object key at line 1 column 20 (byte 19)" },
		{ "{\"a\": {\"b\": 1, \"b\": 1}}", "duplicate object key at line 1 column 18 (byte 17)" },
		{ "[1,\n\xc3\xa9]", "invalid token at line 2 column 1 (byte 5)" },
		{ "[\"\xc3\xa9\xc3\xa9\" x]", "']' expected at line 1 column 7 (byte 8)" },
		{ "[1] 2", "end of file expected at line 1 column 5 (byte 4)" },
		{ "[NaN]", "invalid token at line 1 column 4 (byte 3)" },
		{ "[Infinity]", "invalid token at line 1 column 9 (byte 8)" },
		{ "[1e999]", "real number overflow at line 1 column 6 (byte 5)" },
		{ "[9223372036854775808]", "too big integer at line 1 column 20 (byte 19)" },
		{ "[-9223372036854775809]", "too big negative integer at line 1 column 21 (byte 20)" },
		{ "[01]", "invalid token at line 1 column 2 (byte 1)" },
		{ "[\"\\ud800\"]", "invalid Unicode '\\uD800' at line 1 column 9 (byte 8)" },
		{ "[\"\\udc00\"]", "invalid Unicode '\\uDC00' at line 1 column 9 (byte 8)" },
		{ "[\"a\nb\"]", "unexpected newline at line 1 column 4 (byte 3)" },
		{ "[\"a\tb\"]", "control character 0x9 at line 1 column 4 (byte 3)" },
		{ "[\"\\x\"]", "invalid escape at line 1 column 4 (byte 3)" },
		{ "[\"abc", "premature end of input at line 1 column 6 (byte 5)" },
		{ "\xef\xbb\xbf{}", "invalid token at line 1 column 1 (byte 2)" },
		{ "['a']", "invalid token at line 1 column 2 (byte 1)" },
		{ "[1]\n[\"\xc3\xa9\xff\"]", "not UTF-8 at line 2 column 4 (byte 8)" },
		{ "{\"\xed\xa0\x80\": 1}", "not UTF-8 at line 1 column 3 (byte 2)" },
		{ "{\"a\\u0000\": 1}", "NUL byte in object key not supported at line 1 column 10 (byte 9)" },
	};

	for (size_t i = 0; i < ABX_N(rows); i++) {
		struct abx_err err = ABX_ERR_INIT;
		char want[512];
		json_auto_t *value = abx_json_parse(rows[i].text, strlen(rows[i].text), &err);
		ok(value == NULL, "%zu: refused", i);
		is_int(err.kind, ABX_E_VALUE, "as a bad value");
		snprintf(want, sizeof(want), "Invalid JSON: %s", rows[i].message);
		is_str(err.message, want, "with its position");
	}
	struct abx_err err = ABX_ERR_INIT;
	json_auto_t *value = abx_json_parse("[\0]", 3, &err);
	ok(!value && err.kind == ABX_E_VALUE, "a raw NUL is no JSON");
	json_auto_t *in_string = abx_json_parse("[\"\0\"]", 5, &err);
	is_str(in_string ? "parsed" : err.message, "Invalid JSON: control character 0x0 at line 1 column 3 (byte 2)",
	       "nor is one in a string");
	json_auto_t *secret = abx_json_parse("{\"a\": hunter2}", 14, &err);
	ok(!secret && !strstr(err.message, "hunter2"), "a message quotes nothing of the document");
}

/* `levels` times `open`, then `middle`, then as many times `close`. */
static void nest(struct abx_strbuf *sb, const char *open, const char *middle, const char *close, int levels)
{
	abx_strbuf_reset(sb);
	for (int i = 0; i < levels; i++)
		abx_strbuf_adds(sb, open);
	abx_strbuf_adds(sb, middle);
	for (int i = 0; i < levels; i++)
		abx_strbuf_adds(sb, close);
}

static void is_refused_deep(const struct abx_strbuf *sb, const char *position, const char *what)
{
	struct abx_err err = ABX_ERR_INIT;
	json_auto_t *value = abx_json_parse(sb->buf, sb->len, &err);
	char want[200];

	snprintf(want, sizeof(want), "Invalid JSON: nested deeper than 512 levels at %s", position);
	is_str(value ? "parsed" : err.message, want, "%s", what);
	is_int(err.kind, ABX_E_VALUE, "as a bad value");
}

static void test_depth(void)
{
	abx_auto_strbuf struct abx_strbuf sb = ABX_STRBUF_INIT;
	struct abx_err err = ABX_ERR_INIT;

	nest(&sb, "[", "", "]", 513);
	is_refused_deep(&sb, "line 1 column 513 (byte 512)", "513 arrays are too deep");
	nest(&sb, "{\"a\":", "1", "}", 513);
	is_refused_deep(&sb, "line 1 column 2561 (byte 2560)", "513 objects are too deep");
	nest(&sb, "[\n\"\xc3\xa9\",", "1", "]", 513);
	is_refused_deep(&sb, "line 513 column 5 (byte 3584)", "the position counts lines and characters");
	nest(&sb, "[", "", "", 100000);
	is_refused_deep(&sb, "line 1 column 513 (byte 512)", "much deeper is too deep as well");
	nest(&sb, "{\"a\":[", "[[[", "", 300);
	is_refused_deep(&sb, "line 1 column 1537 (byte 1536)", "arrays and objects count together");

	nest(&sb, "[", "\"[[[[[[[[\\\"[[[[[[\\\\\"", "]", 512);
	json_auto_t *strings = abx_json_parse(sb.buf, sb.len, &err);
	ok(strings != NULL, "brackets in strings do not count");
	nest(&sb, "[", "\"\\\\\", [\"", "]", 512);
	is_refused_deep(&sb, "line 1 column 519 (byte 518)", "behind an escaped backslash the string ends");
	abx_strbuf_reset(&sb);
	abx_strbuf_addc(&sb, '[');
	for (int i = 0; i < 2000; i++)
		abx_strbuf_adds(&sb, i ? ",[{}]" : "[{}]");
	abx_strbuf_addc(&sb, ']');
	json_auto_t *wide = abx_json_parse(sb.buf, sb.len, &err);
	is_int((long long)json_array_size(wide), 2000, "what was closed does not count");
}

static void *parse_and_write(void *arg)
{
	const struct abx_strbuf *in = arg;
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);
	json_auto_t *value = abx_json_parse(in->buf, in->len, &err);

	if (!value)
		return NULL;
	abx_jw_value(&jw, value);
	return abx_strbuf_detach(&out);
}

/* Parse, write and free a deep document on a small stack. */
static void test_stack(void)
{
	static const struct {
		const char *open, *middle, *close;
		int levels;
	} rows[] = {
		{ "[", "", "]", 512 },
		{ "{\"a\": ", "1", "}", 512 },
		{ "[", "1.5", "]", 512 },
		{ "[{\"k\": ", "\"x\\n\"", "}]", 256 },
		{ "{\"a\": ", "1e-05", "}", 250 },
		{ "[", "\"\\u0001\"", "]", 512 },
	};

	for (size_t i = 0; i < ABX_N(rows); i++) {
		abx_auto_strbuf struct abx_strbuf sb = ABX_STRBUF_INIT;
		pthread_attr_t attr;
		pthread_t thread;
		void *out = NULL;
		nest(&sb, rows[i].open, rows[i].middle, rows[i].close, rows[i].levels);
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, SMALL_STACK);
		if (pthread_create(&thread, &attr, parse_and_write, &sb) == 0)
			pthread_join(thread, &out);
		pthread_attr_destroy(&attr);
		is_str(out, sb.buf, "%d levels on a small stack, row %zu", rows[i].levels, i);
		free(out);
	}
}

/* A text with a '@' in it, which becomes `len` times `fill`. */
static void expand(struct abx_strbuf *sb, const char *pattern, const char *fill, size_t len)
{
	const char *at = strchr(pattern, '@');

	abx_strbuf_reset(sb);
	abx_strbuf_add(sb, pattern, (size_t)(at - pattern));
	for (size_t i = 0; i < len; i++)
		abx_strbuf_adds(sb, fill);
	abx_strbuf_adds(sb, at + 1);
}

static void test_body(void)
{
	static const struct {
		const char *text, *type;
	} rows[] = { { "[]", "array" },   { "\"x\"", "string" }, { "1", "integer" },
		     { "1.5", "number" }, { "true", "boolean" }, { "null", "null" } };
	struct abx_json_text text = { .name = "untouched" };
	struct abx_err err = ABX_ERR_INIT;
	char empty[1] = "", object[] = "{\"content\": \"short\"}";

	for (size_t i = 0; i < ABX_N(rows); i++) {
		char body[16], want[100];
		snprintf(body, sizeof(body), "%s", rows[i].text);
		json_auto_t *value = abx_json_parse_body(body, strlen(body), cut_names, &text, &err);
		snprintf(want, sizeof(want), "Request body must be a JSON object, not %s", rows[i].type);
		is_str(value ? "parsed" : err.message, want, "a body of %s", rows[i].text);
		is_int(err.kind, ABX_E_VALUE, "is a bad value");
	}
	is_str(text.name, "untouched", "a failure leaves the output alone");
	json_auto_t *nothing = abx_json_parse_body(empty, 0, cut_names, &text, &err);
	ok(json_is_object(nothing) && json_object_size(nothing) == 0, "no body is an empty object");
	ok(text.name == NULL, "with nothing cut");
	text.name = "old";
	json_auto_t *value = abx_json_parse_body(object, strlen(object), cut_names, &text, &err);
	is_str(json_string_value(json_object_get(value, "content")), "short", "a short string stays in the object");
	ok(text.name == NULL && text.data == NULL && text.len == 0, "and is not cut");
	json_auto_t *plain = abx_json_parse_body(object, strlen(object), NULL, NULL, &err);
	ok(plain != NULL, "without names nothing is asked for");
}

/* What is cut, and what is not: pattern, what its '@' is filled with and how often, name and content of the cut. */
static void test_cut(void)
{
	static const struct {
		const char *pattern, *fill;
		size_t len;
		const char *name, *content_fill;
		const char *why;
	} rows[] = {
		{ "{\"content\": \"@\"}", "x", ABX_JSON_CUT_MIN, "content", "x", "long enough" },
		{ "{\"content\": \"@\"}", "x", ABX_JSON_CUT_MIN - 1, NULL, NULL, "one byte too short" },
		{ " {\n \"a\" : [1, {\"content\": 2}],\t\"content_base64\"\n:\r \"@\" , \"b\": {} } ", "x", 20000,
		  "content_base64", "x", "blanks, and other members around" },
		{ "{\"contents\": \"@\"}", "x", 20000, NULL, NULL, "another name" },
		{ "{\"conten\": \"@\"}", "x", 20000, NULL, NULL, "the beginning of a name" },
		{ "{\"c\\u006fntent\": \"@\"}", "x", 20000, NULL, NULL, "a name that is spelled with escapes" },
		{ "{\"a\": {\"content\": \"@\"}}", "x", 20000, NULL, NULL, "not at the top" },
		{ "{\"content\": {\"x\": \"@\"}}", "x", 20000, NULL, NULL, "below the name" },
		{ "{\"content\": {}, \"a\": {\"x\": \"@\"}}", "x", 20000, NULL, NULL, "below another name" },
		{ "{\"a\": [\"content\", \"@\"]}", "x", 20000, NULL, NULL, "in a list" },
		{ "{\"b\": \"content\", \"c\": \"@\"}", "x", 20000, NULL, NULL, "a value that looks like a name" },
		{ "{\"@\": \"content\"}", "x", 20000, NULL, NULL, "a long name" },
		{ "{\"content\": \"@\"}", "\\n", 10000, "content", "\n", "escapes" },
		{ "{\"content\": \"@\"}", "\\\"\\\\\\/\\b\\f\\n\\r\\t", 2000, "content", "\"\\/\b\f\n\r\t",
		  "every short escape" },
		{ "{\"content\": \"@\"}", "a\\u00e9\\u20AC\\u0041\\ud83d\\uDE00z", 2000, "content",
		  "a\xc3\xa9\xe2\x82\xac"
		  "A\xf0\x9f\x98\x80z",
		  "every length of a character" },
		{ "{\"content\": \"@\"}",
		  "\\u007f\\u0080\\u07ff\\u0800\\ud7ff\\ue000\\uffff\\ud800\\udc00\\udbff\\udfff", 2000, "content",
		  "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf"
		  "\xbf",
		  "the edges of each length" },
		{ "{\"content\": \"@\"}", "\xc3\xa9[{", 20000, "content", "\xc3\xa9[{", "raw UTF-8 and brackets" },
		{ "{\"content\": \"@\", \"content_base64\": \"y\"}", "x", 20000, "content", "x",
		  "two names, the first long" },
		{ "{\"content_base64\": \"y\", \"content\": \"@\"}", "x", 20000, "content", "x",
		  "two names, the second long" },
	};

	for (size_t i = 0; i < ABX_N(rows); i++) {
		abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT, want = ABX_STRBUF_INIT;
		struct abx_json_text text = { .name = "" };
		struct abx_err err = ABX_ERR_INIT;
		expand(&body, rows[i].pattern, rows[i].fill, rows[i].len);
		json_auto_t *whole = abx_json_parse_body(body.buf, body.len, NULL, NULL, &err);
		json_auto_t *value = abx_json_parse_body(body.buf, body.len, cut_names, &text, &err);
		if (!ok(value != NULL, "%s: parsed", rows[i].why))
			note("%s", err.message);
		is_str(text.name, rows[i].name, "the name of the cut");
		if (rows[i].name) {
			expand(&want, "@", rows[i].content_fill, rows[i].len);
			ok(text.len == want.len && memcmp(text.data, want.buf, want.len) == 0,
			   "its content, without escapes");
			is_str(json_string_value(json_object_get(value, text.name)), "", "its place is empty");
			json_object_set_new(value, text.name, json_stringn(text.data, text.len));
		}
		ok(json_equal(value, whole), "with the cut put back it is the same document");
	}
}

static void test_cut_of_two(void)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT, first = ABX_STRBUF_INIT;
	struct abx_json_text text = { .name = NULL };
	struct abx_err err = ABX_ERR_INIT;

	expand(&first, "{\"content_base64\": \"@\", \"content\": \"#\"}", "x", 20000);
	for (const char *p = first.buf; *p; p++)
		if (*p == '#')
			for (int i = 0; i < 20000; i++)
				abx_strbuf_addc(&body, 'y');
		else
			abx_strbuf_addc(&body, *p);
	json_auto_t *value = abx_json_parse_body(body.buf, body.len, cut_names, &text, &err);
	is_str(text.name, "content_base64", "of two long members the first is cut");
	is_int((long long)json_string_length(json_object_get(value, "content")), 20000, "and the second is not");

	expand(&body, "{\"content\": \"\\u0000@\"}", "x", 20000);
	json_auto_t *nul = abx_json_parse_body(body.buf, body.len, cut_names, &text, &err);
	ok(nul && text.len == 20001 && text.data[0] == '\0' && text.data[1] == 'x',
	   "an escaped NUL is data in a cut as well");
}

/* What is wrong inside, before and behind a long string is told with the same words with and without the cut. */
static void test_cut_errors(void)
{
	static const char *const patterns[] = {
		"{\"content\": \"@\\x\"}",
		"{\"content\": \"@\\ud800\"}",
		"{\"content\": \"\\udc00@\"}",
		"{\"content\": \"@\\udc00\\udc00\"}",
		"{\"content\": \"@\\ud800\\u0041\"}",
		"{\"content\": \"@\\u12g4\"}",
		"{\"content\": \"@\n\"}",
		"{\"content\": \"@\x01\"}",
		"{\"content\": \"@",
		"{\"content\": \"@\\",
		"{\"content\": \"@\\u00",
		"{\"content\": \"@\"",
		"{\"content\": \"@\" ",
		"{\"content\": \"@\"]",
		"{\"content\": \"@\" x}",
		"{\"content\": \"@\" \"b\"}",
		"{\"content\": \"@\",}",
		"{\"content\": \"@\"}}",
		"{\"content\": \"@\"}\n\n x",
		"{\"content\": \"@\",\n\"b\": nope}",
		"{\"content\": \"@\", \"content\": 1}",
		"{\"content\": 1, \"content\": \"@\"}",
		"{\"content\" \"@\"}",
		"{\"a\" 1, \"content\": \"@\"}",
		"{\"x\": \"content\": \"@\"}",
		"{\"content\": x \"@\"}",
		"{, \"content\": \"@\"}",
		"{\"content\":: \"@\"}",
		"{\n\"\xc3\xa9\": 1,\n \"content\": \"@\" \"\xc3\xa9\": 1}",
		"{\"content\": \"@\", \"\xc3\xa9\": [1,]}",
		"\"content\": \"@\"",
		"[\"content\": \"@\"]",
		"{\"content\": \"@\", \"b\": 99999999999999999999}",
		"{\"content\": \"@\", \"b\": \"\xff\"}",
		"{\"content\": \"@\xff\"}",
		"{\"content\": \"@\", 'near end of file'",
	};
	static const char *const fills[] = { "x", "\xc3\xa9", "\\n", "\\u20ac\xe2\x82\xac" };

	for (size_t i = 0; i < ABX_N(patterns); i++)
		for (size_t k = 0; k < ABX_N(fills); k++) {
			abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
			struct abx_err whole = ABX_ERR_INIT, cut = ABX_ERR_INIT;
			struct abx_json_text text;
			expand(&body, patterns[i], fills[k], 17000);
			json_auto_t *value = abx_json_parse_body(body.buf, body.len, NULL, NULL, &whole);
			ok(value == NULL && whole.kind == ABX_E_VALUE, "%zu: refused", i);
			json_auto_t *again = abx_json_parse_body(body.buf, body.len, cut_names, &text, &cut);
			is_str(again ? "parsed" : cut.message, whole.message, "in the same words");
		}
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_err err = ABX_ERR_INIT;
	struct abx_json_text text;
	expand(&body, "{\"content\":\n\"@\" x}", "\xc3\xa9", 10000);
	json_auto_t *value = abx_json_parse_body(body.buf, body.len, cut_names, &text, &err);
	is_str(value ? "parsed" : err.message, "Invalid JSON: '}' expected at line 2 column 10004 (byte 20015)",
	       "positions behind a cut are those of the whole text");
	expand(&body, "{\"content\": \"@\", \"a\": ", "x", 17000);
	for (int i = 0; i < 512; i++)
		abx_strbuf_addc(&body, '[');
	json_auto_t *deep = abx_json_parse_body(body.buf, body.len, cut_names, &text, &err);
	is_str(deep ? "parsed" : err.message,
	       "Invalid JSON: nested deeper than 512 levels at line 1 column 17533 (byte 17532)",
	       "so are those of the depth");
}

int main(void)
{
	test_values();
	test_refused();
	test_depth();
	test_stack();
	test_body();
	test_cut();
	test_cut_of_two();
	test_cut_errors();
	return done_testing();
}
