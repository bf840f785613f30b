#include "handlers/file_ops/answer.h"

#include <stdlib.h>
#include <string.h>

#include "common/auto.h"
#include "common/base64.h"
#include "common/clock.h"
#include "common/utf8.h"
#include "handlers/file_ops/slots.h"

void answer_path(struct abx_json_writer *jw, const char *key, const char *path)
{
	abx_auto_strbuf struct abx_strbuf twin = ABX_STRBUF_INIT;
	abx_auto_free char *text = NULL;
	size_t len = strlen(path);

	abx_jw_kstring(jw, key, path);
	if (abx_utf8_is_valid(path, len))
		return;
	text = malloc(ABX_BASE64_ENCODED(len));
	if (!text) {
		jw->out->failed = true;
		return;
	}
	abx_strbuf_addf(&twin, "%s_base64", key);
	abx_jw_key(jw, twin.buf);
	abx_jw_stringn(jw, text, abx_base64_encode(path, len, text));
}

void answer_time(struct abx_json_writer *jw, const char *key, struct timespec ts)
{
	char iso[ABX_CLOCK_ISO_SIZE];

	abx_clock_iso(iso, ts);
	abx_jw_kstring(jw, key, iso);
}

const char *answer_list_type(bool is_dir)
{
	return is_dir ? "directory" : "file";
}

/* Bytes that are sent together. */
#define PIECE ((size_t)64 << 10)

void answer_stream_init(struct answer_stream *stream, struct abx_request *req)
{
	*stream = (struct answer_stream){ .req = req, .text = ABX_STRBUF_INIT, .slot = -1 };
	stream->jw.out = &stream->text;
}

int answer_stream_flush(struct answer_stream *stream, struct abx_err *err)
{
	struct abx_response *res = &stream->req->res;

	if (stream->text.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (stream->text.len < PIECE)
		return 0;
	if (!stream->begun) {
		stream->slot = slot_take(err);
		if (stream->slot < 0)
			return -1;
		stream->begun = true;
		if (abx_response_begin(res, 200, ABX_RESPONSE_JSON, -1) < 0)
			return abx_err_set(err, ABX_E_GONE, "The client left");
	}
	if (abx_response_write(res, stream->text.buf, stream->text.len) < 0)
		return abx_err_set(err, ABX_E_GONE, "The client left");
	abx_strbuf_reset(&stream->text);
	return 0;
}

int answer_stream_end(struct answer_stream *stream, struct abx_err *err)
{
	if (!stream->begun)
		return abx_response_json(&stream->req->res, 200, &stream->text, err);
	if (stream->text.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	abx_response_write(&stream->req->res, stream->text.buf, stream->text.len);
	return 0;
}

void answer_stream_release(struct answer_stream *stream)
{
	slot_release(&stream->slot);
	abx_strbuf_release(&stream->text);
}
