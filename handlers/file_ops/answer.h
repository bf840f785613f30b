/* What answers of several endpoints have in common. */
#ifndef ABX_FILE_OPS_ANSWER_H
#define ABX_FILE_OPS_ANSWER_H

#include <sys/stat.h>

#include "common/json.h"
#include "common/request.h"

/* A path or name under `key`, and as bytes under "<key>_base64" too where it is not UTF-8. */
void answer_path(struct abx_json_writer *jw, const char *key, const char *path);

/* A time in ISO 8601. */
void answer_time(struct abx_json_writer *jw, const char *key, struct timespec ts);

/* "directory", or "file" for everything else: to a list a link is one, too. */
const char *answer_list_type(bool is_dir);

/*
 * A JSON answer of any length: short ones are sent at the end, long ones as they are made, a record at a time. Write to `jw`. Begun and released in place.
 */
struct answer_stream {
	struct abx_request *req;
	struct abx_strbuf text;
	struct abx_json_writer jw;
	bool begun;
	int slot;
};

void answer_stream_init(struct answer_stream *stream, struct abx_request *req);

/* Send what has come together, when it is a record full. -1: before the response began, see *err; afterwards because the client has gone. */
int answer_stream_flush(struct answer_stream *stream, struct abx_err *err);

/* Send the rest. */
int answer_stream_end(struct answer_stream *stream, struct abx_err *err);
void answer_stream_release(struct answer_stream *stream);
#define auto_answer_stream __attribute__((cleanup(answer_stream_release)))

#endif
