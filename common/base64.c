#include "common/base64.h"

#include <stdint.h>
#include <string.h>

#include "common/base64_simd.h"

/* The tables are built by the preprocessor: constant, shared, and with no moment before they are filled. */
#define ENCODED(n) \
	((n) < 26 ? 'A' + (n) : (n) < 52 ? 'a' + (n) - 26 : (n) < 62 ? '0' + (n) - 52 : (n) == 62 ? '+' : '/')
#define PAIR(n) { { ENCODED((n) / 64), ENCODED((n) % 64) } }
#define PAIRS4(n)    PAIR(n), PAIR((n) + 1), PAIR((n) + 2), PAIR((n) + 3)
#define PAIRS16(n)   PAIRS4(n), PAIRS4((n) + 4), PAIRS4((n) + 8), PAIRS4((n) + 12)
#define PAIRS64(n)   PAIRS16(n), PAIRS16((n) + 16), PAIRS16((n) + 32), PAIRS16((n) + 48)
#define PAIRS256(n)  PAIRS64(n), PAIRS64((n) + 64), PAIRS64((n) + 128), PAIRS64((n) + 192)
#define PAIRS1024(n) PAIRS256(n), PAIRS256((n) + 256), PAIRS256((n) + 512), PAIRS256((n) + 768)

/* Twelve bits to two characters. */
static const struct pair {
	char c[2];
} pairs[4096] = { PAIRS1024(0), PAIRS1024(1024), PAIRS1024(2048), PAIRS1024(3072) };

/* A value that is no sextet: its top bit shows in the bitwise or of four. */
#define BAD 0x80000000u

#define SEXTET(c)                                  \
	((c) >= 'A' && (c) <= 'Z' ? (c) - 'A' :      \
	 (c) >= 'a' && (c) <= 'z' ? (c) - 'a' + 26 : \
	 (c) >= '0' && (c) <= '9' ? (c) - '0' + 52 : \
	 (c) == '+'               ? 62 :             \
	 (c) == '/'               ? 63 : -1)
#define DECODED(c, shift) (SEXTET(c) < 0 ? BAD : (uint32_t)SEXTET(c) << (shift))
#define DECODED4(c, shift) \
	DECODED(c, shift), DECODED((c) + 1, shift), DECODED((c) + 2, shift), DECODED((c) + 3, shift)
#define DECODED16(c, shift) \
	DECODED4(c, shift), DECODED4((c) + 4, shift), DECODED4((c) + 8, shift), DECODED4((c) + 12, shift)
#define DECODED64(c, shift) \
	DECODED16(c, shift), DECODED16((c) + 16, shift), DECODED16((c) + 32, shift), DECODED16((c) + 48, shift)
#define DECODED256(shift) \
	{ DECODED64(0, shift), DECODED64(64, shift), DECODED64(128, shift), DECODED64(192, shift) }

/* A character at each of the four places of a group, shifted to its place. */
static const uint32_t places[4][256] = { DECODED256(18), DECODED256(12), DECODED256(6), DECODED256(0) };

size_t abx_base64_encode(const void *data, size_t len, char *out)
{
	const unsigned char *p = data;
	char *start = out;
	size_t blocks = abx_base64_encode_blocks(p, len, out);

	p += blocks;
	len -= blocks;
	out += blocks / 3 * 4;
	for (; len >= 3; len -= 3, p += 3, out += 4) {
		uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
		memcpy(out, pairs[bits >> 12].c, 2);
		memcpy(out + 2, pairs[bits & 4095].c, 2);
	}
	if (len) {
		uint32_t bits = (uint32_t)p[0] << 16 | (len == 2 ? (uint32_t)p[1] << 8 : 0);
		memcpy(out, pairs[bits >> 12].c, 2);
		memcpy(out + 2, pairs[bits & 4095].c, 2);
		out[3] = '=';
		if (len == 1)
			out[2] = '=';
		out += 4;
	}
	return (size_t)(out - start);
}

static uint32_t decode_group(const unsigned char *p)
{
	return places[0][p[0]] | places[1][p[1]] | places[2][p[2]] | places[3][p[3]];
}

static void put_bytes(unsigned char *out, uint32_t bits)
{
	out[0] = (unsigned char)(bits >> 16);
	out[1] = (unsigned char)(bits >> 8);
	out[2] = (unsigned char)bits;
}

/* Decode whole groups up to a line break, padding or anything bad. Returns the characters read. */
static size_t decode_groups(const unsigned char *p, size_t len, unsigned char *out)
{
	size_t i = abx_base64_decode_blocks(p, len, out);

	out += i / 4 * 3;
	for (; len - i >= 8; i += 8, out += 6) {
		uint32_t a = decode_group(p + i), b = decode_group(p + i + 4);
		if ((a | b) & BAD)
			break;
		put_bytes(out, a);
		put_bytes(out + 3, b);
	}
	for (; len - i >= 4; i += 4, out += 3) {
		uint32_t bits = decode_group(p + i);
		if (bits & BAD)
			break;
		put_bytes(out, bits);
	}
	return i;
}

static const unsigned char *skip_breaks(const unsigned char *p, const unsigned char *end)
{
	while (p < end && (*p == '\r' || *p == '\n'))
		p++;
	return p;
}

/* The last group, which has padding. Returns the bytes it holds, or -1. */
static int decode_last(const unsigned char group[4], unsigned char *out)
{
	int bytes = group[2] == '=' ? 1 : 2;
	uint32_t bits = places[0][group[0]] | places[1][group[1]];

	if (bytes == 2)
		bits |= places[2][group[2]];
	/* The bits behind the last byte must be zero: one content has one spelling. */
	if (bits & BAD || group[3] != '=' || bits & (bytes == 1 ? 0xffffu : 0xffu))
		return -1;
	out[0] = (unsigned char)(bits >> 16);
	if (bytes == 2)
		out[1] = (unsigned char)(bits >> 8);
	return bytes;
}

ssize_t abx_base64_decode(const char *text, size_t len, void *out)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;
	unsigned char *to = out;

	for (;;) {
		unsigned char group[4];
		size_t done = decode_groups(p, (size_t)(end - p), to), n = 0;
		p += done;
		to += done / 4 * 3;
		/* One group by hand, over line breaks. In place, its characters are read before they are written over. */
		while ((p = skip_breaks(p, end)) < end && n < 4)
			group[n++] = *p++;
		if (n == 0)
			return to - (unsigned char *)out;
		if (n < 4)
			return -1;
		uint32_t bits = decode_group(group);
		if (bits & BAD) {
			int last = decode_last(group, to);
			return last < 0 || p < end ? -1 : to + last - (unsigned char *)out;
		}
		put_bytes(to, bits);
		to += 3;
	}
}
