#include "common/ids.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

static void test_hex(void)
{
	static const size_t lengths[] = { 0, 1, 2, 15, 16, 31, 32, 63, 64, 65, 127, 129, 1000 };
	char id[1002], other[33];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(id, '#', sizeof(id));
		abx_id_hex(id, lengths[i]);
		ok(strlen(id) == lengths[i] && strspn(id, "0123456789abcdef") == lengths[i], "%zu hex digits",
		   lengths[i]);
		is_int(id[lengths[i] + 1], '#', "and nothing behind the NUL");
	}
	/* 1000 digits of which one value is missing have a chance of 10^-13, in either half. */
	char halves[2][501] = { "", "" };
	for (size_t i = 0; i < 1000; i++)
		halves[i % 2][i / 2] = id[i];
	for (const char *digit = "0123456789abcdef"; *digit; digit++)
		ok(strchr(halves[0], *digit) && strchr(halves[1], *digit), "digit %c occurs in both halves", *digit);
	abx_id_hex(id, 32);
	abx_id_hex(other, 32);
	ok(strcmp(id, other) != 0, "two identifiers differ");
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

#define N_UNIQUE 4096

static char unique[2][N_UNIQUE][17];

static void *make_unique(void *arg)
{
	char(*ids)[17] = arg;

	for (int i = 0; i < N_UNIQUE; i++)
		abx_id_unique(ids[i]);
	return NULL;
}

static void test_unique(void)
{
	pthread_t thread;
	char *ids = unique[0][0];
	bool well_formed = true, distinct = true;

	if (pthread_create(&thread, NULL, make_unique, unique[1]) != 0)
		abort();
	make_unique(unique[0]);
	pthread_join(thread, NULL);
	qsort(ids, 2 * (size_t)N_UNIQUE, 17, compare);
	for (size_t i = 0; i < 2 * (size_t)N_UNIQUE; i++) {
		const char *id = ids + 17 * i;
		well_formed = well_formed && strlen(id) == 16 && strspn(id, "0123456789abcdef") == 16;
		distinct = distinct && (i == 0 || strcmp(id - 17, id) != 0);
	}
	ok(well_formed, "unique identifiers are 16 hex digits");
	ok(distinct, "and differ, also between threads");
}

static void test_sane(void)
{
	char id[200];

	ok(abx_id_is_sane("a"), "one letter");
	ok(abx_id_is_sane("AZaz09._:-"), "every kind of allowed character");
	ok(!abx_id_is_sane(""), "not an empty one");
	memset(id, 'x', sizeof(id));
	id[128] = '\0';
	ok(abx_id_is_sane(id), "128 characters");
	id[128] = 'x';
	id[129] = '\0';
	ok(!abx_id_is_sane(id), "not 129");
	for (int c = 1; c < 256; c++) {
		bool allowed = strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-", c);
		char text[4] = { 'a', (char)c, 'b', '\0' };
		if (abx_id_is_sane(text) != allowed)
			ok(false, "byte %d is judged wrongly", c);
	}
	ok(!abx_id_is_sane("a b") && !abx_id_is_sane("a\r\nSet-Cookie: x"), "no blanks or line breaks");
}

int main(void)
{
	test_hex();
	test_unique();
	test_sane();
	return done_testing();
}
