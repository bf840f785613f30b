#include "handlers/process/ring.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PLACES 16

struct ring_chunk {
	enum abx_stream stream;
	size_t len;
	char text[];
};

static struct ring_chunk **place(const struct ring *ring, size_t i)
{
	return &ring->at[(ring->first + i) & (ring->alloc - 1)];
}

static size_t cost(const struct ring_chunk *chunk)
{
	return sizeof(*chunk) + chunk->len;
}

static void drop_first(struct ring *ring)
{
	struct ring_chunk **first = place(ring, 0);

	ring->held -= cost(*first);
	free(*first);
	ring->first++;
	ring->n--;
}

/* Make a place for one more. */
static int grow(struct ring *ring)
{
	size_t alloc = ring->alloc ? ring->alloc * 2 : FIRST_PLACES;
	struct ring_chunk **at;

	if (ring->n < ring->alloc)
		return 0;
	at = calloc(alloc, sizeof(*at));
	if (!at)
		return -1;
	for (size_t i = 0; i < ring->n; i++)
		at[i] = *place(ring, i);
	free(ring->at);
	ring->at = at;
	ring->alloc = alloc;
	ring->first = 0;
	return 0;
}

void ring_add(struct ring *ring, enum abx_stream stream, const char *text, size_t len)
{
	struct ring_chunk *chunk = grow(ring) == 0 ? malloc(sizeof(*chunk) + len) : NULL;

	ring->next++;
	/* Without memory for it, it is dropped; and so is what was before it, since the numbers have no gap. */
	if (!chunk) {
		while (ring->n > 0)
			drop_first(ring);
		return;
	}
	chunk->stream = stream;
	chunk->len = len;
	memcpy(chunk->text, text, len);
	*place(ring, ring->n++) = chunk;
	ring->held += cost(chunk);
	while (ring->held > ring->max && ring->n > 1)
		drop_first(ring);
}

bool ring_dropped(const struct ring *ring, uint64_t since)
{
	return since < ring->next - ring->n;
}

void ring_write(const struct ring *ring, uint64_t since, struct abx_json_writer *jw)
{
	uint64_t oldest = ring->next - ring->n;

	abx_jw_array(jw);
	for (uint64_t seq = since > oldest ? since : oldest; seq < ring->next; seq++) {
		const struct ring_chunk *chunk = *place(ring, (size_t)(seq - oldest));

		abx_jw_object(jw);
		abx_jw_kint(jw, "seq", (int64_t)seq);
		abx_jw_kstring(jw, "stream", chunk->stream == ABX_STDERR ? "stderr" : "stdout");
		abx_jw_key(jw, "data");
		abx_jw_stringn(jw, chunk->text, chunk->len);
		abx_jw_object_end(jw);
	}
	abx_jw_array_end(jw);
}

void ring_release(struct ring *ring)
{
	while (ring->n > 0)
		drop_first(ring);
	free(ring->at);
}
