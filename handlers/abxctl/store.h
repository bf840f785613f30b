/* A local file that is written as a whole or not at all. */
#ifndef ABXCTL_STORE_H
#define ABXCTL_STORE_H

#include <stdio.h>

struct store {
	FILE *file;
	char *path, *temporary; /* NULL: there is nothing to be renamed */
};

#define STORE_INIT { .file = NULL }

/* Begin to write what will be at `path`: a new file beside it, or a pipe or device itself. -1 with errno set. */
int store_open(const char *path, struct store *ret_store);

/* Put it in place. -1 with errno set: what was there before is still there. */
int store_commit(struct store *store);

/* Leave no trace of a store that was not committed. */
void store_release(struct store *store);
#define store_auto __attribute__((cleanup(store_release)))

#endif
