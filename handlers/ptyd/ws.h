/*
 * The server's end of a WebSocket (RFC 6455, version 13, no extensions), on a connection whose handshake was judged (door.h).
 *
 * Frames become pieces of messages, and control frames are answered here. What breaks the protocol closes with 1002: a frame that is not masked, reserved bits and
 * opcodes, a control frame that is long or in pieces, pieces out of order, a close that cannot be. A message that would be longer than `max` closes with 1009 as soon as the
 * head of a frame says so.
 *
 * One message is written at a time, so nothing is queued here but what the kernel did not take of it.
 */
#ifndef PTYD_WS_H
#define PTYD_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/strbuf.h"
#include "handlers/ptyd/loop.h"

enum ws_close {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_GOING_AWAY = 1001,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_TOO_BIG = 1009
};

struct ws;

struct ws_events {
	/* A piece of a message as it came; `end`: its last one. */
	void (*piece)(struct ws *ws, const char *data, size_t len, bool binary, bool end);
	/* It was asked for (ws_want_write), and a message can be written. */
	void (*writable)(struct ws *ws);
	/* The connection is closed, and the memory of `ws` may go. */
	void (*gone)(struct ws *ws);
	/* It is about to close, by whoever's wish: no more pieces come. May be called more than once. */
	void (*closing)(struct ws *ws);
};

struct ws {
	struct pty_source source;
	const struct ws_events *events;
	size_t max;
	/* The frame that is arriving. */
	unsigned char head[14];
	size_t head_len;
	uint64_t left; /* payload that is still to come */
	size_t at;     /* payload that has come */
	unsigned char control[125];
	/* The message that is arriving. */
	bool in_message, binary;
	size_t message_len;
	/* What is still to be written. */
	struct abx_strbuf out;
	unsigned char pong[125];
	size_t pong_len;
	bool pong_due, wants_write, paused;
	bool closing;      /* our close is on its way */
	bool closed_there; /* and theirs has come */
	bool deaf;         /* it broke the protocol: what it sends is read, so that our close is not lost, but means nothing */
	int64_t heard_ms, pinged_ms;
	int64_t dead_ms; /* when it is cut off, INT64_MAX: not yet */
};

/* Answer the handshake with the key. Takes `fd` over. After -1 there is no connection. */
int ws_open(struct ws *ws, int fd, const char *key, size_t max, const struct ws_events *events);

/* Send a message; only while `writable` is called. */
void ws_send(struct ws *ws, const char *text, size_t len);

/* Ask for a call of `writable`. */
void ws_want_write(struct ws *ws);

/* Close, with a code. What was begun is sent before; it is cut off `patience_ms` from now, and soon when the close was sent. */
void ws_close(struct ws *ws, int code, const char *reason, int64_t patience_ms);

/* Read nothing for now, or go on. */
void ws_pause(struct ws *ws, bool paused);

/* Pings keep proxies from cutting a silent connection, and tell of a peer that has vanished. Returns when to call again; `gone` may have been called: then 0. */
int64_t ws_tick(struct ws *ws, int64_t now_ms);

#endif
