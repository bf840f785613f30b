#include "common/block.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/auto.h"

#define MAPPED_MIN ((size_t)256 << 10)
#define HUGE_PAGE  ((size_t)2 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static int map_block(struct abx_block *block, size_t size)
{
	/* Room for the data to begin where a huge page can. */
	size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, len = whole + HUGE_PAGE;
	void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *data;

	if (map == MAP_FAILED)
		return -1;
	data = (char *)(((uintptr_t)map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
	/* Both are wishes: without them the memory comes as it is touched. */
	madvise(data, whole, MADV_HUGEPAGE);
	madvise(data, size, MADV_POPULATE_WRITE);
	*block = (struct abx_block){ .data = data, .size = size, .map = map, .map_len = len };
	return 0;
}

int abx_block_alloc(struct abx_block *block, size_t size)
{
	*block = (struct abx_block){ 0 };
	if (size >= MAPPED_MIN)
		return map_block(block, size);
	block->data = malloc(size ? size : 1);
	block->size = size;
	return block->data ? 0 : -1;
}

int abx_block_grow(struct abx_block *block, size_t size)
{
	struct abx_block grown;

	if (abx_block_alloc(&grown, size) < 0)
		return -1;
	if (block->data)
		memcpy(grown.data, block->data, block->size);
	abx_block_free(block);
	*block = grown;
	return 0;
}

void abx_block_free(struct abx_block *block)
{
	if (block->map)
		munmap(block->map, block->map_len);
	else
		free(block->data);
	*block = (struct abx_block){ 0 };
}
