/*
 * One call that is handed to the worker (common/worker.h): the question goes out and the frames of the answer come in, in the thread of the request.
 *
 * Whoever waits here watches the caller, the server's end, the time that the call has, and whether there is a worker at all.
 */
#ifndef ABX_COMMANDS_CALL_H
#define ABX_COMMANDS_CALL_H

#include "common/request.h"
#include "common/worker.h"

/* Calls that the worker has at a time: more are ABX_E_TABLE_FULL. */
#define CALLS_MAX 128

struct call {
	struct abx_request *req;
	const struct abx_strbuf *question; /* the payload of Q */
	const char *what;                  /* "Command 'x'", for messages */
	int fd, their_fd;  /* our end; the other one, until it is handed over. -1: none */
	bool counted;
	bool heard;    /* something of an answer has come */
	bool answered; /* to the last byte: the connection can carry another call */
	unsigned tries;
	double timeout;      /* seconds */
	int64_t began_ms;
	int64_t deadline_ms; /* INT64_MAX: none any more */
	int64_t beat_ms;     /* when the next comment line is due on a stream; INT64_MAX: it is none */
	unsigned char headers[2][ABX_WORKER_HEADER]; /* of Q and B */
	size_t sent;         /* bytes of both frames */
	char *in;            /* bytes that have come */
	size_t in_at, in_len;
};

#define CALL_INIT { .fd = -1, .their_fd = -1, .deadline_ms = INT64_MAX, .beat_ms = INT64_MAX }

/* Begin it, with req->body. `question` and `what` are borrowed until the end. */
int call_begin(struct call *call, struct abx_request *req, const struct abx_strbuf *question, double timeout, const char *what, struct abx_err *err);

/*
 * Wait for the next frame. Failures: ABX_E_TIMEOUT; ABX_E_UNAVAILABLE: no worker comes up, or the server stops; ABX_E_GONE: the caller has left;
 * ABX_E_INTERNAL: the worker ended during the call, or sent nonsense.
 */
int call_next(struct call *call, struct abx_worker_frame *ret_frame, struct abx_err *err);

/* Some bytes of the frame's payload, of which `left` are still to come: at least one, valid until the next function. Returns their number, or -1. */
ssize_t call_take(struct call *call, size_t left, const char **ret_data, struct abx_err *err);

/* Send `len` bytes of the payload to the caller, as they come. ABX_E_GONE: the caller has left. */
int call_pass_on(struct call *call, size_t len, struct abx_err *err);

/* The whole payload of a frame that is JSON. A new reference, or NULL. */
json_t *call_json(struct call *call, const struct abx_worker_frame *frame, struct abx_err *err);

/* The worker has answered in a way that nobody can pass on. Returns -1. */
int call_nonsense(const struct call *call, const char *what, struct abx_err *err);

/* From now on it is a stream of events: it has no deadline, and silence is broken by comment lines. */
void call_stream(struct call *call);

/* Something was sent to the caller. */
void call_sent(struct call *call);

/* What the worker said of a failure becomes the request's answer. Returns -1. */
int call_fail(struct call *call, const struct abx_worker_frame *frame, struct abx_err *err);

/* Give up what is left of it: unless it was answered the worker sees its end. */
void call_end(struct call *call);
#define auto_call __attribute__((cleanup(call_end)))

/* Append the caller for the question: {"id", "scopes"} or null. */
void call_write_identity(struct abx_json_writer *jw, const struct abx_request *req);

#endif
