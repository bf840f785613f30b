/* Output as lines of text: bytes as they come in, whole lines out. */
#ifndef PROCESS_LINES_H
#define PROCESS_LINES_H

#include "common/strbuf.h"
#include "common/utf8.h"

/* Bytes of a line: a longer one comes in pieces, none of which tears a character. */
#define LINE_MAX_BYTES ((size_t)1 << 20)

/* Zero-initialise but for the text. */
struct lines {
	struct abx_utf8 decoder;
	struct abx_strbuf text; /* the line so far */
	size_t held;            /* bytes that it was made of */
};

#define LINES_INIT { .text = ABX_STRBUF_INIT_MAX(4 * LINE_MAX_BYTES) }

/* Gets each line, without its newline. */
typedef void lines_emit(void *ctx, const struct abx_strbuf *line);

void lines_take(struct lines *lines, const char *data, size_t len, lines_emit *emit, void *ctx);

/* No more comes: a last line without newline is one, too. */
void lines_end(struct lines *lines, lines_emit *emit, void *ctx);

void lines_release(struct lines *lines);

#endif
