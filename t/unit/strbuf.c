#include "common/strbuf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

static void test_append(void)
{
	abx_auto_strbuf struct abx_strbuf sb = ABX_STRBUF_INIT;

	is_str(sb.buf, "", "readable before the first append");
	abx_strbuf_adds(&sb, "ab");
	abx_strbuf_addc(&sb, 'c');
	abx_strbuf_add(&sb, "\0d", 2);
	abx_strbuf_add(&sb, NULL, 0);
	is_mem(sb.buf, sb.len + 1, "abc\0d", 6, "bytes are appended, a NUL follows");
	abx_strbuf_addf(&sb, "%s-%d", "x", 7);
	is_mem(sb.buf, sb.len + 1, "abc\0dx-7", 9, "formatted text is appended");
	abx_strbuf_consume(&sb, 4);
	is_str(sb.buf, "dx-7", "consume removes the front");
	abx_strbuf_truncate(&sb, 100);
	is_str(sb.buf, "dx-7", "truncate to more than there is changes nothing");
	abx_strbuf_truncate(&sb, 2);
	is_str(sb.buf, "dx", "truncate cuts");
	is_int((long long)sb.len, 2, "and the length says so");
	abx_strbuf_consume(&sb, 99);
	is_str(sb.buf, "", "consume of more than there is empties");
	abx_strbuf_adds(&sb, "again");
	size_t alloc = sb.alloc;
	abx_strbuf_reset(&sb);
	is_str(sb.buf, "", "reset empties");
	is_int((long long)sb.alloc, (long long)alloc, "and keeps the memory");
	is_str(abx_strbuf_empty, "", "the shared empty string was never written to");
}

/* Every length of formatted text against every fill of the buffer, so that each meets the end of the memory. */
static void test_format_growth(void)
{
	char text[200], want[400];
	bool same = true;

	for (int have = 0; have < 130; have++)
		for (int more = 0; more < 130; more++) {
			abx_auto_strbuf struct abx_strbuf sb = ABX_STRBUF_INIT;
			memset(text, 'x', sizeof(text));
			abx_strbuf_add(&sb, text, (size_t)have);
			abx_strbuf_addf(&sb, "%.*s", more, text);
			snprintf(want, sizeof(want), "%.*s%.*s", have, text, more, text);
			same = same && !sb.failed && sb.len == (size_t)(have + more) && strcmp(sb.buf, want) == 0;
		}
	ok(same, "formatted text is whole wherever the memory ended");
}

static void test_ceiling(void)
{
	abx_auto_strbuf struct abx_strbuf sb = ABX_STRBUF_INIT_MAX(10);

	abx_strbuf_adds(&sb, "0123456789");
	ok(!sb.failed && sb.len == 10, "exactly the maximum fits");
	abx_strbuf_addc(&sb, 'x');
	ok(sb.failed, "one byte more fails");
	is_str(sb.buf, "0123456789", "and is dropped");
	abx_strbuf_truncate(&sb, 2);
	abx_strbuf_adds(&sb, "y");
	abx_strbuf_addf(&sb, "%d", 1);
	is_str(sb.buf, "01", "after a failure nothing is appended, even if it would fit");
	is_int(abx_strbuf_reserve(&sb, 1), -1, "nor reserved");
	ok(abx_strbuf_detach(&sb) == NULL, "a failed buffer is not handed over");
	ok(!sb.failed, "and can be used again");
	abx_strbuf_addf(&sb, "%s", "0123456789a");
	ok(sb.failed && sb.len == 0 && sb.buf[0] == '\0', "formatted text past the maximum is dropped whole");
	abx_strbuf_reset(&sb);
	abx_strbuf_adds(&sb, "ok");
	ok(!sb.failed, "reset forgives");
	abx_strbuf_addf(&sb, "%s", "23456789a");
	is_str(sb.buf, "ok", "formatted text that fits the memory in part leaves no trace");
	ok(sb.failed, "and fails");

	abx_auto_strbuf struct abx_strbuf none = ABX_STRBUF_INIT_MAX(0);
	abx_strbuf_adds(&none, "");
	abx_strbuf_addf(&none, "%s", "");
	ok(!none.failed, "nothing fits into a buffer of nothing");
	abx_strbuf_addc(&none, 'x');
	ok(none.failed, "but no byte does");

	abx_auto_strbuf struct abx_strbuf huge = ABX_STRBUF_INIT_MAX(SIZE_MAX);
	abx_strbuf_adds(&huge, "x");
	is_int(abx_strbuf_reserve(&huge, SIZE_MAX - 1), -1, "a sum that would wrap is refused");
	ok(huge.failed, "and fails the buffer");
}

static void test_detach(void)
{
	abx_auto_strbuf struct abx_strbuf sb = ABX_STRBUF_INIT;
	char *text = abx_strbuf_detach(&sb);

	is_str(text, "", "an empty buffer hands over an empty string");
	ok(text != abx_strbuf_empty, "that can be freed");
	free(text);
	abx_strbuf_adds(&sb, "content");
	text = abx_strbuf_detach(&sb);
	is_str(text, "content", "the content is handed over");
	free(text);
	is_str(sb.buf, "", "the buffer is empty afterwards");
	abx_strbuf_adds(&sb, "more");
	is_str(sb.buf, "more", "and usable");
	abx_strbuf_release(&sb);
	abx_strbuf_release(&sb);
	is_str(sb.buf, "", "release may be repeated");
}

static void test_large(void)
{
	abx_auto_strbuf struct abx_strbuf sb = ABX_STRBUF_INIT;
	bool same = true;

	for (size_t i = 0; i < ABX_STRBUF_MAX; i++)
		abx_strbuf_addc(&sb, (char)(i % 251));
	ok(!sb.failed && sb.len == ABX_STRBUF_MAX, "grows to the maximum");
	for (size_t i = 0; i < sb.len; i++)
		same = same && sb.buf[i] == (char)(i % 251);
	ok(same, "and keeps what it held");
	ok(sb.alloc <= ABX_STRBUF_MAX + 1, "without memory past the maximum");
}

int main(void)
{
	test_append();
	test_format_growth();
	test_ceiling();
	test_detach();
	test_large();
	return done_testing();
}
