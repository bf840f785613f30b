#include "common/request.h"
#include "handlers/skeleton/handlers.h"

#define TIMES_MAX 100

/* Arguments were checked against the row; what only the handler can know is checked here, and every failure is one return. */
int h_skeleton_greet(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	int64_t times = abx_arg_int(req, "times");

	if (times < 1 || times > TIMES_MAX)
		return abx_err_set(err, ABX_E_VALUE, "times: must be from 1 to %d", TIMES_MAX);
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "greeting", abx_request_param(req, "greeting"));
	abx_jw_kstring(&jw, "name", abx_arg_string(req, "name"));
	abx_jw_kint(&jw, "times", times);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
