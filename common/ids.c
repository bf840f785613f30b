#include "common/ids.h"

#include <errno.h>
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

void abx_id_hex(char *out, size_t digits)
{
	static const char hex[] = "0123456789abcdef";
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

bool abx_id_is_sane(const char *id)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
	size_t len = strnlen(id, SANE_ID_MAX + 1);

	return len >= 1 && len <= SANE_ID_MAX && strspn(id, allowed) == len;
}
