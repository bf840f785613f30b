#include "common/ids.h"

#include <string.h>

#include "t/tap.h"

static void test_hex(void)
{
	static const size_t lengths[] = { 0, 1, 2, 15, 16, 31, 32, 63, 64, 65, 127, 129, 1000 };
	char id[1002], other[33];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(id, '#', sizeof(id));
		abx_id_hex(id, lengths[i]);
		ok(strlen(id) == lengths[i] && strspn(id, "0123456789abcdef") == lengths[i], "%zu hex digits", lengths[i]);
		is_int(id[lengths[i] + 1], '#', "and nothing behind the NUL");
	}
	/* 1000 digits of which one value is missing have a chance of 10^-13, in either half. */
	char halves[2][501] = { "", "" };
	for (size_t i = 0; i < 1000; i++)
		halves[i % 2][i / 2] = id[i];
	for (const char *digit = "0123456789abcdef"; *digit; digit++)
		ok(strchr(halves[0], *digit) && strchr(halves[1], *digit), "digit %c occurs at even and at odd places", *digit);
	abx_id_hex(id, 32);
	abx_id_hex(other, 32);
	ok(strcmp(id, other) != 0, "two identifiers differ");
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
	ok(!abx_id_is_sane("a\nb") && !abx_id_is_sane("a b") && !abx_id_is_sane("a\r\nSet-Cookie: x"), "no blanks or line breaks");
}

int main(void)
{
	test_hex();
	test_sane();
	return done_testing();
}
