/* UTF-8 (RFC 3629): validation, and replacement of what is not UTF-8 by U+FFFD. */
#ifndef ABX_UTF8_H
#define ABX_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "common/strbuf.h"

/* How many bytes at the front of `data` are valid UTF-8: `len` when all are. ASCII runs at memory speed. */
size_t abx_utf8_valid_prefix(const char *data, size_t len);

static inline bool abx_utf8_is_valid(const char *data, size_t len)
{
	return abx_utf8_valid_prefix(data, len) == len;
}

/*
 * A decoder for bytes that arrive in pieces: a character that is split between two reads is kept
 * back until it is whole. Zero-initialise.
 */
struct abx_utf8 {
	unsigned char held[4];
	size_t n_held;
};

/* Append `data` to `out` as valid UTF-8, each maximal invalid part as one U+FFFD (as Python's errors="replace" does). */
void abx_utf8_feed(struct abx_utf8 *dec, const char *data, size_t len, struct abx_strbuf *out);

/* No more bytes come: a character that was begun and not finished becomes U+FFFD. */
void abx_utf8_finish(struct abx_utf8 *dec, struct abx_strbuf *out);

/* Feed and finish in one: `data` as valid UTF-8. */
void abx_utf8_lossy(const char *data, size_t len, struct abx_strbuf *out);

/* The largest length <= `len` that does not cut a UTF-8 character of `data` in two (`data` may go on behind `len`). */
size_t abx_utf8_floor(const char *data, size_t len);

#endif
