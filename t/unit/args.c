/* The argument checks, against specs of every type. */
#include "common/args.h"

#include <jansson.h>

#include "t/tap.h"

static const struct abx_arg specs[] = {
	{ "text", ABX_ARG_STRING, false, "\"standard\"" },
	{ "data", ABX_ARG_DATA, false, NULL },
	{ "path", ABX_ARG_PATH, false, NULL },
	{ "paths", ABX_ARG_PATHS, false, NULL },
	{ "count", ABX_ARG_INT, false, "5" },
	{ "ratio", ABX_ARG_NUMBER, false, NULL },
	{ "flag", ABX_ARG_BOOL, false, "false" },
	{ "object", ABX_ARG_OBJECT, false, NULL },
	{ "list", ABX_ARG_ARRAY, false, NULL },
	{ "env", ABX_ARG_ENV, false, NULL },
	{ "timeout", ABX_ARG_TIMEOUT, false, "300" },
};

/* `want` is a message that begins so, or NULL for success; then `name` has the JSON text `value`. */
static const struct {
	const char *given, *want, *name, *value;
} cases[] = {
	{ "{}", NULL, "text", "\"standard\"" },
	{ "{}", NULL, "count", "5" },
	{ "{}", NULL, "flag", "false" },
	{ "{}", NULL, "timeout", "300" },
	{ "{\"text\": null}", NULL, "text", "\"standard\"" },
	{ "{\"text\": \"\"}", NULL, "text", "\"\"" },
	{ "{\"text\": 5}", "text: must be a string, not integer", NULL, NULL },
	{ "{\"text\": [\"x\"]}", "text: must be a string, not array", NULL, NULL },
	{ "{\"text\": \"a\\u0000b\"}", "text: must not hold a NUL", NULL, NULL },
	{ "{\"data\": \"a\\u0000b\"}", NULL, "data", "\"a\\u0000b\"" },
	{ "{\"data\": 1.5}", "data: must be a string, not number", NULL, NULL },
	{ "{\"path\": \"\"}", "path: must not be empty", NULL, NULL },
	{ "{\"path\": \"a\\u0000\"}", "path: must not hold a NUL", NULL, NULL },
	{ "{\"path\": \"x\", \"path_base64\": null}", NULL, "path", "\"x\"" },
	{ "{\"path_base64\": \"YQ==\"}", NULL, "path", "\"a\"" },
	{ "{\"path_base64\": \"YQ\"}", "path_base64: is not valid base64", NULL, NULL },
	{ "{\"path_base64\": 1}", "path_base64: must be a string", NULL, NULL },
	{ "{\"path_base64\": \"\"}", "path: must not be empty", NULL, NULL },
	{ "{\"path_base64\": \"AA==\"}", "path: must not hold a NUL", NULL, NULL },
	{ "{\"path\": \"x\", \"path_base64\": \"YQ==\"}", "path: give either path or path_base64", NULL, NULL },
	{ "{\"path\": null, \"path_base64\": \"YQ==\"}", NULL, "path", "\"a\"" },
	{ "{\"paths\": [\"a\", \"b\"]}", NULL, "paths", "[\"a\", \"b\"]" },
	{ "{\"paths\": \"a\"}", "paths: must be a list of strings, not string", NULL, NULL },
	{ "{\"paths\": []}", "paths: must not be empty", NULL, NULL },
	{ "{\"paths\": [\"a\", 1]}", "paths: must be a string, not integer", NULL, NULL },
	{ "{\"paths\": [\"\"]}", "paths: must not be empty", NULL, NULL },
	{ "{\"paths\": [\"a\\u0000\"]}", "paths: must not hold a NUL", NULL, NULL },
	{ "{\"paths_base64\": [\"YQ==\", \"Yg==\"]}", NULL, "paths", "[\"a\", \"b\"]" },
	{ "{\"paths_base64\": \"YQ==\"}", "paths_base64: must be a list of strings, not string", NULL, NULL },
	{ "{\"paths_base64\": [\"YQ==\", \"Y\"]}", "paths_base64: is not valid base64", NULL, NULL },
	{ "{\"paths_base64\": [1]}", "paths_base64: is not valid base64", NULL, NULL },
	{ "{\"paths_base64\": []}", "paths: must not be empty", NULL, NULL },
	{ "{\"paths\": [\"a\"], \"paths_base64\": [\"YQ==\"]}", "paths: give either paths or paths_base64", NULL, NULL },
	{ "{\"count\": 7}", NULL, "count", "7" },
	{ "{\"count\": 7.0}", "count: must be an integer, not number", NULL, NULL },
	{ "{\"count\": \"7\"}", "count: must be an integer, not string", NULL, NULL },
	{ "{\"count\": true}", "count: must be an integer, not boolean", NULL, NULL },
	{ "{\"ratio\": 7}", NULL, "ratio", "7" },
	{ "{\"ratio\": 0.5}", NULL, "ratio", "0.5" },
	{ "{\"ratio\": \"x\"}", "ratio: must be a number, not string", NULL, NULL },
	{ "{\"flag\": true}", NULL, "flag", "true" },
	{ "{\"flag\": 1}", "flag: must be a boolean, not integer", NULL, NULL },
	{ "{\"flag\": \"true\"}", "flag: must be a boolean, not string", NULL, NULL },
	{ "{\"object\": []}", "object: must be an object, not array", NULL, NULL },
	{ "{\"list\": {}}", "list: must be an array, not object", NULL, NULL },
	{ "{\"env\": {\"A\": \"1\"}}", NULL, "env", "{\"A\": \"1\"}" },
	{ "{\"env\": []}", "env: must be an object of strings, not array", NULL, NULL },
	{ "{\"env\": {\"A\": 1}}", "env: the value of 'A' must be a string, not integer", NULL, NULL },
	{ "{\"env\": {\"\": \"x\"}}", "env: a name cannot be empty", NULL, NULL },
	{ "{\"env\": {\"A=B\": \"x\"}}", "env: a name cannot be empty or hold '='", NULL, NULL },
	{ "{\"env\": {\"A\": \"x\\u0000\"}}", "env: the value of 'A' must not hold a NUL", NULL, NULL },
	{ "{\"env\": {\"ABX_X\": \"x\"}}", "env: 'ABX_X' cannot be set", NULL, NULL },
	{ "{\"env\": {\"abx_x\": \"x\"}}", "env: 'abx_x' cannot be set", NULL, NULL },
	{ "{\"timeout\": 2}", NULL, "timeout", "2" },
	{ "{\"timeout\": 0.25}", NULL, "timeout", "0.25" },
	{ "{\"timeout\": 0}", NULL, "timeout", "300" },
	{ "{\"timeout\": -1}", NULL, "timeout", "300" },
	{ "{\"timeout\": \"soon\"}", NULL, "timeout", "300" },
	{ "{\"timeout\": true}", NULL, "timeout", "300" },
	{ "{\"timeout\": []}", NULL, "timeout", "300" },
	{ "{\"unknown\": 1}", NULL, "unknown", "1" },
};

int main(void)
{
	static const struct abx_arg required = { "must", ABX_ARG_STRING, true, NULL };
	struct abx_err err = ABX_ERR_INIT;
	json_auto_t *empty = json_object(), *null = json_pack("{s:n}", "must");

	for (size_t i = 0; i < ABX_N(cases); i++) {
		json_auto_t *args = json_loads(cases[i].given, JSON_ALLOW_NUL, NULL);
		int result = abx_args_check_list(args, specs, ABX_N(specs), &err);

		is_int(result, cases[i].want ? -1 : 0, "%s", cases[i].given);
		if (cases[i].want) {
			ok(strncmp(err.message, cases[i].want, strlen(cases[i].want)) == 0, "message: %s", err.message);
		} else {
			abx_auto_free char *text = json_dumps(json_object_get(args, cases[i].name), JSON_ENCODE_ANY);

			is_str(text, cases[i].value, "the value of %s", cases[i].name);
		}
	}
	is_int(abx_args_check_list(empty, &required, 1, &err), -1, "a required argument that is left out");
	is_str(err.message, "must: is required", "its message");
	is_int(abx_args_check_list(null, &required, 1, &err), -1, "a required argument that is null");
	return done_testing();
}
