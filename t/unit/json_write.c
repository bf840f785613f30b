#include "common/json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "t/tap.h"

/* Made with Python 3.11: repr(). */
static const struct {
	double value;
	const char *repr;
} reprs[] = {
	{ 0x0.0p+0, "0.0" },
	{ -0x0.0p+0, "-0.0" },
	{ 0x1.0000000000000p+0, "1.0" },
	{ -0x1.0000000000000p+0, "-1.0" },
	{ 0x1.8000000000000p+1, "3.0" },
	{ 0x1.1eb851eb851ecp-4, "0.07" },
	{ 0x1.999999999999ap-4, "0.1" },
	{ 0x1.999999999999ap-3, "0.2" },
	{ 0x1.3333333333334p-2, "0.30000000000000004" },
	{ 0x1.5555555555555p-2, "0.3333333333333333" },
	{ 0x1.5555555555555p-1, "0.6666666666666666" },
	{ 0x1.a36e2eb1c432dp-14, "0.0001" },
	{ 0x1.4f8b588e368f1p-17, "1e-05" },
	{ 0x1.02e4b6ce5dc68p-13, "0.00012345" },
	{ 0x1.a36371ea531a8p-14, "9.999e-05" },
	{ 0x1.f75104d551d69p-17, "1.5e-05" },
	{ 0x1.d6f3454000000p+26, "123456789.0" },
	{ 0x1.c6bf526340000p+49, "1000000000000000.0" },
	{ 0x1.1c37937e08000p+53, "1e+16" },
	{ 0x1.6345785d8a000p+56, "1e+17" },
	{ 0x1.1c37937e07fffp+53, "9999999999999998.0" },
	{ 0x1.0f0cf064dd592p+73, "1e+22" },
	{ 0x1.52d02c7e14af6p+76, "1e+23" },
	{ 0x1.1eb2d66005835p+997, "1.5e+300" },
	{ -0x1.ac9a7b3b7302fp-996, "-2.5e-300" },
	{ 0x0.0000000000001p-1022, "5e-324" },
	{ 0x0.0000000000002p-1022, "1e-323" },
	{ 0x1.0000000000000p-1022, "2.2250738585072014e-308" },
	{ 0x0.fffffffffffffp-1022, "2.225073858507201e-308" },
	{ 0x1.fffffffffffffp+1023, "1.7976931348623157e+308" },
	{ 0x1.1666666666666p+2, "4.35" },
	{ 0x1.3333333333333p-2, "0.3" },
	{ 0x1.9000000000000p+6, "100.0" },
	{ 0x1.8fccccccccccdp+6, "99.95" },
	{ 0x1.9000000000000p+3, "12.5" },
	{ 0x1.9000000000000p+6, "100.0" },
	{ 0x1.2a05f20000000p+33, "10000000000.0" },
	{ 0x1.e240c9fbe76c9p+16, "123456.789" },
	{ 0x1.0000000000000p+53, "9007199254740992.0" },
	{ 0x1.0000000000001p+53, "9007199254740994.0" },
	{ 0x1.0000000000000p+63, "9.223372036854776e+18" },
	{ 0x1.0000000000000p+64, "1.8446744073709552e+19" },
	{ 0x1.0000000000000p-44, "5.684341886080802e-14" },
	{ 0x1.0000000000000p-1022, "2.2250738585072014e-308" },
	{ 0x0.0000000000001p-1022, "5e-324" },
	{ 0x1.0000000000000p+1023, "8.98846567431158e+307" },
	{ 0x1.921fb54442d18p+1, "3.141592653589793" },
	{ 0x1.5bf0a8b145769p+1, "2.718281828459045" },
	{ -0x1.0624dd2f1a9fcp-10, "-0.001" },
	{ 0x1.a36e2eb1c432dp-14, "0.0001" },
	{ 0x1.797cc39ffd60fp-14, "9e-05" },
	{ 0x1.249ad2594c37dp+332, "1e+100" },
	{ 0x1.199999999999ap+0, "1.1" },
	{ 0x1.5666666666666p+1, "2.675" },
	{ 0x1.ad7f29abcaf48p-24, "1e-07" },
	{ 0x1.b7cdfd9d7bdbbp-34, "1e-10" },
	{ 0x1.32cbd0fb7e910p+18, "314159.26535" },
	{ 0x1.0000000000000p-1, "0.5" },
	{ 0x1.0000000000000p-2, "0.25" },
	{ 0x1.954fc4007e6b4p+30, "1700000000.123456" },
	{ 0x1.b1ae4d6e2ef50p+69, "1e+21" },
	{ 0x1.5ee2a2eb5a5c4p+53, "1.2345678901234568e+16" },
	{ 0x1.18b54f22aeb03p+50, "1234567890123456.8" },
	{ 0x1.01f31f46ed246p-13, "0.000123" },
	{ 0x1.a36e2eb1c432dp-15, "5e-05" },
	{ 0x1.fe185ca57c517p+78, "6.02214076e+23" },
	{ 0x1.7a4da290c1653p-63, "1.602176634e-19" },
	{ 0x1.0000000000000p+53, "9007199254740992.0" },
	{ 0x1.ad7f29abcaf48p-24, "1e-07" },
	{ 0x0.730d67819e8d2p-1022, "1e-308" },
	{ -0x1.74de452e6b438p+811, "-1.989032661366619e+244" },
	{ 0x1.3270e269e0d37p+594, "7.761117632285041e+178" },
	{ 0x1.c7fd0a6a3a450p-826, "3.980498358697587e-249" },
	{ -0x1.f0824128b2f33p+292, "-1.5432835417340557e+88" },
	{ 0x1.8e811892f902bp-638, "1.3647584518757569e-192" },
	{ -0x1.1985d5d9dc9f8p-684, "-1.3701135617873088e-206" },
	{ -0x1.25d940ed90475p+655, "-1.7160537630466207e+197" },
	{ 0x1.675cc81e74ef5p-144, "6.294675241195386e-44" },
	{ 0x1.0a35a099950d8p-671, "1.0613447212142254e-202" },
	{ 0x1.d549b6f03675ap+689, "4.708325160387546e+207" },
	{ 0x1.c172411e20b8fp-38, "6.387016158513563e-12" },
	{ -0x1.16ece1738f7d9p-814, "-9.973130378568733e-246" },
	{ 0x1.1ddb66cad4a26p-781, "8.779753225680271e-236" },
	{ -0x1.192cfd3ac94afp-755, "-5.795503248498993e-228" },
	{ -0x1.c105d1fb17c23p+809, "-5.988180159386011e+243" },
	{ -0x1.0b33839263059p-488, "-1.306052388527796e-147" },
	{ -0x1.f48f1a09f76b5p-684, "-2.436117699484841e-206" },
	{ 0x1.630f1f29d0da9p-770, "2.233386999150174e-232" },
	{ -0x1.60af593bd04cfp-673, "-3.51527970626667e-203" },
	{ 0x1.1e29c658cda14p-820, "1.5987381841032883e-247" },
	{ 0x1.8d190f9ebdaccp-118, "4.6678633181812096e-36" },
	{ -0x1.1973e0becd7b0p-791, "-8.441872792105456e-239" },
	{ 0x1.7beaddbc496cbp-478, "1.9015657400796622e-144" },
	{ 0x1.cb2424a23d596p+693, "7.370437700706684e+208" },
	{ -0x1.a63ec24ede6a4p-857, "-1.7163996725272777e-258" },
	{ -0x1.766581e27a1c0p-733, "-3.2367190832119987e-221" },
	{ -0x1.d05584ef8aa38p-777, "-2.2818334634712625e-234" },
	{ -0x1.7ba94d0eda82fp-278, "-3.0536383926309363e-84" },
	{ 0x1.1dbe22e44158bp-601, "1.3449551894627777e-181" },
	{ -0x1.a736994e3bf91p-732, "-7.317495976062606e-221" },
};

