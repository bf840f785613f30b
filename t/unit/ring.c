#include "handlers/process/ring.h"

#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

static const char *written(const struct ring *ring, uint64_t since)
{
	static struct abx_strbuf out = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);

	abx_strbuf_reset(&out);
	ring_write(ring, since, &jw);
	return out.buf;
}

/* The numbers of the first and last chunk in `text`, as "first-last". */
static const char *range(const char *text)
{
	static char out[64];
	const char *last = NULL;
	long first = strstr(text, "seq") ? strtol(strstr(text, "seq") + 6, NULL, 10) : -1;

	for (const char *p = text; (p = strstr(p, "seq")); p++)
		last = p;
	snprintf(out, sizeof(out), "%ld-%ld", first, last ? strtol(last + 6, NULL, 10) : -1);
	return out;
}

static void test_small(void)
{
	struct ring ring = { .max = 1000 };

	is_str(written(&ring, 0), "[]", "an empty ring");
	ok(!ring_dropped(&ring, 0), "has dropped nothing");
	is_int((long long)ring.next, 0, "its next number is 0");
	ring_add(&ring, ABX_STDOUT, "one\n", 4);
	ring_add(&ring, ABX_STDERR, "t\0o", 3);
	is_str(written(&ring, 0),
	       "[{\"seq\": 0, \"stream\": \"stdout\", \"data\": \"one\\n\"}, {\"seq\": 1, \"stream\": \"stderr\", \"data\": \"t\\u0000o\"}]",
	       "two chunks");
	is_str(range(written(&ring, 1)), "1-1", "from the second on");
	is_str(written(&ring, 2), "[]", "from the third on");
	is_str(written(&ring, UINT64_MAX), "[]", "from far away");
	is_int((long long)ring.next, 2, "the next number is 2");
	ok(!ring_dropped(&ring, 0), "nothing is gone");
	ring_release(&ring);
}

static void test_full(void)
{
	struct ring ring = { .max = 10000 };
	char text[100];

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 1000; i++)
		ring_add(&ring, ABX_STDOUT, text, sizeof(text));
	ok(ring.held <= 10000, "no more is held than allowed, what holds it included (%zu)", ring.held);
	ok(ring.n > 70, "and hardly less (%zu chunks)", ring.n);
	is_int((long long)ring.next, 1000, "the numbers go on");
	ok(ring_dropped(&ring, 0) && ring_dropped(&ring, 1000 - ring.n - 1), "what is gone is told");
	ok(!ring_dropped(&ring, 1000 - ring.n) && !ring_dropped(&ring, 1000), "and only then");
	snprintf(text, sizeof(text), "%zu-999", 1000 - ring.n);
	is_str(range(written(&ring, 0)), text, "the latest are there");
	ring_release(&ring);

	ring = (struct ring){ .max = 10 };
	ring_add(&ring, ABX_STDOUT, "a long first text", 17);
	is_str(range(written(&ring, 0)), "0-0", "the newest stays whatever its size");
	ring_add(&ring, ABX_STDOUT, "b", 1);
	is_str(range(written(&ring, 0)), "1-1", "until there is a newer one");
	ring_release(&ring);
}

static void test_tiny(void)
{
	struct ring ring = { .max = 1 << 20 };

	for (int i = 0; i < 2000000; i++)
		ring_add(&ring, ABX_STDOUT, "x", 1);
	ok(ring.alloc * sizeof(*ring.at) + ring.held <= 3 << 19, "the cost of tiny chunks counts");
	is_int((long long)ring.next, 2000000, "all were numbered");
	ring_release(&ring);
}

int main(void)
{
	test_small();
	test_full();
	test_tiny();
	return done_testing();
}
