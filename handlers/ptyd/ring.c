#include "handlers/ptyd/ring.h"

#include <string.h>
#include <sys/mman.h>

int pty_ring_init(struct pty_ring *ring, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -1;
	*ring = (struct pty_ring){ .buf = at, .size = size };
	return 0;
}

void pty_ring_release(struct pty_ring *ring)
{
	if (ring->buf)
		munmap(ring->buf, ring->size);
	*ring = (struct pty_ring){ .buf = NULL };
}

void pty_ring_add(struct pty_ring *ring, const char *text, size_t len)
{
	if (len > ring->size) {
		ring->end += len - ring->size;
		text += len - ring->size;
		len = ring->size;
	}
	while (len > 0) {
		size_t at = (size_t)(ring->end % ring->size), n = ring->size - at < len ? ring->size - at : len;

		memcpy(ring->buf + at, text, n);
		ring->end += n;
		text += n;
		len -= n;
	}
}

size_t pty_ring_read(const struct pty_ring *ring, uint64_t pos, char *out, size_t max)
{
	size_t there = (size_t)(ring->end - pos), len = there < max ? there : max;

	for (size_t done = 0; done < len;) {
		size_t at = (size_t)((pos + done) % ring->size);
		size_t n = ring->size - at < len - done ? ring->size - at : len - done;

		memcpy(out + done, ring->buf + at, n);
		done += n;
	}
	/* All that is there ends on a whole character; less of it may not. */
	while (len < there && len > 0 && ((unsigned char)ring->buf[(pos + len) % ring->size] & 0xc0) == 0x80)
		len--;
	return len;
}

uint64_t pty_ring_replay(const struct pty_ring *ring, size_t window)
{
	uint64_t pos = ring->end > window ? ring->end - window : 0;

	while (pos < ring->end && ((unsigned char)ring->buf[pos % ring->size] & 0xc0) == 0x80)
		pos++;
	return pos;
}
