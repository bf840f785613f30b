/* The system group: facts about the machine. */
#include "handlers/tables.h"

#include "handlers/system/handlers.h"

static const struct abx_arg env_args[] = {
	{ "filter", ABX_ARG_STRING, false, NULL },
};

static const struct abx_arg env_set_args[] = {
	{ "vars", ABX_ARG_OBJECT, true, NULL },
};

static const struct abx_arg packages_args[] = {
	{ "manager", ABX_ARG_STRING, false, "\"pip\"" },
};

const struct abx_endpoint abx_rows_system[] = {
	{
		.id = "system_info",
		.group = ABX_GROUP_SYSTEM,
		.method = ABX_GET,
		.path = "/system/info",
		.summary = "Operating system, processors, memory, disk.",
		.fn = h_system_info,
	},
	{
		.id = "system_metrics",
		.group = ABX_GROUP_SYSTEM,
		.method = ABX_GET,
		.path = "/system/metrics",
		.summary = "Load, memory, disk and uptime.",
		.fn = h_system_metrics,
	},
	{
		.id = "env_get",
		.group = ABX_GROUP_SYSTEM,
		.method = ABX_GET,
		.path = "/env",
		.summary = "Environment variables, secrets left out.",
		ABX_ARGS(env_args),
		.fn = h_env_get,
	},
	{
		.id = "env_set",
		.group = ABX_GROUP_SYSTEM,
		.method = ABX_POST,
		.path = "/env",
		.summary = "Set environment variables for later children.",
		ABX_ARGS(env_set_args),
		.fn = h_env_set,
	},
	{
		.id = "ports",
		.group = ABX_GROUP_SYSTEM,
		.method = ABX_GET,
		.path = "/ports",
		.summary = "Listening TCP ports.",
		.fn = h_ports,
	},
	{
		.id = "packages",
		.group = ABX_GROUP_SYSTEM,
		.method = ABX_GET,
		.path = "/packages",
		.summary = "Installed packages of pip or npm.",
		ABX_ARGS(packages_args),
		.fn = h_packages,
		.limits = { .timeout_seconds = 10 },
	},
};

ABX_TABLE_END(system);

const char *const abx_prefixes_system[] = { "/system", "/env", "/ports", "/packages", NULL };
