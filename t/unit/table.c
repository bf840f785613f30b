/* The rows of all groups: what holds for every one of them. */
#include <ctype.h>

#include "common/endpoint.h"
#include "common/json.h"
#include "t/tap.h"

/* Endpoints per group, from the contract's section 2. */
static const struct {
	const char *group;
	size_t n;
	bool opt_in;
} groups[] = {
	{ "core", 3, false },	{ "commands", 2, false }, { "file_ops", 12, false }, { "process", 8, false },
	{ "terminal", 6, false }, { "system", 6, false }, { "dev_tools", 3, true },  { "browser", 7, true },
	{ "agents", 70, true },
};

static bool is_identifier(const char *id)
{
	for (; *id; id++)
		if (!islower((unsigned char)*id) && *id != '_')
			return false;
	return true;
}

static bool has_prefix(const struct abx_group_info *group, const char *path)
{
	for (const char *const *p = group->prefixes; *p; p++) {
		size_t len = strlen(*p);

		if (strncmp(path, *p, len) == 0 && (path[len] == '/' || path[len] == '\0'))
			return true;
	}
	return false;
}

static void check_row(const struct abx_endpoint *row)
{
	const struct abx_group_info *group = &abx_groups[row->group];

	ok(is_identifier(row->id), "%s: the id is lower case", row->id);
	ok(row->path[0] == '/', "%s: the path is absolute", row->id);
	ok(row->summary[0] && row->summary[strlen(row->summary) - 1] == '.', "%s: the summary is a sentence", row->id);
	ok(abx_endpoint_find(row->id) == row, "%s: the id is unique", row->id);
	ok(abx_endpoint_at(abx_endpoint_index(row)) == row, "%s: the index leads back", row->id);
	if (row->group != ABX_GROUP_CORE && row->method != ABX_WS)
		ok(has_prefix(group, row->path), "%s: the web server routes the path to the group", row->id);
	if (row->group == ABX_GROUP_AGENTS)
		is_str(row->scope, "agents:use", "%s: the default scope", row->id);
	else
		is_str(row->scope, NULL, "%s: no default scope", row->id);
	for (size_t i = 0; i < row->n_args; i++) {
		const struct abx_arg *arg = &row->args[i];
		json_t *value = arg->default_json ? json_loads(arg->default_json, JSON_DECODE_ANY, NULL) : NULL;

		ok(!arg->default_json || value, "%s: the default of %s is JSON", row->id, arg->name);
		ok(!(arg->required && arg->default_json), "%s: %s is required or has a default", row->id, arg->name);
		json_decref(value);
	}
	for (size_t i = 0; i < abx_endpoint_count(); i++) {
		const struct abx_endpoint *other = abx_endpoint_at(i);

		if (other != row && other->method == row->method && strcmp(other->path, row->path) == 0)
			ok(false, "%s and %s are the same call", row->id, other->id);
	}
}

int main(void)
{
	is_int(ABX_N(groups), ABX_GROUP__COUNT, "the number of groups");
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++) {
		is_str(abx_groups[g].name, groups[g].group, "the name of group %zu", g);
		is_int((long long)*abx_groups[g].n_rows, (long long)groups[g].n, "%s: the number of rows", groups[g].group);
		is_int(abx_groups[g].opt_in, groups[g].opt_in, "%s: opt-in or not", groups[g].group);
		is_int(abx_group_find(groups[g].group), (int)g, "%s: found by name", groups[g].group);
		for (size_t i = 0; i < *abx_groups[g].n_rows; i++) {
			is_int(abx_groups[g].rows[i].group, (int)g, "%s: the row's group", abx_groups[g].rows[i].id);
			check_row(&abx_groups[g].rows[i]);
		}
	}
	is_int(abx_group_find("nothing"), ABX_GROUP__COUNT, "an unknown group");
	ok(abx_endpoint_find("nothing") == NULL, "an unknown endpoint");
	ok(abx_endpoint_at(abx_endpoint_count()) == NULL, "an index past the end");
	return done_testing();
}
