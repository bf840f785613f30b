#include "common/json_value.h"

#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

/* The value that is found in `text`, or what is wrong with it. */
static const char *find(const char *text, size_t len)
{
	static char out[1024];
	struct abx_err err = ABX_ERR_INIT;
	size_t start, value_len;

	if (abx_json_value_find(text, len, &start, &value_len, &err) < 0)
		snprintf(out, sizeof(out), "! %s", err.message);
	else
		snprintf(out, sizeof(out), "%.*s", (int)value_len, text + start);
	return out;
}

static const struct {
	const char *text, *found;
} cases[] = {
	{ "", "" },
	{ " \n\t\r ", "" },
	{ " 5\n", "5" },
	{ "null", "null" },
	{ "true", "true" },
	{ "false", "false" },
	{ "NaN", "NaN" },
	{ "[Infinity, -Infinity]", "[Infinity, -Infinity]" },
	{ "-0.5e+10", "-0.5e+10" },
	{ "123456789012345678901234567890123456789012345678901234567890", "123456789012345678901234567890123456789012345678901234567890" },
	{ "1E400", "1E400" },
	{ "\"a \\\" \\u00e9 \\ud800 \\n\"", "\"a \\\" \\u00e9 \\ud800 \\n\"" },
	{ "\"\xc3\xa9\"", "\"\xc3\xa9\"" },
	{ "{}", "{}" },
	{ "[ ]", "[ ]" },
	{ "{\"a\": [1, {\"b\": []}, \"\"], \"a\": null}", "{\"a\": [1, {\"b\": []}, \"\"], \"a\": null}" },
	{ "  [[],[[]],{\"\":{}}]  ", "[[],[[]],{\"\":{}}]" },
	{ "5 6", "! more than one value at byte 2" },
	{ "[] x", "! more than one value at byte 3" },
	{ "nul", "! no value at byte 0" },
	{ "nulls", "! more than one value at byte 4" },
	{ "-", "! a number that is none at byte 1" },
	{ "01", "! more than one value at byte 1" },
	{ "1.", "! a number that is none at byte 2" },
	{ "1e", "! a number that is none at byte 2" },
	{ ".5", "! no value at byte 0" },
	{ "+5", "! no value at byte 0" },
	{ "0x10", "! more than one value at byte 1" },
	{ "-NaN", "! a number that is none at byte 1" },
	{ "'a'", "! no value at byte 0" },
	{ "\"a", "! a string without an end at byte 2" },
	{ "\"a\\", "! an escape that is none at byte 2" },
	{ "\"a\\x\"", "! an escape that is none at byte 2" },
	{ "\"\\u12\"", "! an escape that is none at byte 1" },
	{ "\"\\u12g4\"", "! an escape that is none at byte 1" },
	{ "\"a\nb\"", "! a control character in a string at byte 2" },
	{ "[1", "! the end too early at byte 2" },
	{ "[1 2]", "! no comma at byte 3" },
	{ "[1,]", "! no value at byte 3" },
	{ "[,1]", "! no value at byte 1" },
	{ "[1}", "! no comma at byte 2" },
	{ "{\"a\"}", "! no colon at byte 4" },
	{ "{\"a\": 1]", "! no comma at byte 7" },
	{ "{\"a\": 1, }", "! no key at byte 9" },
	{ "{a: 1}", "! no key at byte 1" },
	{ "{\"a\":", "! the end where a value is expected at byte 5" },
	{ "]", "! no value at byte 0" },
	{ "\"\xff\"", "! not UTF-8 at byte 1" },
	{ "\xef\xbb\xbf" "5", "! no value at byte 0" },
};

static void test_nesting(void)
{
	size_t depth = ABX_JSON_VALUE_DEPTH;
	char *text = malloc(2 * depth + 4);

	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	is_int(strlen(find(text, 2 * depth)) > 0 && *find(text, 2 * depth) == '[', 1, "as many levels as there may be");
	memset(text, '[', depth + 1);
	memset(text + depth + 1, ']', depth + 1);
	is_str(find(text, 2 * depth + 2), "! too many levels at byte 10000", "one more");
	free(text);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		is_str(find(cases[i].text, strlen(cases[i].text)), cases[i].found, "case %zu", i);
	is_str(find("\"a\0b\"", 5), "! a control character in a string at byte 2", "a NUL in a string");
	is_str(find("5\0", 2), "! more than one value at byte 1", "a NUL behind the value");
	test_nesting();
	return done_testing();
}
