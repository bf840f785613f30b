#include "common/base64.h"

#include <stdlib.h>
#include <string.h>

#include <nettle/base64.h>

#include "common/auto.h"
#include "t/tap.h"

static void test_known(void)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xef\xbe\xfb", "/+++"
				      "+w==" },
	};

	for (size_t i = 0; i < ABX_N(rows); i++) {
		char out[32];
		size_t len = strlen(rows[i][0]), n = abx_base64_encode(rows[i][0], len, out);
		is_mem(out, n, rows[i][1], strlen(rows[i][1]), "encode %s", rows[i][1]);
		is_int((long long)n, (long long)ABX_BASE64_ENCODED(len), "in the length that was told");
		ssize_t back = abx_base64_decode(rows[i][1], strlen(rows[i][1]), out);
		is_mem(out, back < 0 ? 99 : (size_t)back, rows[i][0], len, "decode %s", rows[i][1]);
	}
}

static void test_refused(void)
{
	static const char *const rows[] = {
		"Q",
		"QQ",
		"QQQ",
		"QQ=",
		"=",
		"==",
		"====",
		"Q===",
		"QQ==Q",
		"QQ==QQ==",
		"QR==",
		"QQI=\n=",
		"QQJ=",
		"QQ=Q",
		"QQ Q",
		" QQQQ",
		"QQQQ ",
		"QQQQ\t",
		"QQ-_",
		"QQQQ!QQQ",
		"QQQQQQQ",
		"QQQQQ",
		"QQ\fQQ",
		"QQQQQQQQ=",
		"QQ==\nQ",
		"\xc3\xa9QQ",
		"Q=QQ",
		"QQ==\n=",
		"QQQQQQQQQQQ\xff",
		"QQ==\r\nx",
	};

	for (size_t i = 0; i < ABX_N(rows); i++) {
		char out[32];
		is_int(abx_base64_decode(rows[i], strlen(rows[i]), out), -1, "row %zu is refused", i);
	}
	char out[ABX_BASE64_DECODED(16)];
	is_int(abx_base64_decode("QQ\0Q", 4, out), -1, "a NUL is refused");
	for (size_t len = 0; len <= 16; len++)
		is_int(abx_base64_decode("QQQQQQQQQQQQQQQQ", len, out), len % 4 ? -1 : (long long)len / 4 * 3,
		       "%zu of 16 characters", len);
}

/* Every byte in every place of a group: only the 64 may pass, each with its own value. */
static void test_alphabet(void)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	bool right = true;

	for (int place = 0; place < 16; place++)
		for (int c = 0; c < 256; c++) {
			char text[] = "AAAAAAAAAAAAAAAA";
			unsigned char out[15];
			const char *found = c ? strchr(alphabet, c) : NULL;
			text[place] = (char)c;
			ssize_t n = abx_base64_decode(text, 16, out);
			unsigned long bits = n < 12 ? 0
						    : (unsigned long)out[place / 4 * 3] << 16 |
							      (unsigned long)out[place / 4 * 3 + 1] << 8 |
							      out[place / 4 * 3 + 2];
			if (found)
				right = right && n == 12 &&
					bits >> (18 - place % 4 * 6) == (unsigned long)(found - alphabet);
			else if (c == '=' && place == 15)
				right = right && n == 11;
			else
				right = right && n == -1;
		}
	ok(right, "each character has its value, and no other passes");
}

static void test_breaks(void)
{
	static const char text[] = "Zm9vYmFyZm9vYmE=";

	for (size_t at = 0; at < sizeof(text); at++) {
		char broken[64], out[64];
		int n = snprintf(broken, sizeof(broken), "%.*s\r\n\n%s", (int)at, text, text + at);
		ssize_t got = abx_base64_decode(broken, (size_t)n, out);
		is_mem(out, got < 0 ? 99 : (size_t)got, "foobarfooba", 11, "a line break at %zu", at);
	}
	char out[8];
	is_int(abx_base64_decode("\r\n\n\r", 4, out), 0, "only line breaks are nothing");
	is_int(abx_base64_decode("\nQ\nQ\n=\n=\n", 9, out), 1, "a line break between any two characters");
}

/* Against nettle, at all lengths around the groups, in place and aside; without a byte past the room that was told. */
static void test_lengths(void)
{
	bool same_encode = true, same_decode = true, same_in_place = true, broken_in_place = true, kept = true;

	for (size_t len = 0; len < 300; len++) {
		abx_auto_free unsigned char *data = malloc(len + 1);
		size_t n_text = ABX_BASE64_ENCODED(len);
		abx_auto_free char *text = malloc(n_text + 1), *want = malloc(n_text + 1),
				   *lines = malloc(2 * n_text + 1);
		abx_auto_free unsigned char *out = malloc(ABX_BASE64_DECODED(n_text) + 1);
		for (size_t i = 0; i < len; i++)
			data[i] = (unsigned char)(i * 167 + len * 31);
		text[n_text] = '#';
		same_encode = same_encode && abx_base64_encode(data, len, text) == n_text;
		base64_encode_raw(want, len, data);
		same_encode = same_encode && memcmp(text, want, n_text) == 0 && text[n_text] == '#';
		out[ABX_BASE64_DECODED(n_text)] = '#';
		ssize_t n = abx_base64_decode(text, n_text, out);
		same_decode = same_decode && n == (ssize_t)len && memcmp(out, data, len) == 0;
		kept = kept && out[ABX_BASE64_DECODED(n_text)] == '#';
		size_t n_lines = 0;
		for (size_t i = 0; i < n_text; i++) {
			lines[n_lines++] = text[i];
			if (i % 7 == 3)
				lines[n_lines++] = '\n';
		}
		n = abx_base64_decode(lines, n_lines, lines);
		broken_in_place = broken_in_place && n == (ssize_t)len && memcmp(lines, data, len) == 0;
		n = abx_base64_decode(text, n_text, text);
		same_in_place = same_in_place && n == (ssize_t)len && memcmp(text, data, len) == 0;
	}
	ok(same_encode, "encodes as nettle does");
	ok(same_decode, "decodes what it encoded");
	ok(kept, "and stays within the room that was told");
	ok(same_in_place, "in place as well");
	ok(broken_in_place, "with line breaks, too");
}

int main(void)
{
	test_known();
	test_refused();
	test_alphabet();
	test_breaks();
	test_lengths();
	return done_testing();
}
