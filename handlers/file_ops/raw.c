#include "handlers/file_ops/raw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/file_ops/http.h"

#define RAW_TYPE "application/octet-stream"

struct validators {
	char etag[HTTP_ETAG_SIZE], date[HTTP_DATE_SIZE];
};

static bool caller_has_it(const struct abx_request *req, const struct abx_file *file, const struct validators *validators)
{
	const char *tags = abx_request_variable(req, "HTTP_IF_NONE_MATCH");
	const char *since = abx_request_variable(req, "HTTP_IF_MODIFIED_SINCE");

	if (tags)
		return http_etag_listed(tags, validators->etag);
	return since && http_not_modified_since(since, file->st.st_mtime);
}

/* Which part is asked for. */
static enum http_range find_part(const struct abx_request *req, const struct abx_file *file,
				 const struct validators *validators, int64_t *ret_first, int64_t *ret_length)
{
	const char *range = abx_request_variable(req, "HTTP_RANGE");
	const char *condition = abx_request_variable(req, "HTTP_IF_RANGE");

	*ret_first = 0;
	*ret_length = file->size;
	if (!range || (condition && !http_if_range(condition, validators->etag, validators->date)))
		return HTTP_RANGE_WHOLE;
	return http_range_parse(range, file->size, ret_first, ret_length);
}

static int add_headers(struct abx_request *req, const struct abx_file *file, const struct validators *validators,
		       struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf disposition = ABX_STRBUF_INIT;

	http_disposition(strrchr(file->resolved, '/') + 1, &disposition);
	if (disposition.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	abx_response_header(&req->res, "Content-Disposition", disposition.buf);
	abx_response_header(&req->res, "Last-Modified", validators->date);
	abx_response_header(&req->res, "ETag", validators->etag);
	abx_response_header(&req->res, "Accept-Ranges", "bytes");
	return 0;
}

static int refuse_range(struct abx_request *req, const struct abx_file *file, struct abx_err *err)
{
	char text[48];

	snprintf(text, sizeof(text), "bytes */%lld", (long long)file->size);
	abx_response_header(&req->res, "Content-Range", text);
	return abx_err_set(err, ABX_E_RANGE, "Range: the file has %lld bytes", (long long)file->size);
}

int raw_send(struct abx_request *req, const struct abx_file *file, struct abx_err *err)
{
	struct validators validators;
	enum http_range range;
	int64_t first, length;

	http_etag(validators.etag, &file->st);
	http_date(validators.date, file->st.st_mtime);
	if (caller_has_it(req, file, &validators)) {
		abx_response_header(&req->res, "ETag", validators.etag);
		abx_response_begin(&req->res, 304, NULL, -1);
		return 0;
	}
	range = find_part(req, file, &validators, &first, &length);
	if (range == HTTP_RANGE_UNSATISFIABLE)
		return refuse_range(req, file, err);
	if (add_headers(req, file, &validators, err) < 0)
		return -1;
	if (range == HTTP_RANGE_PART) {
		char text[80];

		snprintf(text, sizeof(text), "bytes %lld-%lld/%lld", (long long)first, (long long)(first + length - 1),
			 (long long)file->size);
		abx_response_header(&req->res, "Content-Range", text);
	}
	if (abx_response_begin(&req->res, range == HTTP_RANGE_PART ? 206 : 200, RAW_TYPE, length) < 0)
		return 0;
	abx_response_file(&req->res, file->fd, first, length);
	return 0;
}
