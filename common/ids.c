#include "common/ids.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SANE_ID_MAX 128

static void fill_random(unsigned char *out, size_t len)
{
	while (len) {
		ssize_t got = getrandom(out, len, 0);
		if (got < 0 && errno == EINTR)
			continue;
		/* An identifier that can be guessed is worse than no server. */
		if (got <= 0)
			abort();
		out += got;
		len -= (size_t)got;
	}
}

static const char hex[] = "0123456789abcdef";

void abx_id_hex(char *out, size_t digits)
{
	unsigned char raw[32];
	size_t i = 0;

	while (i < digits) {
		size_t want = (digits - i + 1) / 2;
		if (want > sizeof(raw))
			want = sizeof(raw);
		fill_random(raw, want);
		for (size_t k = 0; k < 2 * want && i < digits; k++)
			out[i++] = hex[k % 2 ? raw[k / 2] & 15 : raw[k / 2] >> 4];
	}
	out[i] = '\0';
}

static uint64_t unique_seed;

static void seed_unique(void)
{
	fill_random((unsigned char *)&unique_seed, sizeof(unique_seed));
}

void abx_id_unique(char out[17])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static atomic_uint_fast64_t counter;
	uint64_t x;

	pthread_once(&once, seed_unique);
	/* A bijection of the counter (the finaliser of splitmix64): different numbers give different ids that do not look alike. */
	x = unique_seed + atomic_fetch_add(&counter, 1) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	for (size_t i = 0; i < 16; i++)
		out[i] = hex[x >> (60 - 4 * i) & 15];
	out[16] = '\0';
}

bool abx_id_is_sane(const char *id)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
	size_t len = strnlen(id, SANE_ID_MAX + 1);

	return len >= 1 && len <= SANE_ID_MAX && strspn(id, allowed) == len;
}
