/* Base64 against nettle where there are no line breaks, in place against aside, and back again. */
#include "common/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/base64.h>

#include "common/auto.h"
#include "t/fuzz/fuzz.h"

static ssize_t decode_with_nettle(const char *text, size_t len, uint8_t *out)
{
	struct base64_decode_ctx ctx;
	size_t n = BASE64_DECODE_LENGTH(len);

	base64_decode_init(&ctx);
	if (!base64_decode_update(&ctx, &n, out, len, text) || !base64_decode_final(&ctx))
		return -1;
	return (ssize_t)n;
}

/*
 * nettle skips blanks and does not look at the bits behind the last byte, so its result counts where
 * encoding it gives the text back.
 */
static void check_against_nettle(const char *text, size_t len, const uint8_t *got, ssize_t n)
{
	abx_auto_free uint8_t *theirs = malloc(BASE64_DECODE_LENGTH(len) + 1);
	abx_auto_free char *again = malloc(BASE64_ENCODE_RAW_LENGTH(len) + 1);
	ssize_t n_theirs = decode_with_nettle(text, len, theirs);
	bool exact = false;

	if (n_theirs >= 0) {
		base64_encode_raw(again, (size_t)n_theirs, theirs);
		exact = BASE64_ENCODE_RAW_LENGTH((size_t)n_theirs) == len && memcmp(again, text, len) == 0;
	}
	FUZZ_CHECK((n >= 0) == exact);
	FUZZ_CHECK(n < 0 || (n == n_theirs && memcmp(got, theirs, (size_t)n) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	abx_auto_free char *text = malloc(size ? size : 1), *stripped = malloc(size + 1),
			   *coded = malloc(ABX_BASE64_ENCODED(size) + 1);
	abx_auto_free uint8_t *out = malloc(ABX_BASE64_DECODED(size)),
			      *back = malloc(ABX_BASE64_DECODED(ABX_BASE64_ENCODED(size)));
	size_t n_stripped = 0;

	/* Any bytes go there and back. */
	FUZZ_CHECK(abx_base64_encode(data, size, coded) == ABX_BASE64_ENCODED(size));
	FUZZ_CHECK(abx_base64_decode(coded, ABX_BASE64_ENCODED(size), back) == (ssize_t)size);
	FUZZ_CHECK(size == 0 || memcmp(back, data, size) == 0);

	/* As text: aside and in place the same; line breaks make no difference. */
	memcpy(text, data, size);
	for (size_t i = 0; i < size; i++)
		if (text[i] != '\r' && text[i] != '\n')
			stripped[n_stripped++] = text[i];
	ssize_t n = abx_base64_decode(text, size, out);
	check_against_nettle(stripped, n_stripped, out, n);
	ssize_t in_place = abx_base64_decode(text, size, text);
	FUZZ_CHECK(in_place == n && (n <= 0 || memcmp(text, out, (size_t)n) == 0));
	return 0;
}
