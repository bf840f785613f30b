#include "common/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/utf8.h"
#include "policy/evaluate.h"

/* File bytes whose base64 fills the records that are sent in one go (fcgi_io.c), and no character over. */
#define PIECE 49128

/* What the policy says of the file that would be written, by its own name and not by that of a link. A directory gives the same error whatever `overwrite` is. */
static int check_target(const struct abx_request *req, const struct abx_path *target, bool overwrite, struct abx_err *err)
{
	if (abx_rule_allows_extension(req->rule, target->name, err) < 0)
		return -1;
	if (!overwrite && target->fd >= 0 && !S_ISDIR(target->st.st_mode))
		return abx_err_rule(err, ABX_E_FILE_EXISTS, req->rule->keep_existing ? req->rule->values_rule : "", "File exists: %s",
				    target->resolved);
	return 0;
}

/* Before missing directories are made for it, which would stay behind. */
static int check_before(const struct abx_request *req, const char *path, bool overwrite, struct abx_err *err)
{
	abx_auto_path struct abx_path target = ABX_PATH_INIT;

	if (!(req->rule->given & (ABX_KEY_EXTENSIONS | ABX_KEY_OVERWRITE)))
		return 0;
	if (abx_path_resolve(req->roots, path, ABX_PATH_MISSING, &target, err) < 0)
		return -1;
	return check_target(req, &target, overwrite, err);
}

int abx_upload_begin(struct abx_request *req, const char *path, const struct abx_upload_how *how, struct abx_upload *upload,
		     struct abx_err *err)
{
	bool overwrite = how->overwrite && !req->rule->keep_existing;

	if (how->limit > 0 && how->length > how->limit)
		return abx_err_set(err, ABX_E_TOO_LARGE, "The file has %lld bytes; the limit is %lld", (long long)how->length,
				   (long long)how->limit);
	if (check_before(req, path, overwrite, err) < 0 || abx_path_resolve(req->roots, path, ABX_PATH_PARENTS, &upload->target, err) < 0 ||
	    check_target(req, &upload->target, overwrite, err) < 0 || abx_replacement_begin(&upload->target, 0666, &upload->rep, err) < 0)
		return -1;
	upload->overwrite = overwrite;
	if (how->mode >= 0 && fchmod(upload->rep.fd, (mode_t)how->mode) < 0)
		return abx_err_errno(err, errno, "%s", path);
	return 0;
}

int abx_upload_commit(struct abx_upload *upload, struct abx_err *err)
{
	return abx_replacement_commit(&upload->rep, upload->overwrite, err);
}

void abx_upload_release(struct abx_upload *upload)
{
	abx_replacement_release(&upload->rep);
	abx_path_release(&upload->target);
}

int abx_file_put(struct abx_request *req, const char *path, const void *data, size_t len, int64_t limit,
		 char **ret_resolved, struct abx_err *err)
{
	const struct abx_upload_how how = { .length = (int64_t)len, .limit = limit, .mode = -1, .overwrite = true };
	abx_auto_upload struct abx_upload upload = ABX_UPLOAD_INIT;

	if (abx_upload_begin(req, path, &how, &upload, err) < 0)
		return -1;
	if (abx_write_all(upload.rep.fd, data, len) < 0)
		return abx_err_errno(err, errno, "Cannot write %s", path);
	if (abx_upload_commit(&upload, err) < 0)
		return -1;
	*ret_resolved = ABX_STEAL(upload.target.resolved);
	return 0;
}

int abx_file_open(struct abx_request *req, const char *path, int64_t limit, struct abx_file *ret_file,
		  struct abx_err *err)
{
	abx_auto_path struct abx_path target = ABX_PATH_INIT;
	abx_auto_fd int fd = -1;

	if (abx_path_resolve(req->roots, path, 0, &target, err) < 0)
		return -1;
	if (!S_ISREG(target.st.st_mode))
		return abx_err_set(err, ABX_E_NO_FILE, "Not a file: %s", path);
	if (limit > 0 && target.st.st_size > limit)
		return abx_err_set(err, ABX_E_TOO_LARGE, "The file has %lld bytes; the limit is %lld",
				   (long long)target.st.st_size, (long long)limit);
	fd = abx_path_open(&target, O_RDONLY, err);
	if (fd < 0)
		return -1;
	ret_file->fd = abx_steal_fd(&fd);
	ret_file->size = target.st.st_size;
	ret_file->st = target.st;
	ret_file->resolved = ABX_STEAL(target.resolved);
	return 0;
}

