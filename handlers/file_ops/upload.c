#include <errno.h>
#include <stdlib.h>

#include "common/transfer.h"
#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/handlers.h"
#include "handlers/file_ops/slots.h"

/* Bytes of a raw body that are read and written at a time. */
#define PIECE ((size_t)128 << 10)

static int answer(struct abx_request *req, const char *resolved, int64_t bytes, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);

	abx_jw_object(&jw);
	answer_path(&jw, "path", resolved);
	abx_jw_kint(&jw, "bytes", bytes);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}

/* "644" or "0755". Returns -1 when the argument was left out. */
static int take_mode(const struct abx_request *req, int *ret_mode, struct abx_err *err)
{
	const char *text = abx_arg_string(req, "mode");
	char *end;
	long mode;

	*ret_mode = -1;
	if (!text)
		return 0;
	mode = strtol(text, &end, 8);
	if (*text < '0' || *text > '7' || *end || mode > 0777)
		return abx_err_set(err, ABX_E_VALUE, "mode: must be an octal number up to 777");
	*ret_mode = (int)mode;
	return 0;
}

/* Write the body, as it comes, to `fd`. */
static int receive(struct abx_request *req, int fd, int64_t limit, int64_t *ret_bytes, struct abx_err *err)
{
	abx_auto_free char *piece = malloc(PIECE);
	int64_t length = abx_request_length(req), bytes = 0;
	ssize_t n;

	if (!piece)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	while ((n = req->io->ops->read(req->io, piece, PIECE)) > 0) {
		bytes += n;
		if (limit > 0 && bytes > limit)
			return abx_err_set(err, ABX_E_TOO_LARGE, "The body has more than %lld bytes", (long long)limit);
		if (abx_write_all(fd, piece, (size_t)n) < 0)
			return abx_err_errno(err, errno, "Cannot write the file");
	}
	if (n < 0 || bytes < length)
		return abx_err_set(err, ABX_E_VALUE, "The request body ended early");
	*ret_bytes = bytes;
	return 0;
}

static int upload_raw(struct abx_request *req, struct abx_err *err)
{
	struct abx_upload_how how = {
		.length = abx_request_length(req),
		.limit = req->rule->limits.max_bytes,
		.overwrite = abx_arg_bool(req, "overwrite"),
	};
	abx_auto_upload struct abx_upload upload = ABX_UPLOAD_INIT;
	auto_slot int slot = -1;
	int64_t bytes;

	if (take_mode(req, &how.mode, err) < 0 || (slot = slot_take(err)) < 0 ||
	    abx_upload_begin(req, abx_arg_string(req, "path"), &how, &upload, err) < 0 ||
	    receive(req, upload.rep.fd, how.limit, &bytes, err) < 0 || abx_upload_commit(&upload, err) < 0)
		return -1;
	return answer(req, upload.target.resolved, bytes, err);
}

int h_upload(struct abx_request *req, struct abx_err *err)
{
	abx_auto_free char *resolved = NULL;
	const char *data;
	size_t len;

	if (req->raw_body)
		return upload_raw(req, err);
	if (abx_arg_base64(req, "content_base64", &data, &len, err) < 0 ||
	    abx_file_put(req, abx_arg_string(req, "path"), data, len, req->rule->limits.max_bytes, &resolved, err) < 0)
		return -1;
	return answer(req, resolved, (int64_t)len, err);
}

/* The body is whole by the time that we hear of it (or raw, and streamed on both), so there is no other way to write it than upload's. */
int h_upload_stream(struct abx_request *req, struct abx_err *err)
{
	return h_upload(req, err);
}
