/*
 * The cage: what a responder gives up before its first thread. Fails closed: a facility that the kernel has and that
 * cannot be set up stops the responder; one that the kernel lacks is left out, and abx_cage_report says so.
 */
#ifndef ABX_CAGE_H
#define ABX_CAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum abx_cage_flags {
	ABX_CAGE_NO_EXEC = 1 << 0,    /* execve and execveat are refused */
	ABX_CAGE_NO_NETWORK = 1 << 1, /* socket(2) for anything but AF_UNIX is refused */
	ABX_CAGE_NO_ADMIN = 1 << 2,   /* ptrace, mount, bpf, kernel modules, kexec, io_uring, keyctl, … are refused */
	ABX_CAGE_SOCK_DIAG = 1 << 3,  /* with NO_NETWORK: the kernel may still be asked for its table of sockets (sock_diag(7)), as ss does */
	ABX_CAGE_NO_IO_URING = 1 << 4, /* the others refuse it, too */
	ABX_CAGE_NO_TRUNCATE = 1 << 5, /* truncate(2), and O_TRUNC without writing: for Landlock before version 3 */
};

/*
 * Enter: no core files (PR_SET_DUMPABLE), then the seccomp filter for `flags` (0: none, since children would inherit it). Refused calls get EPERM.
 */
int abx_cage_enter(unsigned flags, struct abx_err *err);

/* The filter alone, for a program that confines itself before it becomes another. */
int abx_cage_filter(unsigned flags, struct abx_err *err);

/*
 * Landlock: from now on this process reaches no file outside the trees (those that may be written). Before the first thread, like the rest. Where the kernel
 * has none, the report says so.
 */
int abx_cage_trees(const int *fds, size_t n, struct abx_err *err);

/* What the kernel lacks of it, as a sentence for a warning. NULL: the cage is whole. */
const char *abx_cage_report(void);

#endif
