#include "common/base64_simd.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>

#define AVX2 __attribute__((target("avx2")))

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

/* The same sixteen bytes in both halves. */
#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/* Four sextets from each three bytes, one in each byte of 32 bits. */
AVX2 static __m256i spread(__m256i bytes)
{
	/* Bytes a b c of a group as b a c b: then each sextet lies within 16 bits. */
	const __m256i order = TWICE(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
	__m256i groups = _mm256_shuffle_epi8(bytes, order);
	/* Shifts by different amounts, as multiplications: the first and third sextet down, the second and fourth up. */
	__m256i odd = _mm256_mulhi_epu16(_mm256_and_si256(groups, _mm256_set1_epi32(0x0fc0fc00)), _mm256_set1_epi32(0x04000040));
	__m256i even = _mm256_mullo_epi16(_mm256_and_si256(groups, _mm256_set1_epi32(0x003f03f0)), _mm256_set1_epi32(0x01000010));

	return _mm256_or_si256(odd, even);
}

AVX2 static __m256i to_characters(__m256i sextets)
{
	/* What to add to a sextet: by class, which is 13 for A-Z, 0 for a-z, 1 to 10 for digits, 11 for '+', 12 for '/'. */
	const __m256i steps = TWICE('a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
				    '0' - 52, '+' - 62, '/' - 63, 'A', 0, 0);
	__m256i class = _mm256_subs_epu8(sextets, _mm256_set1_epi8(51));
	__m256i capital = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), sextets);

	class = _mm256_or_si256(class, _mm256_and_si256(capital, _mm256_set1_epi8(13)));
	return _mm256_add_epi8(sextets, _mm256_shuffle_epi8(steps, class));
}

AVX2 static size_t encode_avx2(const unsigned char *data, size_t len, char *out)
{
	size_t i = 0;

	/* The second half is read from byte 12 on, so 28 bytes have to be there. */
	for (; len - i >= 28; i += 24, out += 32) {
		__m128i low = _mm_loadu_si128((const __m128i_u *)(const void *)(data + i));
		__m128i high = _mm_loadu_si128((const __m128i_u *)(const void *)(data + i + 12));
		__m256i text = to_characters(spread(_mm256_set_m128i(high, low)));

		_mm256_storeu_si256((__m256i_u *)(void *)out, text);
	}
	return i;
}

/*
 * Sextets from characters. What a character may be depends on its upper half; each upper half that has any digits has a bit, and each lower half the bits of
 * those with which it makes none (0x10: none does). *ret_bad: not zero where a character is no digit.
 */
AVX2 static __m256i to_sextets(__m256i text, __m256i *ret_bad)
{
	const __m256i upper_bits = TWICE(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10);
	const __m256i lower_bits = TWICE(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13, 0x1a, 0x1b, 0x1b, 0x1b, 0x1a);
	/* What to add, by upper half; '/' differs from '+', and uses the unused place before it. */
	const __m256i steps = TWICE(0, 63 - '/', 62 - '+', 52 - '0', -'A', -'A', 26 - 'a', 26 - 'a', 0, 0, 0, 0, 0, 0, 0, 0);
	const __m256i nibble = _mm256_set1_epi8(0x0f);
	__m256i upper = _mm256_and_si256(_mm256_srli_epi32(text, 4), nibble);
	__m256i lower = _mm256_and_si256(text, nibble);
	__m256i slash = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('/'));

	*ret_bad = _mm256_and_si256(_mm256_shuffle_epi8(upper_bits, upper), _mm256_shuffle_epi8(lower_bits, lower));
	return _mm256_add_epi8(text, _mm256_shuffle_epi8(steps, _mm256_add_epi8(upper, slash)));
}

/* Three bytes from each four sextets, twelve in each half, the rest zero. */
AVX2 static __m256i gather(__m256i sextets)
{
	const __m256i order = TWICE(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
	__m256i pairs = _mm256_maddubs_epi16(sextets, _mm256_set1_epi32(0x01400140));
	__m256i groups = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00011000));

	return _mm256_shuffle_epi8(groups, order);
}

AVX2 static size_t decode_avx2(const unsigned char *text, size_t len, unsigned char *out)
{
	/* The two halves brought together. */
	const __m256i together = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
	size_t i = 0;

	for (; len - i >= 32; i += 32, out += 24) {
		__m256i bad, bytes;
		__m256i sextets = to_sextets(_mm256_loadu_si256((const __m256i_u *)(const void *)(text + i)), &bad);

		if (!_mm256_testz_si256(bad, bad))
			break;
		bytes = _mm256_permutevar8x32_epi32(gather(sextets), together);
		/* Exactly 24 bytes: what follows may be text that is still to be read, or not ours. */
		_mm_storeu_si128((__m128i_u *)(void *)out, _mm256_castsi256_si128(bytes));
		_mm_storeu_si64(out + 16, _mm256_extracti128_si256(bytes, 1));
	}
	return i;
}

size_t abx_base64_encode_blocks(const unsigned char *data, size_t len, char *out)
{
	return has_avx2() ? encode_avx2(data, len, out) : 0;
}

size_t abx_base64_decode_blocks(const unsigned char *text, size_t len, unsigned char *out)
{
	return has_avx2() ? decode_avx2(text, len, out) : 0;
}

#else

size_t abx_base64_encode_blocks(const unsigned char *data, size_t len, char *out)
{
	(void)data;
	(void)len;
	(void)out;
	return 0;
}

size_t abx_base64_decode_blocks(const unsigned char *text, size_t len, unsigned char *out)
{
	(void)text;
	(void)len;
	(void)out;
	return 0;
}

#endif
