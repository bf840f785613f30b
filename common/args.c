#include "common/args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/uri.h"
#include "common/variables.h"

static int wrong_type(const struct abx_arg *arg, const char *wanted, const json_t *value, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_VALUE, "%s: must be %s, not %s", arg->name, wanted, abx_json_type_name(value));
}

static bool has_nul(const json_t *string)
{
	return strlen(json_string_value(string)) != json_string_length(string);
}

static int check_string(const struct abx_arg *arg, const json_t *value, struct abx_err *err)
{
	if (!json_is_string(value))
		return wrong_type(arg, "a string", value, err);
	if (arg->type == ABX_ARG_DATA)
		return 0;
	if (has_nul(value))
		return abx_err_set(err, ABX_E_VALUE, "%s: must not hold a NUL character", arg->name);
	if (arg->type == ABX_ARG_PATH && json_string_length(value) == 0)
		return abx_err_set(err, ABX_E_VALUE, "%s: must not be empty", arg->name);
	return 0;
}

static int check_paths(const struct abx_arg *arg, const json_t *value, struct abx_err *err)
{
	const struct abx_arg item_arg = { .name = arg->name, .type = ABX_ARG_PATH };
	const json_t *item;
	size_t i;

	if (!json_is_array(value))
		return wrong_type(arg, "a list of strings", value, err);
	if (json_array_size(value) == 0)
		return abx_err_set(err, ABX_E_VALUE, "%s: must not be empty", arg->name);
	json_array_foreach(value, i, item)
		if (check_string(&item_arg, item, err) < 0)
			return -1;
	return 0;
}

/* Names that begin with ABX_ are the server's own; the others are the caller's business (contract, section 8 "Process"). */
static int check_env(const struct abx_arg *arg, json_t *value, struct abx_err *err)
{
	const char *name;
	json_t *item;

	if (!json_is_object(value))
		return wrong_type(arg, "an object of strings", value, err);
	json_object_foreach(value, name, item) {
		if (!json_is_string(item))
			return abx_err_set(err, ABX_E_VALUE, "%s: the value of '%s' must be a string, not %s", arg->name,
					   name, abx_json_type_name(item));
		if (!*name || strchr(name, '='))
			return abx_err_set(err, ABX_E_VALUE, "%s: a name cannot be empty or hold '='", arg->name);
		if (has_nul(item))
			return abx_err_set(err, ABX_E_VALUE, "%s: the value of '%s' must not hold a NUL character",
					   arg->name, name);
		if (abx_variable_is_own(name))
			return abx_err_set(err, ABX_E_VARIABLE, "%s: '%s' cannot be set: it is one of the server's own", arg->name, name);
	}
	return 0;
}

static int check_value(const struct abx_arg *arg, json_t *value, struct abx_err *err)
{
	switch (arg->type) {
	case ABX_ARG_STRING:
	case ABX_ARG_DATA:
	case ABX_ARG_PATH:
		return check_string(arg, value, err);
	case ABX_ARG_PATHS:
		return check_paths(arg, value, err);
	case ABX_ARG_INT:
		return json_is_integer(value) ? 0 : wrong_type(arg, "an integer", value, err);
	case ABX_ARG_NUMBER:
		return json_is_number(value) ? 0 : wrong_type(arg, "a number", value, err);
	case ABX_ARG_BOOL:
		return json_is_boolean(value) ? 0 : wrong_type(arg, "a boolean", value, err);
	case ABX_ARG_OBJECT:
		return json_is_object(value) ? 0 : wrong_type(arg, "an object", value, err);
	case ABX_ARG_ARRAY:
		return json_is_array(value) ? 0 : wrong_type(arg, "an array", value, err);
	case ABX_ARG_ENV:
		return check_env(arg, value, err);
	case ABX_ARG_TIMEOUT:
	case ABX_ARG_ANY:
		return 0;
	}
	return 0;
}

/* The bytes that a base64 string holds, as a string that need not be UTF-8. NULL: it is no base64, or no string. */
static json_t *decode_name(const json_t *text)
{
	size_t len = json_string_length(text);
	abx_auto_free char *bytes = json_is_string(text) ? malloc(ABX_BASE64_DECODED(len)) : NULL;
	ssize_t n = bytes ? abx_base64_decode(json_string_value(text), len, bytes) : -1;

	return n < 0 ? NULL : json_stringn_nocheck(bytes, (size_t)n);
}

static json_t *decode_names(const json_t *list)
{
	json_auto_t *names = json_array();
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
		if (json_array_append_new(names, decode_name(item)) < 0)
			return NULL;
	return ABX_STEAL(names);
}

/* The twin of a path argument: the bytes of a name that is not UTF-8, or of a list of names. Replaces it by the path itself. */
static int take_twin(json_t *args, const struct abx_arg *arg, struct abx_err *err)
{
	bool list = arg->type == ABX_ARG_PATHS;
	abx_auto_strbuf struct abx_strbuf twin = ABX_STRBUF_INIT;
	const json_t *value;
	json_t *path;

	abx_strbuf_addf(&twin, "%s_base64", arg->name);
	value = json_object_get(args, twin.buf);
	if (!value || json_is_null(value))
		return 0;
	if (list ? !json_is_array(value) : !json_is_string(value))
		return abx_err_set(err, ABX_E_VALUE, "%s: must be %s, not %s", twin.buf, list ? "a list of strings" : "a string",
				   abx_json_type_name(value));
	if (json_object_get(args, arg->name) && !json_is_null(json_object_get(args, arg->name)))
		return abx_err_set(err, ABX_E_VALUE, "%s: give either %s or %s, not both", arg->name, arg->name, twin.buf);
	path = list ? decode_names(value) : decode_name(value);
	if (!path)
		return abx_err_set(err, ABX_E_VALUE, "%s: is not valid base64", twin.buf);
	json_object_set_new(args, arg->name, path);
	return 0;
}

