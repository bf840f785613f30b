/* The core group: always on. */
#include "handlers/tables.h"

#include "handlers/core/handlers.h"

static const struct abx_arg check_args[] = {
	{ "endpoint", ABX_ARG_STRING, true, NULL },
	{ "path", ABX_ARG_STRING, false, NULL },
	{ "command", ABX_ARG_STRING, false, NULL },
	{ "language", ABX_ARG_STRING, false, NULL },
	{ "url", ABX_ARG_STRING, false, NULL },
	{ "variable", ABX_ARG_STRING, false, NULL },
};

const struct abx_endpoint abx_rows_core[] = {
	{
		.id = "health",
		.group = ABX_GROUP_CORE,
		.method = ABX_GET,
		.path = "/health",
		.summary = "Liveness probe (anonymous).",
		.fn = h_health,
		.flags = ABX_EP_PUBLIC,
	},
	{
		.id = "capabilities",
		.group = ABX_GROUP_CORE,
		.method = ABX_GET,
		.path = "/capabilities",
		.summary = "What this server offers to the caller, endpoint by endpoint.",
		.fn = h_capabilities,
	},
	{
		.id = "capabilities_check",
		.group = ABX_GROUP_CORE,
		.method = ABX_POST,
		.path = "/capabilities/check",
		.summary = "Whether one call would be allowed, and which rule says so.",
		ABX_ARGS(check_args),
		.fn = h_capabilities_check,
	},
};

ABX_TABLE_END(core);

const char *const abx_prefixes_core[] = { NULL };
