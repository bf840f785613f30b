/* The dev_tools group: code runs and git. */
#include "handlers/tables.h"

#include "handlers/dev_tools/handlers.h"

static const struct abx_arg code_args[] = {
	{ "code", ABX_ARG_DATA, true, NULL },
	{ "language", ABX_ARG_STRING, false, "\"python\"" },
	{ "timeout", ABX_ARG_TIMEOUT, false, "30" },
	{ "cwd", ABX_ARG_PATH, false, NULL },
	{ "env", ABX_ARG_ENV, false, NULL },
};

static const struct abx_arg status_args[] = {
	{ "path", ABX_ARG_PATH, false, "\".\"" },
};

static const struct abx_arg diff_args[] = {
	{ "path", ABX_ARG_PATH, false, "\".\"" },
	{ "staged", ABX_ARG_BOOL, false, "false" },
	{ "file", ABX_ARG_STRING, false, NULL },
};

static const char *const cut_code[] = { "code", NULL };

const struct abx_endpoint abx_rows_dev_tools[] = {
	{
		.id = "code_run",
		.group = ABX_GROUP_DEV_TOOLS,
		.method = ABX_POST,
		.path = "/code/run",
		.summary = "Run a piece of Python, JavaScript or shell.",
		ABX_ARGS(code_args),
		.fn = h_code_run,
		.limits = { .timeout_seconds = 300, .max_output_bytes = 67108864 },
		.cut = cut_code,
	},
	{
		.id = "git_status",
		.group = ABX_GROUP_DEV_TOOLS,
		.method = ABX_GET,
		.path = "/git/status",
		.summary = "Branch and changed files of a repository.",
		ABX_ARGS(status_args),
		.fn = h_git_status,
		.limits = { .timeout_seconds = 30 },
	},
	{
		.id = "git_diff",
		.group = ABX_GROUP_DEV_TOOLS,
		.method = ABX_GET,
		.path = "/git/diff",
		.summary = "Differences of a repository.",
		ABX_ARGS(diff_args),
		.fn = h_git_diff,
		.limits = { .timeout_seconds = 30, .max_output_bytes = 1048576 },
	},
};

ABX_TABLE_END(dev_tools);

const char *const abx_prefixes_dev_tools[] = { "/code", "/git", NULL };
