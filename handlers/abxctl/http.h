/* One HTTP request to the server: only http.c and websocket.c know of libcurl. */
#ifndef ABXCTL_HTTP_H
#define ABXCTL_HTTP_H

#include <stdio.h>

#include "handlers/abxctl/abxctl.h"

/* A body that is read while it is sent, as raw bytes. */
struct http_source {
	int fd;
	int64_t len; /* -1: until its end */
	const char *name; /* for messages */
};

/* Where the body of a 2xx goes as it arrives, instead of into the answer. */
struct http_sink {
	FILE *file;
	bool flush; /* each piece is to be seen when it comes */
	const char *name; /* for messages */
};

struct http_request {
	const char *method;
	const char *target; /* path and query, ready to be sent */
	const char *body;   /* JSON; NULL: none */
	size_t body_len;
	const struct http_source *source; /* the body, in the place of `body`; or NULL */
	const struct http_sink *sink;     /* or NULL */
	bool progress;      /* show how far it is, if it takes long and standard error is a terminal */
	int64_t timeout_ms; /* of the whole; 0: as long as it takes */
};

struct http_answer {
	long status;
	bool is_json;
	char last_byte; /* of the body */
	char request_id[128];
	int64_t sent, received; /* bytes of the source and for the sink */
	struct abx_strbuf body;
};

/* Most bytes of an answer that are taken into memory. */
#define HTTP_ANSWER_MAX ((size_t)1 << 30)

#define HTTP_ANSWER_INIT { .body = ABX_STRBUF_INIT_MAX(HTTP_ANSWER_MAX) }
void http_answer_release(struct http_answer *answer);
#define http_auto_answer __attribute__((cleanup(http_answer_release)))

/*
 * Send a request and take the answer, whatever its status. 0, or an exit status with *err set: CTL_NO_CONNECTION when
 * nothing was reached, else CTL_FAILED or, for a URL that is none, CTL_USAGE.
 */
int http_send(const struct ctl *ctl, const struct http_request *request, struct http_answer *ret_answer,
	      struct abx_err *err);

/* As http_send; every failure, also a status that is not 2xx, is printed. 0 or an exit status. */
int http_call(const struct ctl *ctl, const struct http_request *request, struct http_answer *ret_answer);

/* As http_call, for an answer that is a JSON object: a new reference, or NULL and *ret_status. */
json_t *http_call_json(const struct ctl *ctl, const struct http_request *request, int *ret_status);

/* Why the server refused: "<error>", with the request's id for a failure of the server's own. */
void http_describe(const struct ctl *ctl, const struct http_answer *answer, struct abx_strbuf *out);

#endif