void abx_file_close(struct abx_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->resolved);
	*file = (struct abx_file)ABX_FILE_INIT;
}

/* Read up to `len` bytes at `offset`, fewer only at the end of the file. */
static ssize_t read_full(int fd, char *buf, size_t len, int64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, buf + done, len - done, offset + (int64_t)done);

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int read_failed(int os_errno, const struct abx_file *file, struct abx_err *err)
{
	return abx_err_errno(err, os_errno, "Cannot read %s", file->resolved);
}

int abx_file_send_base64(struct abx_request *req, const struct abx_file *file, const struct abx_strbuf *head,
			 const char *tail, struct abx_err *err)
{
	abx_auto_free char *raw = malloc(PIECE), *text = malloc(ABX_BASE64_ENCODED(PIECE));
	int64_t length = (int64_t)(head->len + ABX_BASE64_ENCODED((size_t)file->size) + strlen(tail)), left = file->size;
	ssize_t n;

	if (!raw || !text || head->failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	/* The first piece is read before the status goes out, so that an unreadable file is an error and not a broken answer. */
	n = read_full(file->fd, raw, left < PIECE ? (size_t)left : PIECE, 0);
	if (n < 0)
		return read_failed(errno, file, err);
	if (abx_response_begin(&req->res, 200, ABX_RESPONSE_JSON, length) < 0 ||
	    abx_response_write(&req->res, head->buf, head->len) < 0)
		return 0;
	while (n > 0) {
		left -= n;
		if (abx_response_write(&req->res, text, abx_base64_encode(raw, (size_t)n, text)) < 0)
			return 0;
		n = left > 0 ? read_full(file->fd, raw, left < PIECE ? (size_t)left : PIECE, file->size - left) : 0;
	}
	if (left == 0)
		abx_response_write(&req->res, tail, strlen(tail));
	return 0;
}

int abx_file_send_text(struct abx_request *req, const struct abx_file *file, const struct abx_strbuf *head,
		       const char *tail, struct abx_err *err)
{
	abx_auto_free char *raw = malloc(PIECE);
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	int64_t offset = 0;
	ssize_t n;

	if (!raw || head->failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	/* How long the escaped text will be is not known: the web server frames it. */
	if (abx_response_begin(&req->res, 200, ABX_RESPONSE_JSON, -1) < 0 ||
	    abx_response_write(&req->res, head->buf, head->len) < 0)
		return 0;
	while (offset < file->size) {
		int64_t left = file->size - offset;

		n = read_full(file->fd, raw, left < PIECE ? (size_t)left : PIECE, offset);
		/* A character that goes on in the next piece is read again with it. */
		if (n > 0 && n < left)
			n = (ssize_t)abx_utf8_floor(raw, (size_t)n);
		abx_strbuf_reset(&text);
		if (n > 0)
			abx_json_escape(raw, (size_t)n, &text);
		if (n <= 0 || text.failed) {
			abx_response_abort(&req->res);
			return 0;
		}
		offset += n;
		if (abx_response_write(&req->res, text.buf, text.len) < 0)
			return 0;
	}
	abx_response_write(&req->res, tail, strlen(tail));
	return 0;
}

int abx_file_is_utf8(const struct abx_file *file, struct abx_err *err)
{
	abx_auto_free char *raw = malloc(PIECE);
	int64_t offset = 0;

	if (!raw)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	while (offset < file->size) {
		ssize_t n = read_full(file->fd, raw, PIECE, offset);
		size_t valid;

		if (n < 0)
			return read_failed(errno, file, err);
		valid = abx_utf8_valid_prefix(raw, (size_t)n);
		/* Up to three bytes at the end of a piece can be the beginning of a character that goes on in the next. */
		if ((size_t)n - valid > (n == PIECE ? 3 : 0))
			return 0;
		if (n < PIECE)
			break;
		offset += (int64_t)valid;
	}
	return 1;
}
