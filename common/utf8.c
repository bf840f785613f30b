#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

enum step { STEP_WHOLE, STEP_BAD, STEP_SHORT };

static const char replacement[] = "\xef\xbf\xbd";

/*
 * What `lead` announces: how many bytes the character has (0: it cannot begin one), and the range
 * of the second byte, which is what refuses overlong forms, surrogates and what lies past U+10FFFF.
 */
static size_t lead_length(unsigned char lead, unsigned char *low, unsigned char *high)
{
	*low = 0x80;
	*high = 0xbf;
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2)
		return 0;
	if (lead < 0xe0)
		return 2;
	if (lead < 0xf0) {
		if (lead == 0xe0)
			*low = 0xa0;
		else if (lead == 0xed)
			*high = 0x9f;
		return 3;
	}
	if (lead > 0xf4)
		return 0;
	if (lead == 0xf0)
		*low = 0x90;
	else if (lead == 0xf4)
		*high = 0x8f;
	return 4;
}

/*
 * Look at the character that begins at `p` (n > 0). *ret_len is its length when it is whole, the
 * length of the maximal invalid part when it is bad, and n when the bytes end before it does.
 */
static enum step classify(const unsigned char *p, size_t n, size_t *ret_len)
{
	unsigned char low, high;
	size_t want = lead_length(p[0], &low, &high);
	size_t have = 1;

	if (want == 0) {
		*ret_len = 1;
		return STEP_BAD;
	}
	while (have < want && have < n && p[have] >= low && p[have] <= high) {
		low = 0x80;
		high = 0xbf;
		have++;
	}
	*ret_len = have;
	if (have == want)
		return STEP_WHOLE;
	return have == n ? STEP_SHORT : STEP_BAD;
}

/* How many bytes at the front are ASCII, in whole blocks of 32 and then one by one. */
static size_t ascii_prefix(const unsigned char *p, size_t n)
{
	size_t i = 0;

	for (; n - i >= 32; i += 32) {
		uint64_t w[4];
		memcpy(w, p + i, sizeof(w));
		if ((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080u)
			break;
	}
	while (i < n && p[i] < 0x80)
		i++;
	return i;
}

/* The commonest characters past ASCII, of two or three bytes, without the loop of classify(). Else 0. */
static inline size_t common_length(const unsigned char *p, size_t n)
{
	if (n < 3 || (p[1] & 0xc0) != 0x80)
		return 0;
	if (p[0] >= 0xc2 && p[0] < 0xe0)
		return 2;
	/* Behind 0xe0 and 0xed not every second byte will do. */
	if (p[0] > 0xe0 && p[0] < 0xf0 && p[0] != 0xed && (p[2] & 0xc0) == 0x80)
		return 3;
	return 0;
}

size_t abx_utf8_valid_prefix(const char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;
	size_t i = 0;

	while (i < len) {
		size_t step = common_length(p + i, len - i);
		if (step)
			i += step;
		else if (p[i] < 0x80)
			i += ascii_prefix(p + i, len - i);
		else if (classify(p + i, len - i, &step) == STEP_WHOLE)
			i += step;
		else
			break;
	}
	return i;
}

/* Finish the character that is held with the first of the new bytes. Returns how many of them it used. */
static size_t feed_held(struct abx_utf8 *dec, const char *data, size_t len, struct abx_strbuf *out)
{
	size_t used = 0;

	while (dec->n_held && used < len) {
		size_t step;
		dec->held[dec->n_held] = (unsigned char)data[used];
		switch (classify(dec->held, dec->n_held + 1u, &step)) {
		case STEP_WHOLE:
			abx_strbuf_add(out, dec->held, step);
			dec->n_held = 0;
			used++;
			break;
		case STEP_BAD:
			/* What was held is the bad part; the new byte is looked at afresh. */
			abx_strbuf_add(out, replacement, 3);
			dec->n_held = 0;
			break;
		case STEP_SHORT:
			dec->n_held++;
			used++;
			break;
		}
	}
	return used;
}

void abx_utf8_feed(struct abx_utf8 *dec, const char *data, size_t len, struct abx_strbuf *out)
{
	size_t i = feed_held(dec, data, len, out);

	while (i < len) {
		size_t good = abx_utf8_valid_prefix(data + i, len - i);
		size_t step;
		abx_strbuf_add(out, data + i, good);
		i += good;
		if (i == len)
			break;
		if (classify((const unsigned char *)data + i, len - i, &step) == STEP_SHORT) {
			memcpy(dec->held, data + i, step);
			dec->n_held = (unsigned char)step;
		} else {
			abx_strbuf_add(out, replacement, 3);
		}
		i += step;
	}
}

void abx_utf8_finish(struct abx_utf8 *dec, struct abx_strbuf *out)
{
	if (dec->n_held)
		abx_strbuf_add(out, replacement, 3);
	dec->n_held = 0;
}

void abx_utf8_lossy(const char *data, size_t len, struct abx_strbuf *out)
{
	struct abx_utf8 dec = { .n_held = 0 };

	abx_utf8_feed(&dec, data, len, out);
	abx_utf8_finish(&dec, out);
}

size_t abx_utf8_floor(const char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;

	/* The character that may be cut began at most three bytes before the end. */
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		size_t step;
		if ((p[len - back] & 0xc0) == 0x80)
			continue;
		return classify(p + len - back, back, &step) == STEP_SHORT ? len - back : len;
	}
	return len;
}
