/* The process group: commands and background processes. */
#include "handlers/tables.h"

#include "handlers/process/handlers.h"

static const struct abx_arg shell_args[] = {
	{ "command", ABX_ARG_STRING, true, NULL },
	{ "cwd", ABX_ARG_PATH, false, NULL },
	{ "env", ABX_ARG_ENV, false, NULL },
	{ "timeout", ABX_ARG_TIMEOUT, false, "300" },
};

static const struct abx_arg start_args[] = {
	{ "command", ABX_ARG_STRING, true, NULL },
	{ "cwd", ABX_ARG_PATH, false, NULL },
	{ "env", ABX_ARG_ENV, false, NULL },
	{ "timeout", ABX_ARG_TIMEOUT, false, NULL },
	{ "capture_output", ABX_ARG_BOOL, false, "false" },
	{ "stdin", ABX_ARG_BOOL, false, "false" },
};

static const struct abx_arg signal_args[] = {
	{ "signal", ABX_ARG_INT, true, NULL },
};

static const struct abx_arg stdin_args[] = {
	{ "data", ABX_ARG_DATA, false, NULL },
	{ "data_base64", ABX_ARG_DATA, false, NULL },
	{ "eof", ABX_ARG_BOOL, false, "false" },
};

static const struct abx_arg output_args[] = {
	{ "since", ABX_ARG_INT, false, "0" },
	{ "wait", ABX_ARG_NUMBER, false, "0" },
};

static const char *const cut_data[] = { "data", "data_base64", NULL };

const struct abx_endpoint abx_rows_process[] = {
	{
		.id = "shell",
		.group = ABX_GROUP_PROCESS,
		.method = ABX_POST,
		.path = "/shell",
		.summary = "Run a command and wait for its end.",
		ABX_ARGS(shell_args),
		.fn = h_shell,
		.limits = { .timeout_seconds = 300, .max_output_bytes = 67108864 },
	},
	{
		.id = "shell_stream",
		.group = ABX_GROUP_PROCESS,
		.method = ABX_POST,
		.path = "/shell/stream",
		.summary = "Run a command and stream its output by lines.",
		ABX_ARGS(shell_args),
		.fn = h_shell_stream,
		.flags = ABX_EP_STREAM,
		.limits = { .timeout_seconds = 300 },
	},
	{
		.id = "process_start",
		.group = ABX_GROUP_PROCESS,
		.method = ABX_POST,
		.path = "/process/start",
		.summary = "Start a background process.",
		ABX_ARGS(start_args),
		.fn = h_process_start,
		.limits = { .max_output_bytes = 1048576 },
	},
	{
		.id = "process_list",
		.group = ABX_GROUP_PROCESS,
		.method = ABX_GET,
		.path = "/process/list",
		.summary = "Running background processes.",
		.fn = h_process_list,
	},
	{
		.id = "process_get",
		.group = ABX_GROUP_PROCESS,
		.method = ABX_GET,
		.path = "/process/{pid}",
		.summary = "State of a background process.",
		.fn = h_process_get,
	},
	{
		.id = "process_signal",
		.group = ABX_GROUP_PROCESS,
		.method = ABX_POST,
		.path = "/process/{pid}/signal",
		.summary = "Send a signal to a background process.",
		ABX_ARGS(signal_args),
		.fn = h_process_signal,
	},
	{
		.id = "process_stdin",
		.group = ABX_GROUP_PROCESS,
		.method = ABX_POST,
		.path = "/process/{pid}/stdin",
		.summary = "Write to the standard input of a background process.",
		ABX_ARGS(stdin_args),
		.fn = h_process_stdin,
		.cut = cut_data,
	},
	{
		.id = "process_output",
		.group = ABX_GROUP_PROCESS,
		.method = ABX_GET,
		.path = "/process/{pid}/output",
		.summary = "Captured output of a background process.",
		ABX_ARGS(output_args),
		.fn = h_process_output,
	},
};

ABX_TABLE_END(process);

const char *const abx_prefixes_process[] = { "/shell", "/process", NULL };
