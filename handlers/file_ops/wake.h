/*
 * inotify(7) as an alarm clock: it says that something may have changed below the directories of a watch, and never what. What is true is found by looking.
 */
#ifndef ABX_FILE_OPS_WAKE_H
#define ABX_FILE_OPS_WAKE_H

#include <stdbool.h>

struct wake {
	int fd;        /* becomes readable on a change; -1: there is none */
	bool complete; /* every directory is covered, by a file system that tells of all changes */
};

#define WAKE_INIT { .fd = -1 }

/* Begin anew, without any directory. */
void wake_reset(struct wake *wake);

/* Cover a directory. */
void wake_add(struct wake *wake, int dir_fd);

/* Forget what has come. */
void wake_drain(struct wake *wake);
void wake_release(struct wake *wake);

#endif
