/* Landlock (landlock(7)): the kernel lets a process reach no file but those of named trees, whatever its own code gets wrong. */
#ifndef ABX_LANDLOCK_H
#define ABX_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* A directory, and what may be done below it; or a file, and what may be done with it. */
struct abx_landlock_tree {
	int fd;      /* O_PATH is enough */
	bool writes; /* everything but running programs and making device files; else reading alone */
	bool runs;   /* running programs as well */
};

enum abx_landlock_flags {
	ABX_LANDLOCK_FILES = 1 << 0,  /* no file outside the trees */
	ABX_LANDLOCK_NO_TCP = 1 << 1, /* no TCP port is bound or connected to (version 4) */
	ABX_LANDLOCK_SCOPE = 1 << 2,  /* no signal and no abstract Unix socket reaches out (version 6) */
};

/* The version of the interface that the kernel has (3: files can be cut only where they can be written); 0: none. */
int abx_landlock_version(void);

/*
 * Confine the calling thread, and all that it starts from now on. Descriptors that are open stay as they are; O_PATH descriptors, stat and links are not restricted. Other
 * processes, but for those that are confined with it, can be neither traced nor looked into. What the kernel's version does not know of the flags is left out. 0: in
 * force; 1: the kernel has no Landlock; -1: it has, and refuses.
 */
int abx_landlock_enter(unsigned flags, const struct abx_landlock_tree *trees, size_t n, struct abx_err *err);

#endif
