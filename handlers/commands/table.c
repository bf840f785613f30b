/* The commands group: named commands. */
#include "handlers/tables.h"

#include "handlers/commands/handlers.h"

const struct abx_endpoint abx_rows_commands[] = {
	{
		.id = "commands_list",
		.group = ABX_GROUP_COMMANDS,
		.method = ABX_GET,
		.path = "/commands",
		.summary = "Named commands and their arguments.",
		.fn = h_commands_list,
	},
	{
		.id = "commands_run",
		.group = ABX_GROUP_COMMANDS,
		.method = ABX_POST,
		.path = "/commands/{name}",
		.summary = "Run a named command.",
		.fn = h_commands_run,
		.flags = ABX_EP_RAW_ARGS,
		.limits = { .timeout_seconds = 300, .max_output_bytes = 67108864 },
	},
};

ABX_TABLE_END(commands);

const char *const abx_prefixes_commands[] = { "/commands", NULL };
