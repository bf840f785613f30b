#include "common/uri.h"

#include <string.h>

#include "t/tap.h"

#define BYTES(literal) literal, sizeof(literal) - 1

/* Made with Python 3.11: urllib.parse.unquote_to_bytes. */
static const struct {
	const char *text, *bytes;
	size_t len;
} table[] = {
	{ "", BYTES("") },
	{ "a%20b", BYTES("a b") },
	{ "%41%zz", BYTES("A%zz") },
	{ "%", BYTES("%") },
	{ "%4", BYTES("%4") },
	{ "a%2", BYTES("a%2") },
	{ "100%", BYTES("100%") },
	{ "%%41", BYTES("%A") },
	{ "%%%41%", BYTES("%%A%") },
	{ "%g1", BYTES("%g1") },
	{ "%1g", BYTES("%1g") },
	{ "%00x", BYTES("\0x") },
	{ "%e2%82%ac", BYTES("\xe2\x82\xac") },
	{ "%E2%82%aC", BYTES("\xe2\x82\xac") },
	{ "%c3%28", BYTES("\xc3(") },
	{ "%2f%2F", BYTES("//") },
	{ "%25%34%31", BYTES("%41") },
	{ "+a+", BYTES("+a+") },
	{ "%2b", BYTES("+") },
};

static void test_decode(void)
{
	for (size_t i = 0; i < ABX_N(table); i++) {
		abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
		abx_uri_decode(table[i].text, strlen(table[i].text), false, &out);
		is_mem(out.buf, out.len, table[i].bytes, table[i].len, "decode '%s'", table[i].text);
		is_int(out.buf[out.len], '\0', "with a NUL behind it");
	}
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
	abx_strbuf_adds(&out, "before ");
	abx_uri_decode("+a%2B+", 6, true, &out);
	is_str(out.buf, "before  a+ ", "in a query '+' is a blank, %%2B is not, and what was there stays");
	abx_strbuf_reset(&out);
	abx_uri_decode("%41%42", 4, false, &out);
	is_str(out.buf, "A%", "nothing behind the length is read");

	abx_auto_strbuf struct abx_strbuf small = ABX_STRBUF_INIT_MAX(2);
	abx_uri_decode("abc", 3, false, &small);
	ok(small.failed && small.len == 0, "the ceiling of the buffer holds");
}

static void test_encode(void)
{
	char all[256];

	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	for (int keep_slash = 0; keep_slash < 2; keep_slash++) {
		abx_auto_strbuf struct abx_strbuf coded = ABX_STRBUF_INIT, back = ABX_STRBUF_INIT;
		abx_uri_encode(all, sizeof(all), keep_slash, &coded);
		is_int((long long)strspn(coded.buf,
					 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-%/"),
		       (long long)coded.len, "only harmless characters come out");
		is_int((long long)coded.len, 3 * 256 - 2 * (66 + keep_slash), "and no more are encoded than must be");
		is_int(strchr(coded.buf, '/') != NULL, keep_slash, "the slash is kept on request");
		abx_uri_decode(coded.buf, coded.len, true, &back);
		is_mem(back.buf, back.len, all, sizeof(all), "every byte comes back");
	}
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
	abx_uri_encode("a b/\xc3\xa9", 6, true, &out);
	is_str(out.buf, "a%20b/%C3%A9", "hex digits are upper-case");
}

static void is_param(const struct abx_query *query, size_t i, const char *name, const char *value)
{
	if (!ok(i < query->n, "there is a parameter %zu", i))
		return;
	const struct abx_query_param *param = &query->params[i];
	is_str(param->name, name, "its name");
	is_int((long long)param->name_len, (long long)strlen(name), "the length of its name");
	is_str(param->value, value, "its value");
	is_int((long long)param->value_len, (long long)strlen(value), "the length of its value");
}

static void test_query(void)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_query query;

	is_int(abx_query_parse("", &query, &err), 0, "an empty query");
	is_int((long long)query.n, 0, "has no parameters");
	ok(abx_query_find(&query, "") == NULL, "and none is found");
	abx_query_release(&query);

	is_int(abx_query_parse("&a=1&&b&c=&=v&d=x=y&e%3d=%26+%2B&", &query, &err), 0, "every shape of a part");
	is_int((long long)query.n, 6, "empty parts are skipped");
	is_param(&query, 0, "a", "1");
	is_param(&query, 1, "b", "");
	is_param(&query, 2, "c", "");
	is_param(&query, 3, "", "v");
	is_param(&query, 4, "d", "x=y");
	is_param(&query, 5, "e=", "& +");
	ok(abx_query_find(&query, "d") == &query.params[4], "a parameter is found by name");
	ok(abx_query_find(&query, "D") == NULL && abx_query_find(&query, "dd") == NULL, "and by that name only");
	abx_query_release(&query);
	ok(query.n == 0 && !query.params && !query.storage, "released is empty");

	is_int(abx_query_parse("a%00b=c%00d&a=1", &query, &err), 0, "a NUL inside");
	is_mem(query.params[0].name, query.params[0].name_len, "a\0b", 3, "is kept in the name");
	is_mem(query.params[0].value, query.params[0].value_len, "c\0d", 3, "and in the value");
	ok(abx_query_find(&query, "a") == &query.params[1], "and is no other name's");
	abx_query_release(&query);

	is_int(abx_query_parse("t[]=1&t[]=2&t%5B%5D=3", &query, &err), 0, "a name that ends in [] may repeat");
	is_int((long long)query.n, 3, "and all are there");
	is_str(query.params[2].value, "3", "in their order");
	abx_query_release(&query);
	is_int(err.kind, ABX_E_NONE, "success leaves the error alone");
}

static void test_query_refused(void)
{
	static const char *const twice[] = { "a=1&a=1",           "a&a",     "a=1&%61=2", "=1&=2",
					     "x+y=1&z=2&x%20y=3", "[=1&[=2", "[]x&[]x" };
	struct abx_query query;

	for (size_t i = 0; i < ABX_N(twice); i++) {
		struct abx_err err = ABX_ERR_INIT;
		memset(&query, 0x55, sizeof(query));
		is_int(abx_query_parse(twice[i], &query, &err), -1, "'%s' is refused", twice[i]);
		is_int(err.kind, ABX_E_DUPLICATE_PARAMETER, "as a duplicate");
		ok(query.n == 0 && !query.params && !query.storage, "and nothing is left to release");
	}

	abx_auto_strbuf struct abx_strbuf many = ABX_STRBUF_INIT;
	struct abx_err err = ABX_ERR_INIT;
	for (int i = 0; i < 256; i++)
		abx_strbuf_addf(&many, "&p%d", i);
	is_int(abx_query_parse(many.buf, &query, &err), 0, "256 parameters are fine");
	is_int((long long)query.n, 256, "all of them");
	is_str(query.params[255].name, "p255", "to the last");
	abx_query_release(&query);
	abx_strbuf_adds(&many, "&p256");
	is_int(abx_query_parse(many.buf, &query, &err), -1, "257 are not");
	is_int(err.kind, ABX_E_VALUE, "and a plain bad value");
}

int main(void)
{
	test_decode();
	test_encode();
	test_query();
	test_query_refused();
	return done_testing();
}
