#include "common/command.h"
#include "handlers/process/handlers.h"

static void free_argv(char ***argv)
{
	abx_argv_free(*argv);
}

int h_shell(struct abx_request *req, struct abx_err *err)
{
	/* Both streams at their cap, each byte escaped: what does not fit is an error, never a cut answer. */
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)1 << 30);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	char **argv __attribute__((cleanup(free_argv))) = abx_shlex_split(abx_arg_string(req, "command"), err);
	struct abx_spawn_result result;

	if (!argv)
		return -1;
	if (!argv[0])
		return abx_err_set(err, ABX_E_VALUE, "command: must not be blank");
	if (abx_command_run(req, argv, NULL, &result, err) < 0)
		return -1;
	abx_command_write(&jw, &result);
	abx_spawn_result_release(&result);
	return abx_response_json(&req->res, 200, &body, err);
}
