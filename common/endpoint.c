#include "common/endpoint.h"

#include <string.h>

#include "handlers/tables.h"

#define GROUP(group, is_opt_in) { #group, is_opt_in, abx_rows_##group, &abx_n_rows_##group, abx_prefixes_##group }

const struct abx_group_info abx_groups[ABX_GROUP__COUNT] = {
	[ABX_GROUP_CORE] = GROUP(core, false),
	[ABX_GROUP_COMMANDS] = GROUP(commands, false),
	[ABX_GROUP_FILE_OPS] = GROUP(file_ops, false),
	[ABX_GROUP_PROCESS] = GROUP(process, false),
	[ABX_GROUP_TERMINAL] = GROUP(terminal, false),
	[ABX_GROUP_SYSTEM] = GROUP(system, false),
	[ABX_GROUP_DEV_TOOLS] = GROUP(dev_tools, true),
	[ABX_GROUP_BROWSER] = GROUP(browser, true),
	[ABX_GROUP_AGENTS] = GROUP(agents, true),
};

static const char *const method_names[] = {
	[ABX_GET] = "GET", [ABX_POST] = "POST", [ABX_DELETE] = "DELETE", [ABX_WS] = "WS",
};

static const char *const type_names[] = {
	[ABX_ARG_STRING] = "string",  [ABX_ARG_DATA] = "string",   [ABX_ARG_PATH] = "string",
	[ABX_ARG_PATHS] = "array",
	[ABX_ARG_INT] = "integer",    [ABX_ARG_NUMBER] = "number", [ABX_ARG_BOOL] = "boolean",
	[ABX_ARG_OBJECT] = "object",  [ABX_ARG_ARRAY] = "array",   [ABX_ARG_ENV] = "object",
	[ABX_ARG_TIMEOUT] = "number", [ABX_ARG_ANY] = "any",
};

enum abx_group abx_group_find(const char *name)
{
	enum abx_group group = 0;

	while (group < ABX_GROUP__COUNT && strcmp(abx_groups[group].name, name) != 0)
		group++;
	return group;
}

static const struct abx_endpoint *custom_rows;
static size_t n_custom;

void abx_endpoint_extend(const struct abx_endpoint *rows, size_t n)
{
	if (custom_rows)
		return;
	custom_rows = rows;
	n_custom = n;
}

bool abx_endpoint_is_custom(const struct abx_endpoint *endpoint)
{
	return custom_rows && endpoint >= custom_rows && endpoint < custom_rows + n_custom;
}

enum abx_group abx_endpoint_home(const struct abx_endpoint *endpoint)
{
	return abx_endpoint_is_custom(endpoint) ? ABX_GROUP_COMMANDS : endpoint->group;
}

size_t abx_endpoint_count_builtin(void)
{
	size_t n = 0;

	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		n += *abx_groups[g].n_rows;
	return n;
}

size_t abx_endpoint_count(void)
{
	return abx_endpoint_count_builtin() + n_custom;
}

const struct abx_endpoint *abx_endpoint_at(size_t index)
{
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++) {
		if (index < *abx_groups[g].n_rows)
			return &abx_groups[g].rows[index];
		index -= *abx_groups[g].n_rows;
	}
	return index < n_custom ? &custom_rows[index] : NULL;
}

size_t abx_endpoint_index(const struct abx_endpoint *endpoint)
{
	size_t index;

	if (abx_endpoint_is_custom(endpoint))
		return abx_endpoint_count_builtin() + (size_t)(endpoint - custom_rows);
	index = (size_t)(endpoint - abx_groups[endpoint->group].rows);
	for (size_t g = 0; g < endpoint->group; g++)
		index += *abx_groups[g].n_rows;
	return index;
}

const struct abx_endpoint *abx_endpoint_find(const char *id)
{
	size_t n = abx_endpoint_count();

	for (size_t i = 0; i < n; i++)
		if (strcmp(abx_endpoint_at(i)->id, id) == 0)
			return abx_endpoint_at(i);
	return NULL;
}

const char *abx_method_name(enum abx_method method)
{
	return method_names[method];
}

enum abx_method abx_method_parse(const char *name)
{
	for (enum abx_method m = ABX_GET; m <= ABX_DELETE; m++)
		if (strcmp(method_names[m], name) == 0)
			return m;
	return ABX_METHOD_OTHER;
}

const char *abx_arg_type_name(enum abx_arg_type type)
{
	return type_names[type];
}
