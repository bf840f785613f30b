/* What the files of the spawn door share. */
#ifndef ABX_SPAWN_INTERNAL_H
#define ABX_SPAWN_INTERNAL_H

#include <sys/types.h>

#include "common/spawn.h"

/* What abx_spawn_init learned. Written once, before the first thread that spawns. */
struct abx_spawn_door {
	struct abx_board *board;
	char *const *env;
	int null_fd;       /* /dev/null, for reading */
	int stop_fd;       /* an eventfd that is readable for ever once the server stops */
	int oom_score_adj; /* for children */
	int drained_max;   /* how many pipes are drained in the background at a time; more are closed */
};

extern struct abx_spawn_door abx_spawn_door;

/* A started child, and our ends of its pipes (-1: none). */
struct abx_child {
	struct abx_board_child *slot;
	pid_t pid;
	int pidfd;
	int input_fd, out_fd, err_fd;
};

#define ABX_CHILD_INIT { .pid = -1, .pidfd = -1, .input_fd = -1, .out_fd = -1, .err_fd = -1 }

/* The variable that marks a child and its descendants. */
#define ABX_INVOCATION "INVOCATION_ID="

/*
 * Find a program as the child would: by its own PATH, from the directory `cwd_fd`. Returns 0 and *ret_path (to be freed), or an errno: that of the first
 * place where it is and cannot be run, else ENOENT.
 */
int abx_env_find_program(const struct abx_env *env, int cwd_fd, const char *name, char **ret_path);

/* The variables for execve, `marker` among them. The strings are borrowed, the array is to be freed. NULL: out of memory. */
char **abx_env_finish(const struct abx_env *env, const char *marker);

/* The kernel's choice, when memory runs out, falls on the child before the server. Best effort: a child that is another user's keeps its own. */
void abx_child_raise_oom_score(pid_t pid);

/* SIGKILL the child's group, its descendants, and every process that carries its invocation id. It is not reaped yet: its pid and group are still its own. */
void abx_child_kill(const struct abx_child *child);

/*
 * Reap a child that has ended (its pidfd is readable), and free its slot on the board. Returns the exit code, -N when signal N ended it.
 * Its pid is not to be used any more.
 */
int abx_child_reap(int pidfd, struct abx_board_child *slot);

/* Read and drop what comes out of a pipe until its end, in the background. Takes the descriptor over. */
void abx_drain_pipe(int fd);

/* Reap a killed child as soon as it ends, in the background. Takes pidfd and slot over. */
void abx_drain_child(int pidfd, struct abx_board_child *slot);

#endif
