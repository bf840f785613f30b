#include "handlers/process/lines.h"

#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

/* What was emitted: each line in brackets, long ones as their length. */
static struct abx_strbuf seen = ABX_STRBUF_INIT;

static void show(void *ctx, const struct abx_strbuf *line)
{
	is_str(ctx, "context", "the context is handed on");
	if (line->len > 100)
		abx_strbuf_addf(&seen, "[%zu]", line->len);
	else
		abx_strbuf_addf(&seen, "[%s]", line->buf);
}

/* Take the pieces of `text`, which end at '|', one by one. */
static const char *lines_of(const char *text, size_t len)
{
	struct lines lines = LINES_INIT;
	char context[] = "context";

	abx_strbuf_reset(&seen);
	while (len > 0) {
		const char *end = memchr(text, '|', len);
		size_t n = end ? (size_t)(end - text) : len;

		lines_take(&lines, text, n, show, context);
		n += end != NULL;
		text += n;
		len -= n;
	}
	abx_strbuf_addc(&seen, '.');
	lines_end(&lines, show, context);
	lines_release(&lines);
	return seen.buf;
}

#define LINES(text) lines_of(text, sizeof(text) - 1)

static void test_long(void)
{
	char *text = malloc(4 * LINE_MAX_BYTES);

	memset(text, 'x', 4 * LINE_MAX_BYTES);
	text[LINE_MAX_BYTES] = '\n';
	is_str(lines_of(text, LINE_MAX_BYTES + 1), "[1048576].", "a line that is just as long as may be is one line");
	is_str(lines_of(text, LINE_MAX_BYTES), ".[1048576]", "also at the end");
	text[LINE_MAX_BYTES] = '|';
	text[LINE_MAX_BYTES + 1] = '\n';
	is_str(lines_of(text, LINE_MAX_BYTES + 2), "[1048576].", "and when its newline comes later");
	text[LINE_MAX_BYTES] = text[LINE_MAX_BYTES + 1] = 'x';
	text[2 * LINE_MAX_BYTES + 10] = '\n';
	is_str(lines_of(text, 2 * LINE_MAX_BYTES + 12), "[1048576][1048576][xxxxxxxxxx].[x]", "a longer one comes in pieces");
	/* A character of two bytes over the edge, and one of which only the first byte is left. */
	memcpy(text + LINE_MAX_BYTES - 1, "\xc3\xa9", 2);
	is_str(lines_of(text, LINE_MAX_BYTES + 3), "[1048575].[\xc3\xa9xx]", "which tear no character");
	is_str(lines_of(text, LINE_MAX_BYTES), ".[1048578]", "a torn one at the end is replaced");
	free(text);
}

int main(void)
{
	is_str(LINES("one\ntwo\n"), "[one][two].", "lines");
	is_str(LINES("one\ntwo"), "[one].[two]", "a last one without newline");
	is_str(LINES(""), ".", "nothing");
	is_str(LINES("\n\na\n\n"), "[][][a][].", "empty ones count");
	is_str(LINES("a\r\n\tb \n"), "[a\r][\tb ].", "only the newline is taken off");
	is_str(LINES("o|n|e\nt|wo|\n|x"), "[one][two].[x]", "in pieces of any size");
	is_str(LINES("caf\xc3|\xa9\n"), "[caf\xc3\xa9].", "a character in two pieces");
	is_str(LINES("caf\xc3\n\xa9\n"), "[caf\xef\xbf\xbd][\xef\xbf\xbd].", "not over the end of a line");
	is_str(LINES("\xff\xf0\x9f|\x98"), ".[\xef\xbf\xbd\xef\xbf\xbd]", "what is not UTF-8 is replaced");
	test_long();
	abx_strbuf_release(&seen);
	return done_testing();
}
