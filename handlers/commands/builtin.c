#include <string.h>

#include "common/args.h"
#include "common/command.h"
#include "common/transfer.h"
#include "handlers/commands/commands.h"

static const struct command_arg upload_args[] = {
	{ .spec = { "path", ABX_ARG_PATH, true, NULL }, .description = "Where to write, below the base directory." },
	{ .spec = { "content", ABX_ARG_DATA, false, NULL }, .description = "The file's text." },
	{ .spec = { "content_base64", ABX_ARG_DATA, false, NULL }, .description = "The file's bytes in base64, instead of content." },
};

static const struct command_arg download_args[] = {
	{ .spec = { "path", ABX_ARG_PATH, true, NULL }, .description = "The file to read." },
};

static const struct command_arg runshell_args[] = {
	{ .spec = { "cmd", ABX_ARG_STRING, true, NULL }, .description = "A command line for /bin/sh -c." },
	{ .spec = { "cwd", ABX_ARG_PATH, false, NULL }, .description = "Where to run it; the base directory by default." },
	{ .spec = { "env", ABX_ARG_ENV, false, NULL }, .description = "Further environment variables." },
	{ .spec = { "timeout", ABX_ARG_TIMEOUT, false, "300" }, .description = "Seconds after which it is killed." },
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

/* A string argument that was given another JSON type gets its JSON text, as str() would make it. */
static void coerce(json_t *args, const struct abx_arg *spec)
{
	const json_t *value = json_object_get(args, spec->name);
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);

	if (!value || json_is_null(value) || json_is_string(value) || strcmp(abx_arg_type_name(spec->type), "string") != 0)
		return;
	abx_jw_value(&jw, value);
	json_object_set_new(args, spec->name, json_stringn(text.buf, text.len));
}

struct builtin {
	int (*run)(struct abx_request *req, struct abx_err *err);
};

static int run_builtin(struct abx_request *req, const struct command *command, struct abx_err *err)
{
	const struct builtin *builtin = command->data;

	for (size_t i = 0; i < command->n_args; i++) {
		coerce(req->args, &command->args[i].spec);
		if (abx_args_check_list(req->args, &command->args[i].spec, 1, err) < 0)
			return -1;
	}
	return builtin->run(req, err);
}

int command_load_builtins(const struct abx_service *service ABX_UNUSED, struct abx_err *err)
{
	static const struct command_kind kind = { .name = "built-in", .run = run_builtin };
	static const char *const cut_content[] = { "content_base64", "content", NULL };
	static struct builtin download = { run_download }, runshell = { run_runshell }, upload = { run_upload };
	static const struct command builtins[] = {
		{ .name = "download", .description = "Read a file of the sandbox.", .args = download_args, .n_args = ABX_N(download_args),
		  .endpoint = "download", .data = &download },
		{ .name = "runshell", .description = "Run a shell command line.", .args = runshell_args, .n_args = ABX_N(runshell_args),
		  .endpoint = "shell", .data = &runshell },
		{ .name = "upload", .description = "Write a file into the sandbox.", .args = upload_args, .n_args = ABX_N(upload_args),
		  .endpoint = "upload", .cut = cut_content, .data = &upload },
	};

	for (size_t i = 0; i < ABX_N(builtins); i++) {
		struct command command = builtins[i];

		command.kind = &kind;
		if (command_registry_add(&command, err) < 0)
			return -1;
	}
	return 0;
}
