#include "common/transfer.h"
#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/handlers.h"
#include "handlers/file_ops/raw.h"
#include "handlers/file_ops/slots.h"

/* The setting limits what becomes JSON; raw bytes only obey a policy that asks for less. */
static int64_t raw_limit(const struct abx_request *req)
{
	int64_t limit = req->rule->limits.max_bytes;

	return limit < req->service->policy->max_upload ? limit : 0;
}

static int send_json(struct abx_request *req, const struct abx_file *file, bool with_size, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf head = ABX_STRBUF_INIT, tail = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&head);

	abx_jw_object(&jw);
	answer_path(&jw, "path", file->resolved);
	abx_jw_key(&jw, "content_base64");
	abx_strbuf_addc(&head, '"');
	abx_strbuf_addc(&tail, '"');
	if (with_size)
		abx_strbuf_addf(&tail, ", \"bytes\": %lld", (long long)file->size);
	abx_strbuf_addc(&tail, '}');
	if (tail.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	return abx_file_send_base64(req, file, &head, tail.buf, err);
}

static int download(struct abx_request *req, bool with_size, struct abx_err *err)
{
	abx_auto_file struct abx_file file = ABX_FILE_INIT;
	bool raw = abx_request_wants_raw(req);
	auto_slot int slot = slot_take(err);
	int64_t limit = raw ? raw_limit(req) : req->rule->limits.max_bytes;

	if (slot < 0 || abx_file_open(req, abx_arg_string(req, "path"), limit, &file, err) < 0)
		return -1;
	return raw ? raw_send(req, &file, err) : send_json(req, &file, with_size, err);
}

int h_download(struct abx_request *req, struct abx_err *err)
{
	return download(req, false, err);
}

int h_download_stream(struct abx_request *req, struct abx_err *err)
{
	return download(req, true, err);
}
