/* Ranges, validators and file names of raw downloads. */
#include "handlers/file_ops/http.h"

#include <stdlib.h>

#include "t/tap.h"

#define WHOLE  HTTP_RANGE_WHOLE
#define PART   HTTP_RANGE_PART
#define REFUSE HTTP_RANGE_UNSATISFIABLE

static const struct {
	const char *header;
	int64_t size;
	enum http_range want;
	int64_t first, length;
} ranges[] = {
	{ "bytes=0-0", 10, PART, 0, 1 },
	{ "bytes=0-9", 10, PART, 0, 10 },
	{ "bytes=0-10", 10, PART, 0, 10 },
	{ "bytes=3-5", 10, PART, 3, 3 },
	{ "bytes=9-", 10, PART, 9, 1 },
	{ "bytes=0-", 10, PART, 0, 10 },
	{ "bytes=-3", 10, PART, 7, 3 },
	{ "bytes=-10", 10, PART, 0, 10 },
	{ "bytes=-11", 10, PART, 0, 10 },
	{ "BYTES = 3-5 ", 10, PART, 3, 3 },
	{ "bytes=3-99999999999999999999999", 10, PART, 3, 7 },
	{ "bytes=-99999999999999999999999", 10, PART, 0, 10 },
	{ "bytes=0000000000000000000000003-5", 10, PART, 3, 3 },
	{ "bytes=4611686018427387904-4611686018427387905", INT64_MAX, PART, INT64_C(1) << 62, 2 },
	{ "bytes=9223372036854775806-", INT64_MAX, PART, INT64_MAX - 1, 1 },
	{ "bytes=10-", 10, REFUSE, 0, 0 },
	{ "bytes=10-20", 10, REFUSE, 0, 0 },
	{ "bytes=99999999999999999999999-", 10, REFUSE, 0, 0 },
	{ "bytes=-0", 10, REFUSE, 0, 0 },
	{ "bytes=0-", 0, REFUSE, 0, 0 },
	{ "bytes=0-0", 0, REFUSE, 0, 0 },
	{ "bytes=-1", 0, REFUSE, 0, 0 },
	{ "bytes=5-3", 10, WHOLE, 0, 0 },
	{ "bytes=0-1,3-4", 10, WHOLE, 0, 0 },
	{ "bytes=0-1,", 10, WHOLE, 0, 0 },
	{ "bytes=", 10, WHOLE, 0, 0 },
	{ "bytes=-", 10, WHOLE, 0, 0 },
	{ "bytes=a-", 10, WHOLE, 0, 0 },
	{ "bytes=1", 10, WHOLE, 0, 0 },
	{ "bytes=1-x", 10, WHOLE, 0, 0 },
	{ "bytes=1-2x", 10, WHOLE, 0, 0 },
	{ "bytes=+1-2", 10, WHOLE, 0, 0 },
	{ "bytes=1--2", 10, WHOLE, 0, 0 },
	{ "bytes=--2", 10, WHOLE, 0, 0 },
	{ "bytes 1-2", 10, WHOLE, 0, 0 },
	{ "lines=1-2", 10, WHOLE, 0, 0 },
	{ "bytesx=1-2", 10, WHOLE, 0, 0 },
	{ "", 10, WHOLE, 0, 0 },
};

static void test_ranges(void)
{
	for (size_t i = 0; i < ABX_N(ranges); i++) {
		int64_t first = -1, length = -1;
		enum http_range got = http_range_parse(ranges[i].header, ranges[i].size, &first, &length);

		is_int(got, ranges[i].want, "'%s' of %lld", ranges[i].header, (long long)ranges[i].size);
		is_int(first, got == PART ? ranges[i].first : -1, "from");
		is_int(length, got == PART ? ranges[i].length : -1, "how many");
	}
}

static void test_etag(void)
{
	struct stat st = { .st_size = 5, .st_ino = 7, .st_mtim = { 1000, 1 } }, other = st;
	char a[HTTP_ETAG_SIZE], b[HTTP_ETAG_SIZE];

	http_etag(a, &st);
	ok(a[0] == '"' && a[strlen(a) - 1] == '"' && !memchr(a + 1, '"', strlen(a) - 2), "a tag is quoted: %s", a);
	other.st_size = 6;
	http_etag(b, &other);
	ok(strcmp(a, b) != 0, "another size");
	other = st;
	other.st_mtim.tv_nsec = 2;
	http_etag(b, &other);
	ok(strcmp(a, b) != 0, "another nanosecond");
	other = st;
	other.st_ino = 8;
	http_etag(b, &other);
	ok(strcmp(a, b) != 0, "another file");
	other = st;
	other.st_ctim.tv_nsec = 2;
	http_etag(b, &other);
	ok(strcmp(a, b) != 0, "a change behind a modification time that was set back");
	other = (struct stat){ .st_size = INT64_MAX, .st_ino = UINT64_MAX, .st_mtim = { INT64_MIN, 999999999 }, .st_ctim = { INT64_MIN, 999999999 } };
	http_etag(b, &other);
	ok(b[strlen(b) - 1] == '"', "the longest fits: %s", b);
}

