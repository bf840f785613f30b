#include "handlers/process/lines.h"

#include <string.h>

static void feed(struct lines *lines, const char *data, size_t len)
{
	abx_utf8_feed(&lines->decoder, data, len, &lines->text);
	lines->held += len;
}

static void emit_line(struct lines *lines, lines_emit *emit, void *ctx)
{
	emit(ctx, &lines->text);
	abx_strbuf_reset(&lines->text);
	lines->held = 0;
}

void lines_take(struct lines *lines, const char *data, size_t len, lines_emit *emit, void *ctx)
{
	while (len > 0) {
		size_t room = LINE_MAX_BYTES - lines->held;
		/* The newline of a line that is just as long as it may be belongs to it. */
		size_t seen = len > room ? room + 1 : len;
		const char *newline = memchr(data, '\n', seen);
		size_t n = newline ? (size_t)(newline - data) : seen > room ? room : seen;

		feed(lines, data, n);
		if (newline)
			abx_utf8_finish(&lines->decoder, &lines->text);
		if (newline || seen > room)
			emit_line(lines, emit, ctx);
		n += newline != NULL;
		data += n;
		len -= n;
	}
}

void lines_end(struct lines *lines, lines_emit *emit, void *ctx)
{
	abx_utf8_finish(&lines->decoder, &lines->text);
	if (lines->text.len > 0)
		emit_line(lines, emit, ctx);
}

void lines_release(struct lines *lines)
{
	abx_strbuf_release(&lines->text);
}
