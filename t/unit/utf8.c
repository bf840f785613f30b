#include "common/utf8.h"

#include <string.h>

#include "t/tap.h"

#define BYTES(literal) literal, sizeof(literal) - 1

/* Made with Python 3.11: bytes.decode("utf-8", errors="replace").encode(). */
static const struct {
	const char *in;
	size_t in_len;
	const char *out;
	size_t out_len;
} table[] = {
	{ BYTES(""), BYTES("") },
	{ BYTES("abc"), BYTES("abc") },
	{ BYTES("\000a\000"), BYTES("\000a\000") },
	{ BYTES("\303\251"), BYTES("\303\251") },
	{ BYTES("\346\227\245\346\234\254"), BYTES("\346\227\245\346\234\254") },
	{ BYTES("\360\237\230\200"), BYTES("\360\237\230\200") },
	{ BYTES("\177\302\200"), BYTES("\177\302\200") },
	{ BYTES("\337\277\340\240\200"), BYTES("\337\277\340\240\200") },
	{ BYTES("\355\237\277\356\200\200"), BYTES("\355\237\277\356\200\200") },
	{ BYTES("\357\277\277\360\220\200\200"), BYTES("\357\277\277\360\220\200\200") },
	{ BYTES("\364\217\277\277"), BYTES("\364\217\277\277") },
	{ BYTES("\200"), BYTES("\357\277\275") },
	{ BYTES("\277"), BYTES("\357\277\275") },
	{ BYTES("\200\200"), BYTES("\357\277\275\357\277\275") },
	{ BYTES("a\200b"), BYTES("a\357\277\275b") },
	{ BYTES("\300"), BYTES("\357\277\275") },
	{ BYTES("\300\200"), BYTES("\357\277\275\357\277\275") },
	{ BYTES("\301\277"), BYTES("\357\277\275\357\277\275") },
	{ BYTES("\302"), BYTES("\357\277\275") },
	{ BYTES("\302a"), BYTES("\357\277\275a") },
	{ BYTES("\302\302\251"), BYTES("\357\277\275\302\251") },
	{ BYTES("\302\300"), BYTES("\357\277\275\357\277\275") },
	{ BYTES("\337\177"), BYTES("\357\277\275\177") },
	{ BYTES("\340"), BYTES("\357\277\275") },
	{ BYTES("\340\200"), BYTES("\357\277\275\357\277\275") },
	{ BYTES("\340\237\277"), BYTES("\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\340\240"), BYTES("\357\277\275") },
	{ BYTES("\340\240a"), BYTES("\357\277\275a") },
	{ BYTES("\341\200"), BYTES("\357\277\275") },
	{ BYTES("\341\200\341\200"), BYTES("\357\277\275\357\277\275") },
	{ BYTES("\341\341\341\200\200"), BYTES("\357\277\275\357\277\275\341\200\200") },
	{ BYTES("\355\240\200"), BYTES("\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\355\277\277"), BYTES("\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\355\240\200\355\260\200"),
	  BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\355\237"), BYTES("\357\277\275") },
	{ BYTES("\357\277"), BYTES("\357\277\275") },
	{ BYTES("\357\277x"), BYTES("\357\277\275x") },
	{ BYTES("\360"), BYTES("\357\277\275") },
	{ BYTES("\360\200\200\200"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\360\217\277\277"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\360\220"), BYTES("\357\277\275") },
	{ BYTES("\360\220\200"), BYTES("\357\277\275") },
	{ BYTES("\360\220\200x"), BYTES("\357\277\275x") },
	{ BYTES("\360\237\230"), BYTES("\357\277\275") },
	{ BYTES("\360\237\230\360\237\230\200"), BYTES("\357\277\275\360\237\230\200") },
	{ BYTES("\361\200\200\303\251"), BYTES("\357\277\275\303\251") },
	{ BYTES("\364\217\277"), BYTES("\357\277\275") },
	{ BYTES("\364\220\200\200"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\364\277"), BYTES("\357\277\275\357\277\275") },
	{ BYTES("\365\200\200\200"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\370\210\200\200\200"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\374\204\200\200\200\200"),
	  BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\376"), BYTES("\357\277\275") },
	{ BYTES("\377"), BYTES("\357\277\275") },
	{ BYTES("\376\376\377\377"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("x\342\202"), BYTES("x\357\277\275") },
	{ BYTES("x\342\202\254y\342\202"), BYTES("x\342\202\254y\357\277\275") },
	{ BYTES("\342(\241"), BYTES("\357\277\275(\357\277\275") },
	{ BYTES("\342\202("), BYTES("\357\277\275(") },
	{ BYTES("\360(\214\274"), BYTES("\357\277\275(\357\277\275\357\277\275") },
	{ BYTES("\360\220(\274"), BYTES("\357\277\275(\357\277\275") },
	{ BYTES("\360(\214("), BYTES("\357\277\275(\357\277\275(") },
	{ BYTES("\240\241"), BYTES("\357\277\275\357\277\275") },
	{ BYTES("\303("), BYTES("\357\277\275(") },
	{ BYTES("ab\303\251cd\342\202\254ef\360\237\230\200gh"),
	  BYTES("ab\303\251cd\342\202\254ef\360\237\230\200gh") },
	{ BYTES("\237\360\200\217\220"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\200\377\277\200\217"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\361\217\302\217\361\200"), BYTES("\357\277\275\302\217\357\277\275") },
	{ BYTES("\220\302\200\360\200\302\200\237\340"),
	  BYTES("\357\277\275\302\200\357\277\275\357\277\275\302\200\357\277\275\357\277\275") },
	{ BYTES("\237\220\340\240\220\277"), BYTES("\357\277\275\357\277\275\340\240\220\357\277\275") },
	{ BYTES("\220\217\200\277\365"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\361\341\364\364\355\340\302\240"),
	  BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\302\240") },
	{ BYTES("\302\217\340\377\365\341\364\340"),
	  BYTES("\302\217\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\217\220\377\361\240\341\237"),
	  BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\361\200\217\341\341\355"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\365\364\217\217\337\365\217"),
	  BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\340\364\340"), BYTES("\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\360\355A\364\355\240\220\365"),
	  BYTES("\357\277\275\357\277\275A\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\277\340\237"), BYTES("\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\302\360\360\365\217\240\364\360"),
	  BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\337\237\361\337\361\355\360"),
	  BYTES("\337\237\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\237\217\240\237"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\302A\365\240"), BYTES("\357\277\275A\357\277\275\357\277\275") },
	{ BYTES("\340A\237\361\355"), BYTES("\357\277\275A\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\341\237\377\200\364\360\360"),
	  BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\360\220\365\360\200\277"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\277\364\240"), BYTES("\357\277\275\357\277\275\357\277\275") },
	{ BYTES("\341\200\220"), BYTES("\341\200\220") },
	{ BYTES("\237\220\355"), BYTES("\357\277\275\357\277\275\357\277\275") },
	{ BYTES("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\303\251BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\377CCCCCCCCCCCCCCCCCCC"
		"CCCCCCCCCCCCCC"),
	  BYTES("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\303\251BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\357\277\275CCCCCCCCCCC"
		"CCCCCCCCCCCCCCCCCCCCCC") },
	{ BYTES("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\342\202"),
	  BYTES("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\357\277\275") },
};

static void test_lossy(void)
{
	for (size_t i = 0; i < ABX_N(table); i++) {
		abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
		abx_utf8_lossy(table[i].in, table[i].in_len, &out);
		is_mem(out.buf, out.len, table[i].out, table[i].out_len, "row %zu in one piece", i);
		bool same =
			table[i].in_len == table[i].out_len && memcmp(table[i].in, table[i].out, table[i].in_len) == 0;
		is_int(abx_utf8_is_valid(table[i].in, table[i].in_len), same, "row %zu is judged", i);
	}
}

static void test_pieces(void)
{
	for (size_t i = 0; i < ABX_N(table); i++) {
		abx_auto_strbuf struct abx_strbuf bytewise = ABX_STRBUF_INIT;
		struct abx_utf8 dec = { .n_held = 0 };
		for (size_t k = 0; k < table[i].in_len; k++) {
			abx_utf8_feed(&dec, table[i].in + k, 1, &bytewise);
			if (!abx_utf8_is_valid(bytewise.buf, bytewise.len))
				ok(false, "row %zu: torn after byte %zu", i, k);
		}
		abx_utf8_finish(&dec, &bytewise);
		is_mem(bytewise.buf, bytewise.len, table[i].out, table[i].out_len, "row %zu byte by byte", i);
		for (size_t at = 0; at <= table[i].in_len; at++) {
			abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
			abx_utf8_feed(&dec, table[i].in, at, &out);
			abx_utf8_feed(&dec, table[i].in + at, table[i].in_len - at, &out);
			abx_utf8_finish(&dec, &out);
			if (out.len != table[i].out_len || memcmp(out.buf, table[i].out, out.len) != 0)
				is_mem(out.buf, out.len, table[i].out, table[i].out_len, "row %zu split at %zu", i, at);
		}
	}
}

static void test_prompt(void)
{
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
	struct abx_utf8 dec = { .n_held = 0 };

	abx_utf8_feed(&dec, "ab\xe2\x82", 4, &out);
	is_str(out.buf, "ab", "only the unfinished character is kept back");
	abx_utf8_feed(&dec, "\xac", 1, &out);
	is_str(out.buf, "ab\xe2\x82\xac", "and appended when it is whole");
	abx_utf8_feed(&dec, "\xf0\x9f", 2, &out);
	abx_utf8_finish(&dec, &out);
	abx_utf8_finish(&dec, &out);
	is_str(out.buf, "ab\xe2\x82\xac\xef\xbf\xbd", "the end replaces what was begun, once");
}

/* A bad byte at each place around the blocks that are looked at together. */
static void test_prefix(void)
{
	char text[200];
	bool right = true;

	for (size_t len = 0; len < sizeof(text); len++)
		for (size_t bad = 0; bad < len; bad++) {
			memset(text, 'a', sizeof(text));
			text[bad] = '\xff';
			right = right && abx_utf8_valid_prefix(text, len) == bad;
		}
	ok(right, "the first bad byte is found wherever it is");
	is_int((long long)abx_utf8_valid_prefix("a\xc3\xa9\xe2\x82", 5), 3, "a character that is cut off is not valid");
	is_int((long long)abx_utf8_valid_prefix("", 0), 0, "nothing is valid");
}

static void test_floor(void)
{
	static const struct {
		const char *text;
		size_t len, want;
	} rows[] = {
		{ "abc", 0, 0 },
		{ "abc", 2, 2 },
		{ "a\xc3\xa9z", 1, 1 },
		{ "a\xc3\xa9z", 2, 1 },
		{ "a\xc3\xa9z", 3, 3 },
		{ "\xe2\x82\xac", 1, 0 },
		{ "\xe2\x82\xac", 2, 0 },
		{ "\xe2\x82\xac", 3, 3 },
		{ "\xf0\x9f\x98\x80", 1, 0 },
		{ "\xf0\x9f\x98\x80", 2, 0 },
		{ "\xf0\x9f\x98\x80", 3, 0 },
		{ "\xf0\x9f\x98\x80", 4, 4 },
		{ "\x80\x80\x80\x80", 4, 4 },
		{ "ab\xff", 3, 3 },
		{ "\xe0\x80\x80", 2, 2 },
		{ "\xc3\xa9\xa9", 3, 3 },
		{ "\xf0\x9f\x98\x80\x80", 5, 5 },
	};

	for (size_t i = 0; i < ABX_N(rows); i++)
		is_int((long long)abx_utf8_floor(rows[i].text, rows[i].len), (long long)rows[i].want, "floor, row %zu",
		       i);
}

int main(void)
{
	test_lossy();
	test_pieces();
	test_prompt();
	test_prefix();
	test_floor();
	return done_testing();
}