static void test_repr(void)
{
	for (size_t i = 0; i < ABX_N(reprs); i++) {
		abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
		abx_json_repr(reprs[i].value, &out);
		is_str(out.buf, reprs[i].repr, "repr of %a", reprs[i].value);
	}
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
	abx_json_repr(-INFINITY, &out);
	abx_json_repr(NAN, &out);
	is_str(out.buf, "-infnan", "what is no number");
}

static void test_layout(void)
{
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);

	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "s", "x");
	abx_jw_kstring(&jw, "n\"", NULL);
	abx_jw_kint(&jw, "i", INT64_MIN);
	abx_jw_kbool(&jw, "t", true);
	abx_jw_kbool(&jw, "f", false);
	abx_jw_key(&jw, "a");
	abx_jw_array(&jw);
	abx_jw_int(&jw, INT64_MAX);
	abx_jw_array(&jw);
	abx_jw_array_end(&jw);
	abx_jw_object(&jw);
	abx_jw_object_end(&jw);
	abx_jw_double(&jw, 0.07);
	abx_jw_double(&jw, INFINITY);
	abx_jw_double(&jw, NAN);
	abx_jw_null(&jw);
	abx_jw_bool(&jw, true);
	abx_jw_string(&jw, "");
	abx_jw_stringn(&jw, "a\0b", 3);
	abx_jw_array_end(&jw);
	abx_jw_key(&jw, "o");
	abx_jw_object(&jw);
	abx_jw_kint(&jw, "x", 0);
	abx_jw_object_end(&jw);
	abx_jw_object_end(&jw);
	is_str(out.buf,
	       "{\"s\": \"x\", \"n\\\"\": null, \"i\": -9223372036854775808, \"t\": true, \"f\": false, \"a\": "
	       "[9223372036854775807, [], {}, "
	       "0.07, null, null, null, true, \"\", \"a\\u0000b\"], \"o\": {\"x\": 0}}",
	       "commas, blanks and all kinds of values");
	ok(!out.failed, "without a failure");
	is_int(jw.depth, 0, "and everything closed");
}

