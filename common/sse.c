#include "common/sse.h"

int abx_sse_begin(struct abx_response *res)
{
	abx_response_header(res, "X-Accel-Buffering", "no");
	if (abx_response_begin(res, 200, "text/event-stream", -1) < 0)
		return -1;
	return res->io->ops->flush(res->io);
}

void abx_sse_open(struct abx_strbuf *out, const char *name)
{
	abx_strbuf_adds(out, "event: ");
	abx_strbuf_adds(out, name);
	abx_strbuf_adds(out, "\ndata: ");
}

void abx_sse_close(struct abx_strbuf *out)
{
	abx_strbuf_adds(out, "\n\n");
}

void abx_sse_comment(struct abx_strbuf *out)
{
	abx_strbuf_adds(out, ": keep-alive\n\n");
}

static int send_block(struct abx_response *res, const struct abx_strbuf *block)
{
	if (block->failed) {
		abx_response_abort(res);
		return -1;
	}
	if (abx_response_write(res, block->buf, block->len) < 0)
		return -1;
	return res->io->ops->flush(res->io);
}

int abx_sse_event(struct abx_response *res, const char *name, const struct abx_strbuf *json)
{
	abx_auto_strbuf struct abx_strbuf block = ABX_STRBUF_INIT_MAX((size_t)64 << 20);

	if (json->failed)
		block.failed = true;
	abx_sse_open(&block, name);
	abx_strbuf_add(&block, json->buf, json->len);
	abx_sse_close(&block);
	return send_block(res, &block);
}

int abx_sse_heartbeat(struct abx_response *res)
{
	abx_auto_strbuf struct abx_strbuf block = ABX_STRBUF_INIT;

	abx_sse_comment(&block);
	return send_block(res, &block);
}
