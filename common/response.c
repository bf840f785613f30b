#include "common/response.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 304, "Not Modified" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 411, "Length Required" },
	{ 413, "Payload Too Large" },
	{ 414, "URI Too Long" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

const char *abx_status_reason(int status)
{
	for (size_t i = 0; i < ABX_N(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

void abx_response_init(struct abx_response *res, struct abx_io *io)
{
	*res = (struct abx_response){ .io = io, .length = -1, .headers = ABX_STRBUF_INIT_MAX(64 << 10) };
}

void abx_response_release(struct abx_response *res)
{
	abx_strbuf_release(&res->headers);
}

void abx_response_header(struct abx_response *res, const char *name, const char *value)
{
	assert(res->state == ABX_RESPONSE_NEW);
	for (const char *p = value; *p; p++)
		assert((unsigned char)*p >= ' ');
	abx_strbuf_addf(&res->headers, "%s: %s\r\n", name, value);
}

/* The header block into `block`. */
static void write_head(struct abx_response *res, int status, const char *content_type, int64_t length,
		       struct abx_strbuf *block)
{
	abx_strbuf_addf(block, "Status: %d %s\r\n", status, abx_status_reason(status));
	if (content_type)
		abx_strbuf_addf(block, "Content-Type: %s\r\n", content_type);
	if (length >= 0)
		abx_strbuf_addf(block, "Content-Length: %lld\r\n", (long long)length);
	abx_strbuf_adds(block, "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
	abx_strbuf_add(block, res->headers.buf, res->headers.len);
	abx_strbuf_adds(block, "\r\n");
	if (res->headers.failed)
		block->failed = true;
	res->state = ABX_RESPONSE_BODY;
	res->status = status;
	res->length = length;
}

static int send(struct abx_response *res, const void *data, size_t len)
{
	if (res->io->ops->write(res->io, data, len) == 0)
		return 0;
	res->state = ABX_RESPONSE_BROKEN;
	return -1;
}

int abx_response_begin(struct abx_response *res, int status, const char *content_type, int64_t length)
{
	abx_auto_strbuf struct abx_strbuf block = ABX_STRBUF_INIT;

	assert(res->state == ABX_RESPONSE_NEW);
	write_head(res, status, content_type, length, &block);
	if (block.failed) {
		abx_response_abort(res);
		return -1;
	}
	return send(res, block.buf, block.len);
}

static void note_end(struct abx_response *res)
{
	void (*ending)(struct abx_response *) = res->ending;

	res->ending = NULL;
	if (ending)
		ending(res);
}

int abx_response_write(struct abx_response *res, const void *data, size_t len)
{
	if (res->state != ABX_RESPONSE_BODY)
		return -1;
	if (res->length >= 0 && res->sent + (int64_t)len >= res->length)
		note_end(res);
	if (!res->head && send(res, data, len) < 0)
		return -1;
	res->sent += (int64_t)len;
	return 0;
}

int abx_response_file(struct abx_response *res, int fd, int64_t offset, int64_t length)
{
	if (res->state != ABX_RESPONSE_BODY)
		return -1;
	if (!res->head && res->io->ops->send_file(res->io, fd, offset, length) < 0) {
		res->state = ABX_RESPONSE_BROKEN;
		return -1;
	}
	res->sent += length;
	return 0;
}

int abx_response_json(struct abx_response *res, int status, const struct abx_strbuf *body, struct abx_err *err)
{
	if (body->failed)
		return abx_err_set(err, ABX_E_INTERNAL, "The answer is too large for memory");
	/* A client that has gone is no error of the call: nobody is left to be told. */
	if (abx_response_begin(res, status, ABX_RESPONSE_JSON, (int64_t)body->len) == 0)
		abx_response_write(res, body->buf, body->len);
	return 0;
}

void abx_response_finish(struct abx_response *res)
{
	bool whole = res->state == ABX_RESPONSE_BODY && (res->head || res->length < 0 || res->sent == res->length);

	note_end(res);
	if (!whole)
		abx_response_abort(res);
}

void abx_response_abort(struct abx_response *res)
{
	res->state = ABX_RESPONSE_BROKEN;
	res->io->ops->abort(res->io);
}
