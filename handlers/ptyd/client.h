/*
 * The clients of terminals: what is said over their WebSockets (ws.h).
 *
 * Close codes: 1000 the shell has ended, 1001 the server stops, 1002 the protocol was broken, 1009 a message is longer than PTY_MESSAGE_MAX, 4001 bad credentials, 4003 the endpoint is
 * off or a scope is missing, 4004 no such session, 4008 the client was too slow.
 *
 * A client that is slow is given what it lacks for as long as that is kept (PTY_RING_SIZE). While all clients of a session are PTY_BEHIND_MAX behind, its terminal is
 * not read, so that its programs wait, as they would on a slow line. A client that is cut off: one that lacks more than what is kept; and one whose connection has taken no byte for
 * PTY_STALL_MS while it was that far behind.
 */
#ifndef PTYD_CLIENT_H
#define PTYD_CLIENT_H

#include "common/strbuf.h"
#include "handlers/ptyd/session.h"
#include "handlers/ptyd/ws.h"

#define PTY_STALL_MS 10000

/* How long the close of a connection that takes nothing is waited for. */
#define PTY_CLOSE_MS 60000

/* Connections at the same time. */
#define PTY_CLIENTS_MAX 512

enum pty_close {
	PTY_CLOSE_CREDENTIALS = 4001,
	PTY_CLOSE_DISABLED = 4003,
	PTY_CLOSE_NO_SESSION = 4004,
	PTY_CLOSE_SLOW = 4008
};

struct pty_client {
	struct ws ws;
	struct pty_client *next;  /* of the same session */
	struct pty_client *other; /* of all */
	struct pty_session *session; /* NULL: it is being closed */
	uint64_t pos;   /* how far it has got the output */
	struct abx_strbuf prelude; /* output that comes first */
	bool greeted;   /* it was told that the session has started */
	bool throttled; /* nothing is read from it for now */
	int64_t moved_ms;  /* when its connection last took something */
	uint64_t acked;    /* bytes that its machine has taken by then */
	struct abx_strbuf message; /* that is arriving */
	struct abx_strbuf errors;  /* what was wrong with its messages: whole messages for it, each with a NUL behind */
};

/*
 * Complete the handshake of a connection whose head was read and found good, with its Sec-WebSocket-Key. The client joins `session`; or, with a
 * code, it is closed at once. Takes `fd` over.
 */
void pty_client_adopt(int fd, const char *key, struct pty_session *session, int close_code, const char *reason);

/* Whether there is room for one more. */
bool pty_clients_have_room(void);

/* There is something new to be sent. */
void pty_client_wake(struct pty_client *client);

/* It is too far behind: it is cut off. */
void pty_client_drop(struct pty_client *client);

/* Its input is taken again. */
void pty_client_unthrottle(struct pty_client *client);

/* Close all: the server stops. */
void pty_clients_stop(void);
bool pty_clients_any(void);

int64_t pty_clients_tick(int64_t now_ms);

#endif
