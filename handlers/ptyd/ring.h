/*
 * The last output of a session: valid UTF-8, addressed by its position since the session's start. Every watcher has a position of its own in it, so output is
 * kept once, however many look on.
 */
#ifndef PTYD_RING_H
#define PTYD_RING_H

#include <stddef.h>
#include <stdint.h>

struct pty_ring {
	char *buf;
	size_t size;
	uint64_t end; /* position behind the last byte */
};

/* Reserve `size` bytes of address space; memory is taken as output comes. 0 or -1. */
int pty_ring_init(struct pty_ring *ring, size_t size);
void pty_ring_release(struct pty_ring *ring);

void pty_ring_add(struct pty_ring *ring, const char *text, size_t len);

/* The position of the first byte that is still there. */
static inline uint64_t pty_ring_start(const struct pty_ring *ring)
{
	return ring->end > ring->size ? ring->end - ring->size : 0;
}

/* Copy up to `max` bytes from `pos`, which is still there, without cutting a character in two. Returns how many. */
size_t pty_ring_read(const struct pty_ring *ring, uint64_t pos, char *out, size_t max);

/* Where the last `window` bytes begin, or a little later: at a character. */
uint64_t pty_ring_replay(const struct pty_ring *ring, size_t window);

#endif
