#include "common/command.h"
#include "handlers/process/handlers.h"
#include "handlers/process/proc.h"
#include "handlers/process/words.h"

int h_process_start(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	auto_words char **argv = words_of_command(req, ABX_E_VALUE, err);
	abx_auto_command struct abx_command command = ABX_COMMAND_INIT;
	pid_t pid;

	if (!argv || abx_command_prepare(req, argv, NULL, &command, err) < 0)
		return -1;
	struct proc_options options = {
		.command = abx_arg_string(req, "command"),
		.capture = abx_arg_bool(req, "capture_output"),
		.max_output = command.spawn.max_output,
		.timeout = command.spawn.timeout,
		.temp = &command.temp,
	};
	struct abx_start start = {
		.argv = argv,
		.env = &command.env,
		.cwd_fd = command.cwd.fd,
		.input = abx_arg_bool(req, "stdin"),
		.output = options.capture,
		.confine = command.spawn.confine,
	};
	if (procs_start(&start, &options, &pid, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_kint(&jw, "pid", pid);
	abx_jw_kstring(&jw, "command", options.command);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
