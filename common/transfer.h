/* Whole files in and out: what the upload and download endpoints and the commands of the same names share. */
#ifndef ABX_TRANSFER_H
#define ABX_TRANSFER_H

#include "common/request.h"

/*
 * Write `data` to `path` atomically, parents made, the mode of a replaced file kept. `limit` bytes at most (ABX_E_TOO_LARGE). On success *ret_resolved is the absolute path, freed by the caller.
 */
int abx_file_put(struct abx_request *req, const char *path, const void *data, size_t len, int64_t limit,
		 char **ret_resolved, struct abx_err *err);

/* A regular file that was opened for reading. */
struct abx_file {
	int fd;
	int64_t size;
	char *resolved;
};

#define ABX_FILE_INIT { .fd = -1 }

/* Open the regular file `path` of at most `limit` bytes. What is not one (missing, a directory, a FIFO) is ABX_E_NO_FILE. */
int abx_file_open(struct abx_request *req, const char *path, int64_t limit, struct abx_file *ret_file,
		  struct abx_err *err);
void abx_file_close(struct abx_file *file);
#define abx_auto_file __attribute__((cleanup(abx_file_close)))

/*
 * Send 200 with `head`, the file's bytes in base64, and `tail` (the JSON around them), in pieces of one record: nothing of the file is kept. A file that
 * shrinks meanwhile breaks the connection. 0, or -1 before the response began.
 */
int abx_file_send_base64(struct abx_request *req, const struct abx_file *file, const struct abx_strbuf *head,
			 const char *tail, struct abx_err *err);

/* The same with the bytes as a JSON string's content: the file must be UTF-8 (abx_file_is_utf8). */
int abx_file_send_text(struct abx_request *req, const struct abx_file *file, const struct abx_strbuf *head,
		       const char *tail, struct abx_err *err);

/* Whether the whole file is valid UTF-8: 1, 0, or -1 when it cannot be read. */
int abx_file_is_utf8(const struct abx_file *file, struct abx_err *err);

#endif
