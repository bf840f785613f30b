#include <string.h>

#include "common/command.h"
#include "common/transfer.h"
#include "handlers/commands/commands.h"

static const struct command_arg upload_args[] = {
	{ { "path", ABX_ARG_PATH, true, NULL }, "Where to write, below the base directory." },
	{ { "content", ABX_ARG_DATA, false, NULL }, "The file's text." },
	{ { "content_base64", ABX_ARG_DATA, false, NULL }, "The file's bytes in base64, instead of content." },
};

static const struct command_arg download_args[] = {
	{ { "path", ABX_ARG_PATH, true, NULL }, "The file to read." },
};

static const struct command_arg runshell_args[] = {
	{ { "cmd", ABX_ARG_STRING, true, NULL }, "A command line for /bin/sh -c." },
	{ { "cwd", ABX_ARG_PATH, false, NULL }, "Where to run it; the base directory by default." },
	{ { "env", ABX_ARG_ENV, false, NULL }, "Further environment variables." },
	{ { "timeout", ABX_ARG_TIMEOUT, false, "300" }, "Seconds after which it is killed." },
};

static int run_upload(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_free char *resolved = NULL;
	bool text = abx_arg_given(req, "content"), base64 = abx_arg_given(req, "content_base64");
	const char *data = "";
	size_t len = 0;

	if (text == base64)
		return abx_err_set(err, ABX_E_VALUE, "content: give either content or content_base64");
	if (base64 && abx_arg_base64(req, "content_base64", &data, &len, err) < 0)
		return -1;
	if (text)
		abx_arg_data(req, "content", &data, &len);
	if (abx_file_put(req, abx_arg_string(req, "path"), data, len, req->rule->limits.max_bytes, &resolved, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_key(&jw, "result");
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "path", resolved);
	abx_jw_kint(&jw, "bytes", (int64_t)len);
	abx_jw_object_end(&jw);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}

static int run_download(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf head = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&head);
	abx_auto_file struct abx_file file = ABX_FILE_INIT;
	int text;

	if (abx_file_open(req, abx_arg_string(req, "path"), req->rule->limits.max_bytes, &file, err) < 0)
		return -1;
	text = abx_file_is_utf8(&file, err);
	if (text < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_key(&jw, "result");
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "path", file.resolved);
	abx_jw_key(&jw, text ? "content" : "content_base64");
	abx_strbuf_addc(&head, '"');
	if (text)
		return abx_file_send_text(req, &file, &head, "\"}}", err);
	return abx_file_send_base64(req, &file, &head, "\"}}", err);
}

static int run_runshell(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)1 << 30);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	char shell[] = "/bin/sh", option[] = "-c";
	abx_auto_free char *text = strdup(abx_arg_string(req, "cmd"));
	char *argv[] = { shell, option, text, NULL };
	struct abx_spawn_result result;

	if (!text)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (!text[strspn(text, " \t\r\n")])
		return abx_err_set(err, ABX_E_VALUE, "cmd: must not be blank");
	if (abx_command_run(req, argv, text, &result, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_key(&jw, "result");
	abx_command_write(&jw, &result);
	abx_jw_object_end(&jw);
	abx_spawn_result_release(&result);
	return abx_response_json(&req->res, 200, &body, err);
}

const struct command command_builtins[] = {
	{ "download", "Read a file of the sandbox.", download_args, ABX_N(download_args), "download", run_download },
	{ "runshell", "Run a shell command line.", runshell_args, ABX_N(runshell_args), "shell", run_runshell },
	{ "upload", "Write a file into the sandbox.", upload_args, ABX_N(upload_args), "upload", run_upload },
};

const size_t command_n_builtins = ABX_N(command_builtins);
