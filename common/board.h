/*
 * The board: a small shared memory that abxd makes and every program that it starts maps. It outlives each of them, so what a dead
 * responder has left can be found there.
 */
#ifndef ABX_BOARD_H
#define ABX_BOARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/endpoint.h"
#include "common/err.h"
#include "common/rates.h"

#define ABX_PTY_FDS 66

/* Descriptors that abxd hands to a responder; the environment names none of them. */
enum abx_supervised_fd {
	ABX_FD_LISTEN = 0,   /* the listening socket of the group */
	ABX_FD_POLICY = 3,   /* the published policy, a sealed memfd */
	ABX_FD_BOARD = 4,    /* the board, a memfd */
	/*
	 * A stream socket to abxd. The responder writes R when it accepts calls, D when it drains and takes no more, P or E when it has taken a new policy
	 * or could not, N when it needs a successor, C and the reason when what it was configured with is wrong, and then exits with EX_CONFIG; abxd writes a P that
	 * carries the descriptor of a new policy.
	 */
	ABX_FD_CONTROL = 5,
	ABX_FD_CALLS = 6, /* abx-commands, where there is a worker: its end of the sockets that calls go over (common/worker.h) */
	/*
	 * abx-terminal and abx-ptyd: an end of the socket pair by which the one asks the other (handlers/abxd/ptyd.c). With a request come at most ABX_PTY_FDS
	 * descriptors: of the connection, the directory to start in, and the trees that a confined shell is held to.
	 */
	ABX_FD_PTY = 6,
	ABX_FD__END = 7
};

/* A child of a responder, noted before it is started (pid 0) and cleared after it was reaped. */
struct abx_board_child {
	_Atomic int32_t owner; /* the responder's pid; 0: the slot is free */
	_Atomic int32_t pid;
	char invocation[33]; /* its INVOCATION_ID: finds descendants that left its process group */
};

/* What POST /env has set: see overrides.h. Memory that was never written takes none, so the room costs nothing until it is used. */
#define ABX_BOARD_VARS ((size_t)1 << 20)

struct abx_board_vars {
	pthread_mutex_t lock; /* robust: whoever dies with it leaves the text that is in force as it was */
	uint32_t current;     /* which text is in force */
	struct {
		uint32_t len;
		char vars[ABX_BOARD_VARS]; /* "NAME=value", each with its NUL */
	} texts[2];
};

/*
 * What a responder, or abxd of the worker, has to warn of beside the policy's own warnings: texts, each with its line feed, which /capabilities shows while they stand here. One program
 * writes each; `version` is odd while it does.
 */
#define ABX_BOARD_WARNINGS 4096
#define ABX_BOARD_WORKER   ABX_GROUP__COUNT /* in the place of a group: why there is no worker; "" while there is one */

struct abx_board_warnings {
	_Atomic uint32_t version;
	char text[ABX_BOARD_WARNINGS];
};

#define ABX_BOARD_CHILDREN 2048
#define ABX_BOARD_PEERS    4

struct abx_board {
	double started_at; /* CLOCK_REALTIME seconds of the server's start */
	int64_t started_ms; /* abx_clock_ms() of the same moment */
	char instance[17]; /* hex digits that every INVOCATION_ID of this server begins with */
	uint32_t any_peer;  /* not 0: connections from every process of peer_uid are taken (the image's own web server) */
	uint32_t peer_uid;
	_Atomic int32_t peers[ABX_BOARD_PEERS]; /* pids whose FastCGI connections are taken: the web server, and the core responders, which relay */
	struct abx_board_child children[ABX_BOARD_CHILDREN];
	struct abx_board_vars vars;
	struct abx_rates rates;
	struct abx_board_warnings warnings[ABX_GROUP__COUNT + 1];
};

/* Make the board (abxd). Returns it, with its close-on-exec descriptor in *ret_fd, or NULL. */
struct abx_board *abx_board_create(int *ret_fd, struct abx_err *err);

/* Map the board that came as `fd`. Returns NULL on failure. It is never unmapped. */
struct abx_board *abx_board_map(int fd, struct abx_err *err);

/* Whether the process at the other end of the connected Unix socket may speak FastCGI to us (SO_PEERCRED, unix(7)). */
bool abx_board_admits(const struct abx_board *board, int fd);

/* Take a slot for a child that is about to be started, with a new invocation id. NULL when all are taken. */
struct abx_board_child *abx_board_child_begin(struct abx_board *board);
void abx_board_child_end(struct abx_board_child *child);

/* Replace a group's warnings; "" takes them back. What is too long is cut at a line's end. */
void abx_board_warn(struct abx_board *board, enum abx_group group, const char *text);

/* A copy of them; "" when there are none, or their writer died half-way. */
void abx_board_warnings(const struct abx_board *board, enum abx_group group, char ret_text[ABX_BOARD_WARNINGS]);

#endif
