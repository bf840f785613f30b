#include <stdlib.h>

#include "common/transfer.h"
#include "handlers/file_ops/handlers.h"

int h_upload(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_free char *resolved = NULL;
	const char *data;
	size_t len;

	if (abx_arg_base64(req, "content_base64", &data, &len, err) < 0 ||
	    abx_file_put(req, abx_arg_string(req, "path"), data, len, req->rule->limits.max_bytes, &resolved, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "path", resolved);
	abx_jw_kint(&jw, "bytes", (int64_t)len);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
