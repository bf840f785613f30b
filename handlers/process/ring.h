/* Captured output: the latest chunks of a process, numbered from 0. Older ones make room. */
#ifndef PROCESS_RING_H
#define PROCESS_RING_H

#include "common/json.h"
#include "common/spawn.h"

struct ring_chunk;

/* Zero-initialise, then set max. */
struct ring {
	size_t max;             /* bytes of text and of what it takes to hold them; the newest chunk stays whatever its size */
	size_t held;
	struct ring_chunk **at; /* a circle of `alloc` places, a power of two */
	size_t alloc, first, n;
	uint64_t next;          /* the number of the next chunk */
};

/* Add a chunk of valid UTF-8. */
void ring_add(struct ring *ring, enum abx_stream stream, const char *text, size_t len);

/* Whether something that was numbered `since` or later is gone. */
bool ring_dropped(const struct ring *ring, uint64_t since);

/* The chunks from `since` on as a JSON array of {"seq", "stream", "data"}. */
void ring_write(const struct ring *ring, uint64_t since, struct abx_json_writer *jw);

void ring_release(struct ring *ring);

#endif
