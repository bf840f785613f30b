/* List, look at, resize and close sessions: the pty daemon does it, and its answers are ours. */
#include "common/request.h"
#include "handlers/terminal/handlers.h"
#include "handlers/terminal/ptyd.h"

/* Ask, and send the answer on. Takes `request` over; NULL: out of memory. */
static int relay(struct abx_request *req, json_t *request, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	json_t *answer = request ? ptyd_ask(request, NULL, 0, err) : NULL;

	if (!request)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	json_decref(request);
	if (!answer)
		return -1;
	abx_jw_value(&jw, answer);
	json_decref(answer);
	return abx_response_json(&req->res, 200, &body, err);
}

int h_pty_list(struct abx_request *req, struct abx_err *err)
{
	return relay(req, json_pack("{s:s}", "op", "list"), err);
}

int h_pty_get(struct abx_request *req, struct abx_err *err)
{
	return relay(req, json_pack("{s:s, s:s}", "op", "get", "id", abx_request_param(req, "id")), err);
}

int h_pty_resize(struct abx_request *req, struct abx_err *err)
{
	return relay(req, json_pack("{s:s, s:s, s:I, s:I}", "op", "resize", "id", abx_request_param(req, "id"), "cols",
				    (json_int_t)abx_arg_int(req, "cols"), "rows", (json_int_t)abx_arg_int(req, "rows")), err);
}

int h_pty_delete(struct abx_request *req, struct abx_err *err)
{
	return relay(req, json_pack("{s:s, s:s}", "op", "delete", "id", abx_request_param(req, "id")), err);
}