/* What is no positive number means the default. */
static bool is_no_timeout(const struct abx_arg *arg, const json_t *value)
{
	return arg->type == ABX_ARG_TIMEOUT && !(json_is_number(value) && json_number_value(value) > 0);
}

static int check_arg(json_t *args, const struct abx_arg *arg, struct abx_err *err)
{
	json_t *value;

	if ((arg->type == ABX_ARG_PATH || arg->type == ABX_ARG_PATHS) && take_twin(args, arg, err) < 0)
		return -1;
	value = json_object_get(args, arg->name);
	if (value && (json_is_null(value) || is_no_timeout(arg, value))) {
		json_object_del(args, arg->name);
		value = NULL;
	}
	if (value)
		return check_value(arg, value, err);
	if (arg->required)
		return abx_err_set(err, ABX_E_VALUE, "%s: is required", arg->name);
	if (arg->default_json)
		json_object_set_new(args, arg->name, json_loads(arg->default_json, JSON_DECODE_ANY, NULL));
	return 0;
}

/* Decimal, as in JSON: strtod(3) would take hexadecimal as well. */
static json_t *number_from_text(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	return *text && !*end && isfinite(number) && !strpbrk(text, "xX") ? json_real(number) : NULL;
}

static json_t *integer_from_text(const char *text)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(text, &end, 10);
	return *text && !*end && !errno ? json_integer(number) : NULL;
}

/* A query parameter as the JSON value that its row wants. */
static int query_value(const struct abx_arg *arg, const struct abx_query_param *param, json_t **ret_value,
		       struct abx_err *err)
{
	switch (arg->type) {
	case ABX_ARG_INT:
		*ret_value = integer_from_text(param->value);
		if (!*ret_value)
			return abx_err_set(err, ABX_E_VALUE, "%s: must be an integer", arg->name);
		return 0;
	case ABX_ARG_NUMBER:
	case ABX_ARG_TIMEOUT:
		*ret_value = number_from_text(param->value);
		if (!*ret_value && arg->type == ABX_ARG_NUMBER)
			return abx_err_set(err, ABX_E_VALUE, "%s: must be a number", arg->name);
		return 0;
	case ABX_ARG_BOOL:
		*ret_value = json_boolean(abx_text_is_true(param->value));
		return 0;
	case ABX_ARG_STRING:
	case ABX_ARG_DATA:
	case ABX_ARG_PATH:
	case ABX_ARG_PATHS:
	case ABX_ARG_OBJECT:
	case ABX_ARG_ARRAY:
	case ABX_ARG_ENV:
	case ABX_ARG_ANY:
		break;
	}
	/* Not checked for UTF-8: a file's name may be any bytes. */
	*ret_value = json_stringn_nocheck(param->value, param->value_len);
	return 0;
}

static int add_query(const struct abx_request *req, const struct abx_arg *specs, size_t n, json_t *args,
		     struct abx_err *err)
{
	/* A POST of JSON takes its arguments from the body alone; a repeated parameter is refused all the same. */
	size_t wanted = req->endpoint->method != ABX_POST || req->raw_body ? n : 0;
	struct abx_query query;
	int result = 0;

	if (abx_query_parse(req->query, &query, err) < 0)
		return -1;
	for (size_t i = 0; i < wanted && result == 0; i++) {
		const struct abx_arg *arg = &specs[i];
		const struct abx_query_param *param = abx_query_find(&query, arg->name);
		json_t *value = NULL;

		if (param && (result = query_value(arg, param, &value, err)) == 0 && value)
			json_object_set_new(args, arg->name, value);
		if (arg->type == ABX_ARG_PATH) {
			abx_auto_strbuf struct abx_strbuf twin = ABX_STRBUF_INIT;

			abx_strbuf_addf(&twin, "%s_base64", arg->name);
			param = abx_query_find(&query, twin.buf);
			if (param)
				json_object_set_new(args, twin.buf, json_stringn_nocheck(param->value, param->value_len));
		}
	}
	abx_query_release(&query);
	return result;
}

int abx_args_check_list(json_t *args, const struct abx_arg *specs, size_t n, struct abx_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (check_arg(args, &specs[i], err) < 0)
			return -1;
	return 0;
}

int abx_args_check(struct abx_request *req, json_t *body, struct abx_err *err)
{
	const struct abx_arg *specs = req->raw_body ? req->endpoint->raw_args : req->endpoint->args;
	size_t n = req->raw_body ? req->endpoint->n_raw_args : req->endpoint->n_args;

	req->args = body ? body : json_object();
	if (!req->args)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (add_query(req, specs, n, req->args, err) < 0)
		return -1;
	return abx_args_check_list(req->args, specs, n, err);
}
