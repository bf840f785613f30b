#include <string.h>

#include "common/overrides.h"
#include "common/request.h"
#include "common/spawn.h"
#include "common/variables.h"
#include "handlers/system/handlers.h"
#include "policy/evaluate.h"

/* Whether the comma-separated list names the variable. */
static bool list_holds(const char *list, const char *name, size_t len)
{
	while (*list) {
		size_t item, end;

		list += strspn(list, ", \t");
		item = strcspn(list, ",");
		for (end = item; end > 0 && strchr(" \t", list[end - 1]); end--)
			;
		if (end == len && len > 0 && memcmp(list, name, len) == 0)
			return true;
		list += item;
	}
	return false;
}

/*
 * Add the variable to `variables` unless it is to be left out. Of two with one name the first counts, as for
 * getenv(3).
 */
static void add_variable(const struct abx_request *req, const char *var, const char *filter, json_t *variables)
{
	struct abx_err hidden = ABX_ERR_INIT;
	const char *equals = strchr(var, '=');
	abx_auto_strbuf struct abx_strbuf name = ABX_STRBUF_INIT;

	if (!equals || (filter && !list_holds(filter, var, (size_t)(equals - var))))
		return;
	abx_strbuf_add(&name, var, (size_t)(equals - var));
	if (abx_variable_is_secret(name.buf) || json_object_get(variables, name.buf) ||
	    abx_rule_allows_variable(req->rule, name.buf, &hidden) < 0)
		return;
	json_object_set_new_nocheck(variables, name.buf, json_stringn_nocheck(equals + 1, strlen(equals + 1)));
}

/* What a child that starts now gets, so the settings of the server itself are not in it. */
int h_env_get(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_env struct abx_env env = { 0 };
	const char *filter = abx_arg_string(req, "filter");
	json_auto_t *variables = json_object();

	if (!variables || abx_env_init(&env) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (filter && !*filter)
		filter = NULL;
	for (size_t i = 0; i < env.n; i++)
		add_variable(req, env.vars[i], filter, variables);
	abx_jw_object(&jw);
	abx_jw_key(&jw, "variables");
	abx_jw_value(&jw, variables);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}

/* A value as Python's str() makes it; objects and lists are JSON. */
static void value_text(const json_t *value, struct abx_strbuf *out)
{
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(out);

	if (json_is_string(value))
		abx_strbuf_add(out, json_string_value(value), json_string_length(value));
	else if (json_is_boolean(value))
		abx_strbuf_adds(out, json_is_true(value) ? "True" : "False");
	else if (json_is_null(value))
		abx_strbuf_adds(out, "None");
	else
		abx_jw_value(&jw, value);
}

static int check_name(const struct abx_request *req, const char *name, struct abx_err *err)
{
	if (abx_variable_check_set(name, err) < 0)
		return abx_err_prefix(err, "vars");
	return abx_rule_allows_variable(req->rule, name, err);
}

/* Append "name=value" with its NUL. */
static int add_text(const char *name, const json_t *value, struct abx_strbuf *out, struct abx_err *err)
{
	size_t begin;

	abx_strbuf_addf(out, "%s=", name);
	begin = out->len;
	value_text(value, out);
	if (memchr(out->buf + begin, '\0', out->len - begin))
		return abx_err_set(err, ABX_E_VALUE, "vars: the value of '%s' must not hold a NUL character", name);
	abx_strbuf_addc(out, '\0');
	return 0;
}

int h_env_set(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT, vars = ABX_STRBUF_INIT_MAX(2 * ABX_BODY_MAX);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	json_t *given = json_object_get(req->args, "vars"), *value;
	const char *name;

	json_object_foreach(given, name, value)
		if (check_name(req, name, err) < 0 || add_text(name, value, &vars, err) < 0)
			return -1;
	if (vars.failed)
		return abx_err_set(err, ABX_E_TOO_LARGE, "vars: the values are too long");
	if (abx_overrides_set(req->service->board, vars.buf, vars.len, err) < 0)
		return abx_err_prefix(err, "vars");
	abx_jw_object(&jw);
	abx_jw_key(&jw, "updated");
	abx_jw_array(&jw);
	json_object_foreach(given, name, value) abx_jw_string(&jw, name);
	abx_jw_array_end(&jw);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
