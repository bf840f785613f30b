/* Landlock (landlock(7)): the kernel lets a process reach no file but those of named trees, whatever its own code gets wrong. */
#ifndef ABX_LANDLOCK_H
#define ABX_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* A directory, and what may be done below it. */
struct abx_landlock_tree {
	int fd;      /* O_PATH is enough */
	bool writes; /* everything but running programs and making device files; else reading alone */
};

/*
 * Confine the calling thread, and all that it starts from now on, to the trees. Descriptors that are open stay as they are; O_PATH descriptors, stat and links
 * are not restricted. 0: in force; 1: the kernel has no Landlock; -1: it has, and refuses.
 */
int abx_landlock_enter(const struct abx_landlock_tree *trees, size_t n, struct abx_err *err);

#endif
