/*
 * Memory for large data that goes with its request. Small blocks come from malloc. Large ones are mapped, in huge pages where the system has them and
 * filled in one go where it has not, since faults page by page can cost more than all the work on the data; freed, they leave nothing behind.
 */
#ifndef ABX_BLOCK_H
#define ABX_BLOCK_H

#include <stddef.h>

struct abx_block {
	char *data;
	size_t size;   /* that was asked for */
	void *map;     /* NULL: from malloc */
	size_t map_len;
};

/* 0, or -1 when out of memory; *block is empty then. */
int abx_block_alloc(struct abx_block *block, size_t size);

/* Make it larger; the content stays. 0, or -1 and the block is as it was. */
int abx_block_grow(struct abx_block *block, size_t size);

/* Free it; an empty block is fine. */
void abx_block_free(struct abx_block *block);

#endif
