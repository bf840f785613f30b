/* A WebSocket to the server (RFC 6455), by the way that its HTTP requests take: libcurl connects, through a proxy and with TLS where needed. */
#ifndef ABXCTL_WEBSOCKET_H
#define ABXCTL_WEBSOCKET_H

#include "handlers/abxctl/abxctl.h"

struct websocket {
	void *curl;
	int fd; /* for poll(2) */
	struct abx_strbuf in;
	size_t done; /* bytes of `in` that belong to the message that was returned last */
	bool ended;  /* nothing more will come */
	int close_code; /* 0: not closed; 1006: without a word */
	char close_reason[124];
};

#define WEBSOCKET_INIT { .fd = -1, .in = ABX_STRBUF_INIT }
void websocket_release(struct websocket *ws);
#define websocket_auto __attribute__((cleanup(websocket_release)))

/* Connect to `target`, a path and query. 0, or an exit status with *err set. */
int websocket_open(const struct ctl *ctl, const char *target, struct websocket *ws, struct abx_err *err);

/* Send a text message. -1: the connection is broken. */
int websocket_send(struct websocket *ws, const char *text, size_t len);

/* Read what has come. Then take the messages: true, and *ret_text stays until the next call; false: there is none (yet, unless ws->ended). */
void websocket_read(struct websocket *ws);
bool websocket_next(struct websocket *ws, const char **ret_text, size_t *ret_len);

#endif
