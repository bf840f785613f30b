#include "policy/code.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/utf8.h"
#include "handlers/tables.h"
#include "policy/policy.h"

/* Room for "code:<name>" where rules are kept. */
#define NAME_MAX_BYTES 64

#define SEGMENTS_MAX 16
#define ROUTES_MAX   1000

/* What serves every route of the template's own, in the program where it is linked. */
ABX_HANDLER(custom_route);

static const struct abx_code *current;

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

/* ---- paths */

static int check_param(const char *segment, size_t len, const char **why)
{
	if (segment[len - 1] != '}' || len < 3 || isdigit((unsigned char)segment[1])) {
		*why = "a parameter is one whole segment, {name}";
		return -1;
	}
	for (size_t i = 1; i < len - 1; i++)
		if (!isalnum((unsigned char)segment[i]) && segment[i] != '_') {
			*why = "the name of a parameter has letters, digits and '_' only";
			return -1;
		}
	return 0;
}

static int check_literal(const char *segment, size_t len, const char **why)
{
	if ((len == 1 && *segment == '.') || (len == 2 && segment[0] == '.' && segment[1] == '.')) {
		*why = "it holds a segment '.' or '..'";
		return -1;
	}
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)segment[i]) && !strchr("-._~!$&'()*+,;=:@", segment[i])) {
			*why = "it holds a character that cannot stand in a URL's path";
			return -1;
		}
	return 0;
}

/* Whether the same name stands in an earlier parameter of the path. */
static bool is_repeated(const char *path, const char *param, size_t len)
{
	for (const char *p = strchr(path, '{'); p && p < param; p = strchr(p + 1, '{'))
		if (strncmp(p, param, len) == 0)
			return true;
	return false;
}

/* What is wrong with a route's path, or NULL. */
static const char *path_error(const char *path)
{
	size_t n_segments = 0, n_params = 0;
	const char *why = NULL;

	if (*path != '/')
		return "it does not begin with '/'";
	if (strlen(path) > ABX_CODE_ID_MAX)
		return "it is too long";
	if (strncmp(path, "/__lighttpd_error", 17) == 0)
		return "it is the server's own";
	if (!path[1])
		return NULL;
	for (const char *p = path; *p;) {
		size_t len = strcspn(p + 1, "/");

		if (!len)
			return p[1] ? "it holds an empty segment" : "it ends with '/': leave that out, callers may send it all the same";
		if ((p[1] == '{' ? check_param(p + 1, len, &why) : check_literal(p + 1, len, &why)) < 0)
			return why;
		if (p[1] == '{' && is_repeated(path, p + 1, len))
			return "a parameter's name occurs twice";
		n_params += p[1] == '{';
		n_segments++;
		p += 1 + len;
	}
	if (n_params > ABX_PATH_PARAMS || n_segments > SEGMENTS_MAX)
		return "it has too many segments or parameters";
	return NULL;
}

/* Whether two patterns fit the same paths and rank alike: the same literals, and parameters in the same places. */
static bool same_shape(const char *a, const char *b)
{
	while (*a && *b) {
		size_t len_a = strcspn(a + 1, "/"), len_b = strcspn(b + 1, "/");
		bool param = a[1] == '{';

		if (param != (b[1] == '{') || (!param && (len_a != len_b || memcmp(a + 1, b + 1, len_a) != 0)))
			return false;
		a += 1 + len_a;
		b += 1 + len_b;
	}
	return *a == *b;
}

/* ---- routes */

static int complain(const struct abx_code *code, const char *what, const char *which, struct abx_err *err, const char *why)
{
	return abx_err_set(err, ABX_E_VALUE, "%s: %s '%s': %s", code->name, what, which, why);
}

/* Whether another endpoint is what this one wants to be. `rows` are those of the table that come before. */
static int check_unique(const struct abx_code *code, const struct abx_endpoint *row, struct abx_err *err)
{
	size_t n = abx_endpoint_count_builtin();

	for (size_t i = 0; i < n + code->n_rows; i++) {
		const struct abx_endpoint *other = i < n ? abx_endpoint_at(i) : &code->rows[i - n];

		if (strcmp(other->id, row->id) == 0)
			return abx_err_set(err, ABX_E_VALUE, "%s: route '%s': %s has this id", code->name, row->id,
					   i < n ? "an endpoint of the server" : "another route");
		if (other->method == row->method && same_shape(other->path, row->path))
			return abx_err_set(err, ABX_E_VALUE, "%s: route '%s': %s %s is '%s' already", code->name, row->id,
					   abx_method_name(row->method), row->path, other->id);
	}
	return 0;
}