static void test_dates(void)
{
	char text[HTTP_DATE_SIZE];

	http_date(text, 784111777);
	is_str(text, "Sun, 06 Nov 1994 08:49:37 GMT", "the example of RFC 9110");
	http_date(text, 0);
	is_str(text, "Thu, 01 Jan 1970 00:00:00 GMT", "the beginning");
	http_date(text, INT64_MAX);
	is_str(text, "Fri, 31 Dec 9999 23:59:59 GMT", "the end");
	http_date(text, INT64_MIN);
	is_int((long long)strlen(text), 29, "and before: %s", text);
	ok(http_not_modified_since("Sun, 06 Nov 1994 08:49:37 GMT", 784111777), "as old as asked");
	ok(http_not_modified_since(" Sun, 06 Nov 1994 08:49:37 GMT ", 784111776), "older");
	ok(!http_not_modified_since("Sun, 06 Nov 1994 08:49:37 GMT", 784111778), "newer");
	ok(!http_not_modified_since("", 0), "no date");
	ok(!http_not_modified_since("Sun, 06 Nov 1994 08:49:37 GMT x", 0), "more than a date");
	ok(!http_not_modified_since("yesterday", 0), "something else");
}

static void test_lists(void)
{
	ok(http_etag_listed("\"a\"", "\"a\""), "the tag");
	ok(http_etag_listed("W/\"a\"", "\"a\""), "weak");
	ok(http_etag_listed("\"x\", \"a\"", "\"a\""), "the second of two");
	ok(http_etag_listed("\"x\",W/\"y\" , \"a\"", "\"a\""), "the third");
	ok(http_etag_listed("*", "\"a\""), "any");
	ok(http_etag_listed(" * ", "\"a\""), "any, with blanks");
	ok(http_etag_listed("\"x,y\", \"a\"", "\"a\""), "a comma in a tag");
	ok(!http_etag_listed("\"x\"", "\"a\""), "another");
	ok(!http_etag_listed("\"ab\"", "\"a\""), "a longer one");
	ok(!http_etag_listed("\"a", "\"a\""), "an open one");
	ok(!http_etag_listed("a", "\"a\""), "without quotes");
	ok(!http_etag_listed("", "\"a\""), "none");
	ok(!http_etag_listed("*, \"x\"", "\"a\""), "a star in a list");
	ok(!http_etag_listed("\"x\" \"a\"", "\"a\""), "no comma between");
	ok(http_if_range("\"a\"", "\"a\"", "date"), "If-Range: the tag");
	ok(http_if_range(" date ", "\"a\"", "date"), "If-Range: the date");
	ok(!http_if_range("W/\"a\"", "\"a\"", "date"), "If-Range: a weak tag is none");
	ok(!http_if_range("\"b\"", "\"a\"", "date"), "If-Range: another");
	ok(!http_if_range("", "\"a\"", "date"), "If-Range: nothing");
}

static const struct {
	const char *name, *want;
} names[] = {
	{ "a.txt", "attachment; filename=\"a.txt\"" },
	{ "a b;c=d", "attachment; filename=\"a b;c=d\"" },
	{ "q\"uo\\te", "attachment; filename=\"q_uo_te\"; filename*=UTF-8''q%22uo%5Cte" },
	{ "50%", "attachment; filename=\"50_\"; filename*=UTF-8''50%25" },
	{ "a\r\nSet-Cookie: x", "attachment; filename=\"a__Set-Cookie: x\"; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20x" },
	{ "\x7f\x01", "attachment; filename=\"__\"; filename*=UTF-8''%7F%01" },
	{ "caf\xc3\xa9", "attachment; filename=\"caf_\"; filename*=UTF-8''caf%C3%A9" },
	{ "\xf0\x9f\x98\x80.md", "attachment; filename=\"_.md\"; filename*=UTF-8''%F0%9F%98%80.md" },
	{ "bad\xff", "attachment; filename=\"bad_\"; filename*=UTF-8''bad%EF%BF%BD" },
	{ "\x80", "attachment; filename=\"_\"; filename*=UTF-8''%EF%BF%BD" },
};

static void test_names(void)
{
	for (size_t i = 0; i < ABX_N(names); i++) {
		abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;

		http_disposition(names[i].name, &out);
		is_str(out.buf, names[i].want, "a disposition");
	}
}

int main(void)
{
	test_ranges();
	test_etag();
	test_dates();
	test_lists();
	test_names();
	return done_testing();
}