static void test_escape(void)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "\b\f\n\r\t\"\\/", "\\b\\f\\n\\r\\t\\\"\\\\/" },
		{ "\x01\x1f\x7f", "\\u0001\\u001f\x7f" },
		{ "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "a\xff\"b\xe2\x82", "a\xef\xbf\xbd\\\"b\xef\xbf\xbd" },
		{ "\"\x80\x80\n", "\\\"\xef\xbf\xbd\xef\xbf\xbd\\n" },
	};

	for (size_t i = 0; i < ABX_N(rows); i++) {
		abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
		abx_json_escape(rows[i].in, strlen(rows[i].in), &out);
		is_str(out.buf, rows[i].out, "escape, row %zu", i);
	}
	/* Each special byte at each place around the blocks that are looked at together. */
	bool right = true;
	for (int c = 0; c < 256; c++)
		for (size_t at = 0; at < 40; at++) {
			abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
			char text[40], want[100], coded[8];
			memset(text, 'a', sizeof(text));
			text[at] = (char)c;
			abx_json_escape(text, sizeof(text), &out);
			const char *letter = c && c < 128 ? strchr("\bb\ff\nn\rr\tt\"\"\\\\", c) : NULL;
			if (letter && c != 'b' && c != 'f' && c != 'n' && c != 'r' && c != 't')
				snprintf(coded, sizeof(coded), "\\%c", letter[1]);
			else if (c < 0x20)
				snprintf(coded, sizeof(coded), "\\u%04x", (unsigned)c);
			else if (c < 0x80)
				snprintf(coded, sizeof(coded), "%c", c);
			else
				snprintf(coded, sizeof(coded), "\xef\xbf\xbd");
			snprintf(want, sizeof(want), "%.*s%s%.*s", (int)at, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
				 coded, (int)(39 - at), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
			right = right && strcmp(out.buf, want) == 0;
		}
	ok(right, "every byte at every place");

	abx_auto_strbuf struct abx_strbuf small = ABX_STRBUF_INIT_MAX(5);
	abx_json_escape("\xff\xff", 2, &small);
	ok(small.failed, "text that grows past the ceiling by being mended fails");
}

static void test_value(void)
{
	static const char text[] = "{\"z\": 1, \"a\": [true, false, null, -0.0, 1e-05, 3.0, \"x\\u0000\\ny\xc3\xa9\"], "
				   "\"o\": {}, \"l\": []}";
	struct abx_err err = ABX_ERR_INIT;
	json_auto_t *value = abx_json_parse(text, strlen(text), &err), *list = json_array();
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);

	if (!ok(value != NULL, "the text is JSON"))
		return;
	abx_jw_value(&jw, value);
	is_str(out.buf, text, "a value is written as it was read, in its order");
	abx_strbuf_reset(&out);
	jw = (struct abx_json_writer)ABX_JSON_WRITER_INIT(&out);
	abx_jw_array(&jw);
	json_array_append_new(list, json_integer(5));
	abx_jw_value(&jw, list);
	abx_jw_value(&jw, json_array_get(list, 0));
	abx_jw_array_end(&jw);
	is_str(out.buf, "[[5], 5]", "values between other values get their commas");
}

static void write_nested(struct abx_json_writer *jw, int levels)
{
	for (int i = 0; i < levels; i++)
		abx_jw_array(jw);
	for (int i = 0; i < levels; i++)
		abx_jw_array_end(jw);
}

static void test_depth(void)
{
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT, again = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);

	write_nested(&jw, ABX_JSON_DEPTH);
	ok(!out.failed && out.len == 2 * ABX_JSON_DEPTH, "the deepest nesting is written");
	struct abx_err err = ABX_ERR_INIT;
	json_auto_t *value = abx_json_parse(out.buf, out.len, &err);
	ok(value != NULL, "and read");
	jw = (struct abx_json_writer)ABX_JSON_WRITER_INIT(&again);
	write_nested(&jw, ABX_JSON_DEPTH + 1);
	ok(again.failed, "one level more is not");
	abx_strbuf_reset(&again);
	jw = (struct abx_json_writer)ABX_JSON_WRITER_INIT(&again);
	abx_jw_array(&jw);
	abx_jw_value(&jw, value);
	abx_jw_array_end(&jw);
	ok(again.failed, "nor is it when a value brings it");
	is_int(jw.depth, 0, "the levels are closed all the same");
}

static void test_ceiling(void)
{
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT_MAX(12);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);

	abx_jw_array(&jw);
	abx_jw_string(&jw, "12345678");
	abx_jw_array_end(&jw);
	ok(!out.failed, "twelve bytes fit into twelve");
	abx_strbuf_reset(&out);
	jw = (struct abx_json_writer)ABX_JSON_WRITER_INIT(&out);
	abx_jw_array(&jw);
	abx_jw_string(&jw, "123456789");
	abx_jw_array_end(&jw);
	ok(out.failed, "thirteen do not");
}

int main(void)
{
	test_repr();
	test_layout();
	test_escape();
	test_value();
	test_depth();
	test_ceiling();
	return done_testing();
}
