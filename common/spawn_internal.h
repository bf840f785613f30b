/* What the files of the spawn door share. */
#ifndef ABX_SPAWN_INTERNAL_H
#define ABX_SPAWN_INTERNAL_H

#include "common/spawn.h"
#include "common/spawn_child.h"

/* What abx_spawn_init learned. Written once, before the first thread that spawns. */
struct abx_spawn_door {
	struct abx_board *board;
	char *const *env;
	int null_fd;       /* /dev/null */
	int stop_fd;       /* an eventfd that is readable for ever once the server stops */
	int oom_score_adj; /* for children */
	int drained_max;   /* how many pipes are drained in the background at a time; more are closed */
};

extern struct abx_spawn_door abx_spawn_door;

/*
 * Find a program as the child would: by its own PATH, from the directory `cwd_fd`. Returns 0 and *ret_path (to be freed), or an errno: that of the first
 * place where it is and cannot be run, else ENOENT.
 */
int abx_env_find_program(const struct abx_env *env, int cwd_fd, const char *name, char **ret_path);

/* The variables for execve, `marker` among them. The strings are borrowed, the array is to be freed. NULL: out of memory. */
char **abx_env_finish(const struct abx_env *env, const char *marker);

#endif
