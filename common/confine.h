/*
 * Confined children: what the kernel holds a child to. The child starts as abx-exec, a small program that gives up what is to be given up and becomes the wanted one; where anything
 * cannot be given up, nothing is run. It gets its settings as arguments, and everything that a caller chooses (the environment above all, which could make the
 * loader run code before the confinement stands) by descriptors:
 *
 *   3        report: closed by the execve(2) that succeeds; what comes out of it before says what failed
 *   4        environment: a memfd of "NAME=value" strings, each with its NUL
 *   5 to …   trees that may be written, then trees that may be read alone
 */
#ifndef ABX_CONFINE_H
#define ABX_CONFINE_H

#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "policy/policy.h"

struct abx_confinement {
	bool filesystem;   /* nothing but the trees (to write, and run programs from) and the system's directories (to read) is there */
	bool no_network;   /* an empty network namespace, or no sockets but Unix ones where that is not permitted */
	bool no_new_privs; /* setuid programs gain nothing. The others, and the limits, imply it */
	const int *trees;  /* descriptors of directories, O_PATH is enough */
	size_t n_trees;
	size_t n_readable; /* the last so many of them may not be written */
	uint64_t memory_bytes; /* of each process's own data; 0: no limit */
	uint64_t processes;    /* of the user; the kernel does not count root's, so for root it cannot be had; 0: no limit */
	uint64_t cpu_seconds;  /* of each process; 0: no limit */
};

/* What a rule of the policy asks for, without the trees. */
struct abx_confinement abx_confinement_of(unsigned wanted, const struct abx_confine_limits *limits);

enum { ABX_CONFINE_REPORT = 3, ABX_CONFINE_ENV, ABX_CONFINE_TREES };

/* A start under way. */
struct abx_confined {
	char *program;   /* abx-exec */
	char **argv;     /* its arguments */
	char **texts;    /* those that are ours */
	int report_fd;   /* our end */
	int *fds;        /* what becomes 3, 4, … in the child; their numbers are past those */
	size_t n_fds;
};

#define ABX_CONFINED_INIT { .report_fd = -1 }

/* Prepare to start `program` (a path, from the child's directory) with `argv` and the environment `vars`. -1: it cannot be. */
int abx_confine_begin(const struct abx_confinement *confinement, const char *program, char *const *argv, char *const *vars,
		      struct abx_confined *ret_confined, struct abx_err *err);

/* What the child has to do with its descriptors, after all else: these, and no others, are left. Returns 0 or an errno. */
int abx_confine_actions(const struct abx_confined *confined, posix_spawn_file_actions_t *actions);

/* After the start: 0: the program runs; an errno: it cannot be run; -1: it could not be confined. Unless 0, the child ends by itself and is to be reaped. */
int abx_confine_finish(struct abx_confined *confined, struct abx_err *err);

void abx_confined_release(struct abx_confined *confined);

#endif
