/* A private directory for the length of one request, in the run directory or the spool: callers cannot name it. */
#ifndef ABX_WORKDIR_H
#define ABX_WORKDIR_H

#include "common/err.h"

struct abx_workdir {
	int fd;
	char *path; /* absolute */
};

#define ABX_WORKDIR_INIT { .fd = -1 }

int abx_workdir_make(const char *run_dir, struct abx_workdir *ret_dir, struct abx_err *err);

/* Make a file with this content, or a symbolic link, in it. */
int abx_workdir_write(const struct abx_workdir *dir, const char *name, const char *text, size_t len,
		      struct abx_err *err);
int abx_workdir_link(const struct abx_workdir *dir, const char *name, const char *target, struct abx_err *err);

/* Remove it and all that is in it. */
void abx_workdir_release(struct abx_workdir *dir);
#define abx_auto_workdir __attribute__((cleanup(abx_workdir_release)))

/*
 * Remove what processes that are gone have left in `run_dir`. Once, at the start of a program that makes such
 * directories.
 */
void abx_workdir_sweep(const char *run_dir);

#endif