int abx_code_scopes(const json_t *list, char ***ret_scopes)
{
	char **scopes = json_is_array(list) ? calloc(1, sizeof(*scopes)) : NULL;
	const json_t *item;
	size_t i;

	if (!scopes)
		return -1;
	json_array_foreach(list, i, item)
		if (!json_is_string(item) || !json_string_length(item) || abx_list_add(&scopes, json_string_value(item)) < 0) {
			abx_list_free(scopes);
			return -1;
		}
	*ret_scopes = scopes;
	return 0;
}

static int take_route(struct abx_code *code, json_t *json, struct abx_err *err)
{
	struct abx_endpoint row = { .id = "", .fn = h_custom_route, .flags = ABX_EP_RAW_ARGS, .limits = { .timeout_seconds = ABX_CODE_TIMEOUT } };
	const char *method = "", *group = "", *why;
	const json_t *scopes = NULL;
	int streaming = 0, auth = 1;
	char **list;

	if (json_unpack(json, "{ss ss ss ss ss sb sb so}", "id", &row.id, "method", &method, "path", &row.path, "group",
			   &group, "summary", &row.summary, "streaming", &streaming, "auth_required", &auth, "scopes", &scopes) < 0)
		return complain(code, "a route", row.id, err, "a member is missing or of a wrong type");
	if (!*row.id || strlen(row.id) > ABX_CODE_ID_MAX || !is_plain(row.id))
		return complain(code, "route", row.id, err, "its name must have 1 to 160 bytes and no control character");
	row.method = abx_method_parse(method);
	if (row.method == ABX_METHOD_OTHER)
		return complain(code, "route", row.id, err, "its method must be GET, POST or DELETE");
	row.group = abx_group_find(group);
	if (row.group == ABX_GROUP__COUNT)
		return complain(code, "route", row.id, err, "its group is unknown");
	why = path_error(row.path);
	if (why)
		return complain(code, "route", row.id, err, why);
	if (check_unique(code, &row, err) < 0)
		return -1;
	if (abx_code_scopes(scopes, &list) < 0)
		return complain(code, "route", row.id, err, "its scopes must be texts");
	row.scopes = list;
	row.flags |= (streaming ? ABX_EP_STREAM : 0U) | (auth ? 0U : ABX_EP_OPEN);
	code->rows[code->n_rows++] = row;
	return 0;
}

static int take_routes(struct abx_code *code, const json_t *list, struct abx_err *err)
{
	json_t *item;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > ROUTES_MAX)
		return abx_err_set(err, ABX_E_VALUE, "%s: its routes must be a list of no more than %d", code->name, ROUTES_MAX);
	code->rows = calloc(json_array_size(list) + 1, sizeof(*code->rows));
	if (!code->rows)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	json_array_foreach(list, i, item)
		if (take_route(code, item, err) < 0)
			return -1;
	return 0;
}

/* ---- the rest of the table */

static int take_groups(struct abx_code *code, json_t *map, struct abx_err *err)
{
	const char *name;
	json_t *on;

	if (!json_is_object(map))
		return abx_err_set(err, ABX_E_VALUE, "%s: its groups must be an object", code->name);
	json_object_foreach(map, name, on) {
		enum abx_group group = abx_group_find(name);

		if (group == ABX_GROUP__COUNT || !json_is_boolean(on))
			return complain(code, "group", name, err, "is unknown, or neither true nor false");
		if (group == ABX_GROUP_CORE && json_is_false(on))
			return complain(code, "group", name, err, "core is always on: it cannot be disabled");
		code->groups[group] = json_is_true(on);
	}
	return 0;
}

static int check_arg(const struct abx_code *code, const char *command, const json_t *arg, struct abx_err *err)
{
	if (!json_is_string(json_object_get(arg, "name")) || !json_is_string(json_object_get(arg, "type")) ||
	    !json_is_string(json_object_get(arg, "description")) || !json_is_boolean(json_object_get(arg, "required")))
		return complain(code, "command", command, err, "a member of an argument is missing or of a wrong type");
	return 0;
}

