/*
 * The response: a state machine that sends one header block and one body.
 *
 * Headers that every response has (Cache-Control, X-Content-Type-Options, X-Request-Id) are added here. A failure after the header went out
 * cannot become an error body any more: the connection is broken instead.
 */
#ifndef ABX_RESPONSE_H
#define ABX_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/io.h"
#include "common/strbuf.h"

enum abx_response_state { ABX_RESPONSE_NEW, ABX_RESPONSE_BODY, ABX_RESPONSE_BROKEN };

struct abx_response {
	struct abx_io *io;
	enum abx_response_state state;
	int status;                /* 0 before the header went out */
	int64_t length, sent;      /* announced and sent bytes of the body; length -1: not announced */
	bool head;                 /* the answer to a HEAD: the body is counted and not sent */
	struct abx_strbuf headers; /* lines that were added */
	void (*ending)(struct abx_response *res); /* called once, before the last bytes of the answer go out; or NULL */
};

#define ABX_RESPONSE_JSON "application/json; charset=utf-8"

void abx_response_init(struct abx_response *res, struct abx_io *io);
void abx_response_release(struct abx_response *res);

/* Add a header line, before the body begins. `value` holds no control character (asserted). */
void abx_response_header(struct abx_response *res, const char *name, const char *value);

/* Send the header block. `length` -1: unknown, the web server frames the body. 0 or -1 (the client has gone). */
int abx_response_begin(struct abx_response *res, int status, const char *content_type, int64_t length);

/* Send body bytes. 0 or -1: the client has gone; stop the work. */
int abx_response_write(struct abx_response *res, const void *data, size_t len);

/*
 * Send `length` bytes of a file from `offset`. A file that became shorter meanwhile, or cannot be read, breaks the connection. 0 or -1: stop the
 * work.
 */
int abx_response_file(struct abx_response *res, int fd, int64_t offset, int64_t length);

/* A whole JSON response: the last step of most handlers. Fails with ABX_E_INTERNAL when `body->failed` (it outgrew its ceiling). */
int abx_response_json(struct abx_response *res, int status, const struct abx_strbuf *body, struct abx_err *err);

/* Called once, after the handler: a body that is shorter than announced, or none at all, breaks the connection. */
void abx_response_finish(struct abx_response *res);

/* Break the connection: what was begun did not end well. */
void abx_response_abort(struct abx_response *res);

/* The reason phrase of a status. */
const char *abx_status_reason(int status);

#endif
