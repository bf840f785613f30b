#include "common/transfer.h"
#include "handlers/file_ops/handlers.h"

int h_download(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf head = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&head);
	abx_auto_file struct abx_file file = ABX_FILE_INIT;

	if (abx_file_open(req, abx_arg_string(req, "path"), req->rule->limits.max_bytes, &file, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "path", file.resolved);
	abx_jw_key(&jw, "content_base64");
	abx_strbuf_addc(&head, '"');
	return abx_file_send_base64(req, &file, &head, "\"}", err);
}
