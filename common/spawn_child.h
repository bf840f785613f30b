/*
 * Started children, for those who watch them by themselves: abx_spawn_run does so for one call, abx-process for its background processes.
 *
 * Whoever started a child is the one owner of its exit: it reaps it, once, and nobody uses its pid after that.
 */
#ifndef ABX_SPAWN_CHILD_H
#define ABX_SPAWN_CHILD_H

#include <sys/types.h>

#include "common/confine.h"
#include "common/spawn.h"

/* What to start. */
struct abx_start {
	char *const *argv;         /* as in struct abx_spawn */
	const struct abx_env *env;
	int cwd_fd;
	bool input;  /* standard input is a pipe; else /dev/null */
	bool output; /* standard output and error are pipes; else /dev/null */
	const struct abx_confinement *confine; /* NULL: not confined */
};

/* A started child, and our ends of its pipes (-1: none), which do not block. */
struct abx_child {
	struct abx_board_child *slot;
	pid_t pid;
	int pidfd;
	int input_fd, out_fd, err_fd;
};

#define ABX_CHILD_INIT { .pid = -1, .pidfd = -1, .input_fd = -1, .out_fd = -1, .err_fd = -1 }

/*
 * Start a child. -1: it was not started, as abx_spawn_run says it, or could not be confined. From here on the caller owns its descriptors and its exit.
 */
int abx_child_start(const struct abx_start *start, struct abx_child *ret_child, struct abx_err *err);

/* The kernel's choice, when memory runs out, falls on the child before the server. Best effort: a child that is another user's keeps its own. */
void abx_child_raise_oom_score(pid_t pid);

/* Whether the child has ended, reaped or not. */
bool abx_child_has_ended(const struct abx_child *child);

/* SIGKILL the child's group, its descendants, and every process that carries its invocation id. It is not reaped yet: its pid and group are still its own. */
void abx_child_kill(const struct abx_child *child);

/*
 * Reap a child that has ended (its pidfd is readable), and free its slot on the board. Returns the exit code, -N when signal N ended it.
 * Its pid is not to be used any more.
 */
int abx_child_reap(int pidfd, struct abx_board_child *slot);

/* Whether abx_spawn_stop_all was called. */
bool abx_spawn_is_stopping(void);

/* Seconds from now, as a moment of abx_clock_us: INT64_MAX ("never") where there is none or it is too far to matter. */
int64_t abx_spawn_deadline_us(double timeout);

/* Read and drop what comes out of a pipe until its end, in the background. Takes the descriptor over. */
void abx_drain_pipe(int fd);

/* Reap a killed child as soon as it ends, in the background. Takes pidfd and slot over. */
void abx_drain_child(int pidfd, struct abx_board_child *slot);

#endif
