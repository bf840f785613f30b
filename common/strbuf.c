#include "common/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ALLOC 64

char abx_strbuf_empty[1] = "";

void abx_strbuf_release(struct abx_strbuf *sb)
{
	if (sb->alloc)
		free(sb->buf);
	sb->buf = abx_strbuf_empty;
	sb->len = 0;
	sb->alloc = 0;
	sb->failed = false;
}

void abx_strbuf_reset(struct abx_strbuf *sb)
{
	sb->failed = false;
	abx_strbuf_truncate(sb, 0);
}

int abx_strbuf_reserve(struct abx_strbuf *sb, size_t more)
{
	if (sb->failed)
		return -1;
	/* max is compared by subtraction and kept below SIZE_MAX / 2, so that no sum here can wrap. */
	size_t max = sb->max < SIZE_MAX / 2 ? sb->max : SIZE_MAX / 2 - 1;
	if (sb->len > max || more > max - sb->len) {
		sb->failed = true;
		return -1;
	}
	size_t need = sb->len + more + 1;
	if (need <= sb->alloc)
		return 0;
	size_t alloc = sb->alloc < FIRST_ALLOC / 2 ? FIRST_ALLOC : sb->alloc * 2;
	if (alloc > max + 1)
		alloc = max + 1;
	if (alloc < need)
		alloc = need;
	char *grown = realloc(sb->alloc ? sb->buf : NULL, alloc);
	if (!grown) {
		sb->failed = true;
		return -1;
	}
	if (!sb->alloc)
		grown[0] = '\0';
	sb->buf = grown;
	sb->alloc = alloc;
	return 0;
}

void abx_strbuf_add(struct abx_strbuf *sb, const void *data, size_t len)
{
	if (len == 0 || abx_strbuf_reserve(sb, len) < 0)
		return;
	memcpy(sb->buf + sb->len, data, len);
	sb->len += len;
	sb->buf[sb->len] = '\0';
}

void abx_strbuf_addc(struct abx_strbuf *sb, char c)
{
	abx_strbuf_add(sb, &c, 1);
}

void abx_strbuf_adds(struct abx_strbuf *sb, const char *s)
{
	abx_strbuf_add(sb, s, strlen(s));
}

void abx_strbuf_addf(struct abx_strbuf *sb, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	abx_strbuf_vaddf(sb, fmt, ap);
	va_end(ap);
}

void abx_strbuf_vaddf(struct abx_strbuf *sb, const char *fmt, va_list ap)
{
	va_list again;

	if (sb->failed)
		return;
	size_t room = sb->alloc ? sb->alloc - sb->len : 0;
	va_copy(again, ap);
	int n = vsnprintf(room ? sb->buf + sb->len : NULL, room, fmt, ap);
	/* What did not fit is written a second time; until then the text must end where it ended before. */
	if (room && (n < 0 || (size_t)n >= room))
		sb->buf[sb->len] = '\0';
	if (n < 0) {
		sb->failed = true;
	} else if (abx_strbuf_reserve(sb, (size_t)n) == 0) {
		if ((size_t)n >= room)
			vsnprintf(sb->buf + sb->len, (size_t)n + 1, fmt, again);
		sb->len += (size_t)n;
	}
	va_end(again);
}

void abx_strbuf_consume(struct abx_strbuf *sb, size_t len)
{
	if (len >= sb->len) {
		abx_strbuf_truncate(sb, 0);
		return;
	}
	memmove(sb->buf, sb->buf + len, sb->len - len);
	abx_strbuf_truncate(sb, sb->len - len);
}

void abx_strbuf_truncate(struct abx_strbuf *sb, size_t len)
{
	if (len > sb->len)
		return;
	sb->len = len;
	if (sb->alloc)
		sb->buf[len] = '\0';
}

char *abx_strbuf_detach(struct abx_strbuf *sb)
{
	char *taken = NULL;

	/* Reserving nothing turns the shared empty string into memory of its own. */
	if (abx_strbuf_reserve(sb, 0) == 0) {
		taken = sb->buf;
		sb->alloc = 0;
	}
	abx_strbuf_release(sb);
	return taken;
}