/* The name is a segment of a path; what a URL cannot hold as it is callers percent-encode. */
static int check_command(const struct abx_code *code, const json_t *list, size_t index, struct abx_err *err)
{
	const json_t *command = json_array_get(list, index), *args = json_object_get(command, "args"), *timeout = json_object_get(command, "timeout"), *arg;
	const char *name = json_string_value(json_object_get(command, "name"));
	char **scopes;
	size_t i;

	if (!name || !*name || strchr(name, '/') || !is_plain(name))
		return complain(code, "command", name ? name : "", err, "its name is empty, or holds '/' or a control character");
	for (i = 0; i < index; i++)
		if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name) == 0)
			return complain(code, "command", name, err, "is defined twice");
	if (!json_is_string(json_object_get(command, "description")) || !json_is_boolean(json_object_get(command, "hidden")) || !json_is_array(args))
		return complain(code, "command", name, err, "a member is missing or of a wrong type");
	if (timeout && !json_is_null(timeout) && !(json_is_number(timeout) && json_number_value(timeout) > 0))
		return complain(code, "command", name, err, "its timeout must be a positive number");
	json_array_foreach(args, i, arg)
		if (check_arg(code, name, arg, err) < 0)
			return -1;
	if (abx_code_scopes(json_object_get(command, "scopes"), &scopes) < 0)
		return complain(code, "command", name, err, "its scopes must be texts");
	abx_list_free(scopes);
	return 0;
}

static int check_commands(const struct abx_code *code, const json_t *list, struct abx_err *err)
{
	if (!json_is_array(list))
		return abx_err_set(err, ABX_E_VALUE, "%s: its commands must be a list", code->name);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (check_command(code, list, i, err) < 0)
			return -1;
	return 0;
}

static int take_table(struct abx_code *code, struct abx_err *err)
{
	if (json_integer_value(json_object_get(code->json, "version")) != 1)
		return abx_err_set(err, ABX_E_VALUE, "The table of the template's code is of another version than this server");
	code->name = json_string_value(json_object_get(code->json, "name"));
	if (!code->name || !*code->name || strlen(code->name) > NAME_MAX_BYTES || strchr(code->name, '/') || !is_plain(code->name))
		return abx_err_set(err, ABX_E_VALUE, "The table of the template's code names no file");
	if (take_groups(code, json_object_get(code->json, "groups"), err) < 0 ||
	    check_commands(code, json_object_get(code->json, "commands"), err) < 0)
		return -1;
	return take_routes(code, json_object_get(code->json, "routes"), err);
}

struct abx_code *abx_code_parse(const char *text, size_t len, struct abx_err *err)
{
	struct abx_code *code = calloc(1, sizeof(*code));

	if (!code) {
		abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		return NULL;
	}
	memset(code->groups, -1, sizeof(code->groups));
	code->text = strndup(text, len);
	code->len = len;
	code->json = abx_json_parse(text, len, err);
	if (!code->json)
		abx_err_prefix(err, "The table of the template's code");
	if (!code->text || !code->json || take_table(code, err) < 0) {
		abx_code_free(code);
		return NULL;
	}
	return code;
}

void abx_code_free(struct abx_code *code)
{
	if (!code)
		return;
	for (size_t i = 0; i < code->n_rows; i++) {
		union {
			char *const *shared;
			char **own;
		} scopes = { .shared = code->rows[i].scopes };

		abx_list_free(scopes.own);
	}
	free(code->rows);
	json_decref(code->json);
	free(code->text);
	free(code);
}

void abx_code_use(struct abx_code *code)
{
	current = code;
	abx_endpoint_extend(code->rows, code->n_rows);
}

const struct abx_code *abx_code_current(void)
{
	return current;
}

int abx_code_adopt(const char *text)
{
	struct abx_err unused = ABX_ERR_INIT;
	struct abx_code *code;

	if (!text || current)
		return 0;
	code = abx_code_parse(text, strlen(text), &unused);
	if (!code)
		return -1;
	abx_code_use(code);
	return 0;
}
