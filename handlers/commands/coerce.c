#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "handlers/commands/custom.h"

/* The names of `003`, and those of Python. */
static const struct {
	const char *name;
	enum abx_arg_type type;
} types[] = {
	{ "string", ABX_ARG_STRING }, { "integer", ABX_ARG_INT }, { "float", ABX_ARG_NUMBER }, { "boolean", ABX_ARG_BOOL },
	{ "str", ABX_ARG_STRING },    { "int", ABX_ARG_INT },     { "number", ABX_ARG_NUMBER }, { "bool", ABX_ARG_BOOL },
};

const char *const command_arg_type_names[] = { "string", "integer", "float", "boolean", NULL };

int command_arg_type(const char *name, enum abx_arg_type *ret_type)
{
	for (size_t i = 0; i < ABX_N(types); i++) {
		if (strcmp(types[i].name, name) == 0) {
			*ret_type = types[i].type;
			return 0;
		}
	}
	return -1;
}

static int cannot(const struct command_arg *arg, const char *wanted, const json_t *value, struct abx_err *err)
{
	/* A long text helps nobody. */
	if (json_is_string(value) && json_string_length(value) <= 80)
		return abx_err_set(err, ABX_E_VALUE, "%s: '%s' is not %s", arg->spec.name, json_string_value(value), wanted);
	return abx_err_set(err, ABX_E_VALUE, "%s: must be %s, not %s", arg->spec.name, wanted, abx_json_type_name(value));
}

/* The text without the blanks around it, and without underscores between digits: what Python takes for a number. NULL: it holds other blanks or NULs. */
static char *number_text(const json_t *value, char room[64])
{
	static const char blanks[] = " \t\n\r\f\v";
	const char *text = json_string_value(value);
	size_t n = 0;

	if (strlen(text) != json_string_length(value))
		return NULL;
	text += strspn(text, blanks);
	for (size_t i = 0; text[i]; i++) {
		bool between = text[i] == '_' && i > 0 && strchr("0123456789", text[i - 1]) && text[i + 1] && strchr("0123456789", text[i + 1]);

		if (strchr(blanks, text[i]))
			return text[i + strspn(text + i, blanks)] ? NULL : (room[n] = '\0', room);
		if (between)
			continue;
		if (n == 63)
			return NULL;
		room[n++] = text[i];
	}
	room[n] = '\0';
	return room;
}

/* What is a number to strtod and not to Python. */
static bool is_plain_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789+-.eE")];
}

static int add_integer(const struct command_arg *arg, const json_t *value, struct abx_json_writer *jw, struct abx_err *err)
{
	static const char wanted[] = "an integer";
	char room[64], *text, *end;

	if (json_is_integer(value)) {
		abx_jw_int(jw, json_integer_value(value));
	} else if (json_is_boolean(value)) {
		abx_jw_int(jw, json_is_true(value));
	} else if (json_is_real(value)) {
		double whole = trunc(json_real_value(value));

		if (!(whole >= -0x1p63 && whole < 0x1p63))
			return abx_err_set(err, ABX_E_VALUE, "%s: is too large for an integer", arg->spec.name);
		abx_jw_int(jw, (int64_t)whole);
	} else if (json_is_string(value) && (text = number_text(value, room)) && *text && !text[strspn(text, "0123456789+-")]) {
		errno = 0;
		long long number = strtoll(text, &end, 10);
		if (*end)
			return cannot(arg, wanted, value, err);
		if (errno)
			return abx_err_set(err, ABX_E_VALUE, "%s: is too large for an integer", arg->spec.name);
		abx_jw_int(jw, number);
	} else {
		return cannot(arg, wanted, value, err);
	}
	return 0;
}

static int add_float(const struct command_arg *arg, const json_t *value, struct abx_json_writer *jw, struct abx_err *err)
{
	static const char wanted[] = "a number";
	char room[64], *text, *end;
	double number;

	if (json_is_number(value)) {
		number = json_number_value(value);
	} else if (json_is_boolean(value)) {
		number = json_is_true(value);
	} else if (json_is_string(value) && (text = number_text(value, room)) && is_plain_number(text)) {
		number = strtod(text, &end);
		if (*end || !isfinite(number))
			return cannot(arg, wanted, value, err);
	} else {
		return cannot(arg, wanted, value, err);
	}
	abx_jw_double(jw, number);
	return 0;
}

static int add_boolean(const struct command_arg *arg, const json_t *value, struct abx_json_writer *jw, struct abx_err *err)
{
	static const char *const yes[] = { "true", "yes", "1" }, *const no[] = { "false", "no", "0" };
	int found = -1;

	if (json_is_boolean(value))
		found = json_is_true(value);
	else if (json_is_integer(value) && (json_integer_value(value) == 0 || json_integer_value(value) == 1))
		found = json_integer_value(value) == 1;
	for (size_t i = 0; json_is_string(value) && i < ABX_N(yes); i++) {
		if (strcasecmp(json_string_value(value), yes[i]) == 0)
			found = 1;
		if (strcasecmp(json_string_value(value), no[i]) == 0)
			found = 0;
	}
	if (found < 0)
		return cannot(arg, "a boolean (true, false, yes, no, 1 or 0)", value, err);
	abx_jw_bool(jw, found);
	return 0;
}

static void add_string(const json_t *value, struct abx_json_writer *jw)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	struct abx_json_writer own = ABX_JSON_WRITER_INIT(&text);

	if (json_is_string(value)) {
		abx_jw_value(jw, value);
		return;
	}
	abx_jw_value(&own, value);
	abx_jw_stringn(jw, text.buf, text.len);
	jw->out->failed |= text.failed;
}

static int add_value(const struct command_arg *arg, const json_t *value, struct abx_json_writer *jw, struct abx_err *err)
{
	if (json_is_null(value))
		abx_jw_null(jw);
	else if (arg->spec.type == ABX_ARG_INT)
		return add_integer(arg, value, jw, err);
	else if (arg->spec.type == ABX_ARG_NUMBER)
		return add_float(arg, value, jw, err);
	else if (arg->spec.type == ABX_ARG_BOOL)
		return add_boolean(arg, value, jw, err);
	else
		add_string(value, jw);
	return 0;
}

static int add_argument(const struct abx_request *req, const struct command_arg *arg, struct abx_json_writer *jw, struct abx_err *err)
{
	const json_t *value = json_object_get(req->args, arg->spec.name);
	json_auto_t *standard = NULL;

	if (!value && arg->spec.required)
		return abx_err_set(err, ABX_E_VALUE, "%s: is required", arg->spec.name);
	if (!value && arg->spec.default_json)
		value = standard = json_loads(arg->spec.default_json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (!value)
		return 0;
	abx_jw_key(jw, arg->spec.name);
	return add_value(arg, value, jw, err);
}

int command_arguments(const struct abx_request *req, const struct command *command, struct abx_strbuf *out, struct abx_err *err)
{
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(out);

	abx_jw_object(&jw);
	for (size_t i = 0; i < command->n_args; i++)
		if (add_argument(req, &command->args[i], &jw, err) < 0)
			return -1;
	abx_jw_object_end(&jw);
	return out->failed ? abx_err_set(err, ABX_E_INTERNAL, "Out of memory for the arguments") : 0;
}
