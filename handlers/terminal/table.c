/* The terminal group: pty sessions; the WebSocket itself is the pty daemon's. */
#include "handlers/tables.h"

#include "handlers/terminal/handlers.h"

static const struct abx_arg create_args[] = {
	{ "shell", ABX_ARG_STRING, false, "\"/bin/bash\"" },
	{ "cols", ABX_ARG_INT, false, "80" },
	{ "rows", ABX_ARG_INT, false, "24" },
	{ "env", ABX_ARG_ENV, false, NULL },
	{ "cwd", ABX_ARG_PATH, false, NULL },
};

static const struct abx_arg resize_args[] = {
	{ "cols", ABX_ARG_INT, true, NULL },
	{ "rows", ABX_ARG_INT, true, NULL },
};

static const struct abx_arg connect_args[] = {
	{ "session_id", ABX_ARG_STRING, true, NULL },
};

const struct abx_endpoint abx_rows_terminal[] = {
	{
		.id = "pty_create",
		.group = ABX_GROUP_TERMINAL,
		.method = ABX_POST,
		.path = "/pty/sessions",
		.summary = "Open a terminal session.",
		ABX_ARGS(create_args),
		.fn = h_pty_create,
	},
	{
		.id = "pty_list",
		.group = ABX_GROUP_TERMINAL,
		.method = ABX_GET,
		.path = "/pty/sessions",
		.summary = "Terminal sessions.",
		.fn = h_pty_list,
	},
	{
		.id = "pty_get",
		.group = ABX_GROUP_TERMINAL,
		.method = ABX_GET,
		.path = "/pty/sessions/{id}",
		.summary = "One terminal session.",
		.fn = h_pty_get,
	},
	{
		.id = "pty_resize",
		.group = ABX_GROUP_TERMINAL,
		.method = ABX_POST,
		.path = "/pty/sessions/{id}/resize",
		.summary = "Change the size of a terminal.",
		ABX_ARGS(resize_args),
		.fn = h_pty_resize,
	},
	{
		.id = "pty_delete",
		.group = ABX_GROUP_TERMINAL,
		.method = ABX_DELETE,
		.path = "/pty/sessions/{id}",
		.summary = "End a terminal session.",
		.fn = h_pty_delete,
	},
	{
		.id = "pty_connect",
		.group = ABX_GROUP_TERMINAL,
		.method = ABX_WS,
		.path = "/pty",
		.summary = "The WebSocket of a terminal session.",
		ABX_ARGS(connect_args),
		.flags = ABX_EP_STREAM,
	},
};

ABX_TABLE_END(terminal);

const char *const abx_prefixes_terminal[] = { "/pty/sessions", NULL };
