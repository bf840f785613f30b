/* UTF-8 against a decoder that looks at one byte after the other and knows nothing of blocks or pieces. */
#include "common/utf8.h"

#include <string.h>

#include "t/fuzz/fuzz.h"

static const char replacement[] = "\xef\xbf\xbd";

/*
 * The states of the decoder: how many bytes are to come, and what the next must lie between. A byte
 * that does not fit ends the character with a replacement and is looked at again as a first one.
 */
struct naive {
	int to_come;
	unsigned char low, high, bytes[4];
	size_t n;
};

static bool naive_begin(struct naive *s, unsigned char c)
{
	static const struct {
		unsigned char first, last, low, high;
		int to_come;
	} leads[] = {
		{ 0x00, 0x7f, 0, 0, 0 },       { 0xc2, 0xdf, 0x80, 0xbf, 1 }, { 0xe0, 0xe0, 0xa0, 0xbf, 2 },
		{ 0xe1, 0xec, 0x80, 0xbf, 2 }, { 0xed, 0xed, 0x80, 0x9f, 2 }, { 0xee, 0xef, 0x80, 0xbf, 2 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 3 }, { 0xf1, 0xf3, 0x80, 0xbf, 3 }, { 0xf4, 0xf4, 0x80, 0x8f, 3 },
	};

	for (size_t i = 0; i < ABX_N(leads); i++)
		if (c >= leads[i].first && c <= leads[i].last) {
			*s = (struct naive){ leads[i].to_come, leads[i].low, leads[i].high, { c }, 1 };
			return true;
		}
	return false;
}

static void naive_byte(struct naive *s, unsigned char c, struct abx_strbuf *out)
{
	if (s->to_come && (c < s->low || c > s->high)) {
		abx_strbuf_add(out, replacement, 3);
		s->to_come = 0;
	}
	if (s->to_come) {
		s->bytes[s->n++] = c;
		s->to_come--;
		s->low = 0x80;
		s->high = 0xbf;
	} else if (!naive_begin(s, c)) {
		abx_strbuf_add(out, replacement, 3);
		return;
	}
	if (s->to_come == 0)
		abx_strbuf_add(out, s->bytes, s->n);
}

/* Feed `data` in pieces whose lengths the data itself decides. */
static void feed_pieces(const char *data, size_t size, struct abx_strbuf *out)
{
	struct abx_utf8 dec = { .n_held = 0 };

	for (size_t at = 0; at < size;) {
		size_t piece = (unsigned char)data[at] % 7 + 1;
		if (piece > size - at)
			piece = size - at;
		abx_utf8_feed(&dec, data + at, piece, out);
		FUZZ_CHECK(abx_utf8_is_valid(out->buf, out->len));
		at += piece;
	}
	abx_utf8_finish(&dec, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	abx_auto_strbuf struct abx_strbuf want = ABX_STRBUF_INIT, whole = ABX_STRBUF_INIT, pieces = ABX_STRBUF_INIT;
	const char *text = (const char *)data;
	struct naive s = { .to_come = 0 };

	for (size_t i = 0; i < size; i++)
		naive_byte(&s, data[i], &want);
	if (s.to_come)
		abx_strbuf_add(&want, replacement, 3);
	abx_utf8_lossy(text, size, &whole);
	FUZZ_CHECK(whole.len == want.len && memcmp(whole.buf, want.buf, want.len) == 0);
	feed_pieces(text, size, &pieces);
	FUZZ_CHECK(pieces.len == want.len && memcmp(pieces.buf, want.buf, want.len) == 0);

	size_t good = abx_utf8_valid_prefix(text, size);
	FUZZ_CHECK(good <= size && memcmp(want.buf, text, good) == 0);
	FUZZ_CHECK((good == size) == (want.len == size && memcmp(want.buf, text, size) == 0));
	/* Within valid text the floor is the last place where it may be cut. */
	for (size_t len = 0; len <= good; len++) {
		size_t at = abx_utf8_floor(text, len);
		FUZZ_CHECK(at <= len && len - at <= 3 && abx_utf8_is_valid(text, at));
		FUZZ_CHECK(at == len || !abx_utf8_is_valid(text, len));
	}
	return 0;
}
