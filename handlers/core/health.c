#include "handlers/core/core.h"

int h_health(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;

	abx_strbuf_adds(&body, "{\"status\": \"ok\"}");
	return abx_response_json(&req->res, 200, &body, err);
}
