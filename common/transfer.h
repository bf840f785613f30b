/* Whole files in and out: what the upload and download endpoints and the commands of the same names share. */
#ifndef ABX_TRANSFER_H
#define ABX_TRANSFER_H

#include "common/request.h"

/* How a file is to be written. */
struct abx_upload_how {
	int64_t length, limit; /* announced bytes, and most that are taken (0: no limit) */
	int mode;              /* -1: that of a replaced file, else 0666 less the umask */
	bool overwrite;        /* false: ABX_E_FILE_EXISTS when something is there */
};

/* A file on its way in. Begun and released in place: it must not be moved in memory. */
struct abx_upload {
	struct abx_path target;
	struct abx_replacement rep;
	bool overwrite;
};

#define ABX_UPLOAD_INIT { .target = ABX_PATH_INIT, .rep = ABX_REPLACEMENT_INIT }

/* Check what can be checked before the first byte, and begin. Write to upload->rep.fd. */
int abx_upload_begin(struct abx_request *req, const char *path, const struct abx_upload_how *how, struct abx_upload *upload,
		     struct abx_err *err);

/* Put the file in its place. */
int abx_upload_commit(struct abx_upload *upload, struct abx_err *err);
void abx_upload_release(struct abx_upload *upload);
#define abx_auto_upload __attribute__((cleanup(abx_upload_release)))

/*
 * Write `data` to `path` atomically, parents made, the mode of a replaced file kept. `limit` bytes at most (ABX_E_TOO_LARGE). On success *ret_resolved is the absolute path, freed by the caller.
 */
int abx_file_put(struct abx_request *req, const char *path, const void *data, size_t len, int64_t limit,
		 char **ret_resolved, struct abx_err *err);

/* A regular file that was opened for reading. */
struct abx_file {
	int fd;
	int64_t size;
	struct stat st;
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
