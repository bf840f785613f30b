#include "common/command.h"
#include "handlers/process/handlers.h"
#include "handlers/process/words.h"

int h_shell(struct abx_request *req, struct abx_err *err)
{
	/* Both streams at their cap, each byte escaped: what does not fit is an error, never a cut answer. */
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)1 << 30);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	auto_words char **argv = words_of_command(req, ABX_E_SHELL_SYNTAX, err);
	struct abx_spawn_result result;

	if (!argv || abx_command_run(req, argv, NULL, &result, err) < 0)
		return -1;
	abx_command_write(&jw, &result);
	abx_spawn_result_release(&result);
	return abx_response_json(&req->res, 200, &body, err);
}
