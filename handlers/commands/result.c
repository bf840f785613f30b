#include <string.h>

#include "common/json_value.h"
#include "common/utf8.h"
#include "handlers/commands/custom.h"

/* Up to here an answer goes out in one piece. */
#define ONE_PIECE ((size_t)8 << 10)

static const char before[] = "{\"result\": ", after[] = "}";

static int answer(struct abx_request *req, const char *value, size_t len, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;

	abx_strbuf_adds(&body, before);
	if (len <= ONE_PIECE) {
		abx_strbuf_add(&body, value, len);
		abx_strbuf_adds(&body, after);
		return abx_response_json(&req->res, 200, &body, err);
	}
	/* A client that has gone is no error of the call. */
	if (abx_response_begin(&req->res, 200, ABX_RESPONSE_JSON, (int64_t)(sizeof(before) + sizeof(after) - 2 + len)) == 0 &&
	    abx_response_write(&req->res, before, sizeof(before) - 1) == 0 && abx_response_write(&req->res, value, len) == 0)
		abx_response_write(&req->res, after, sizeof(after) - 1);
	return 0;
}

int command_result(struct abx_request *req, const struct command *command, const char *text, size_t len, struct abx_err *err)
{
	struct abx_err wrong = ABX_ERR_INIT;
	size_t start, value_len;

	if (abx_json_value_find(text, len, &start, &value_len, &wrong) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "The result of '%s' is not JSON: %s", command->name, wrong.message);
	return value_len ? answer(req, text + start, value_len, err) : answer(req, "null", 4, err);
}

int command_fail(struct abx_request *req, const char *message, size_t len, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX((size_t)1 << 20);

	abx_utf8_lossy(message, len, &text);
	abx_err_set(err, ABX_E_INTERNAL, "%s", text.buf);
	free(req->failure.message);
	req->failure.message = abx_strbuf_detach(&text);
	return -1;
}
