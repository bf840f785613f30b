/* The skeleton group: one endpoint that shows a row. */
#include "handlers/tables.h"

#include "handlers/skeleton/handlers.h"

ABX_TABLE(skeleton);

static const struct abx_arg greet_args[] = {
	{ "name", ABX_ARG_STRING, true, NULL },
	{ "times", ABX_ARG_INT, false, "1" },
};

const struct abx_endpoint abx_rows_skeleton[] = {
	{
		.id = "skeleton_greet",
		.group = ABX_GROUP_SYSTEM,
		.method = ABX_POST,
		.path = "/skeleton/{greeting}",
		.summary = "Greet somebody, some times over.",
		ABX_ARGS(greet_args),
		.fn = h_skeleton_greet,
	},
};

ABX_TABLE_END(skeleton);

const char *const abx_prefixes_skeleton[] = { "/skeleton", NULL };
