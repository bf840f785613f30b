/*
 * A byte buffer that grows, with a ceiling.
 *
 * `buf` is never NULL and always NUL-terminated (the NUL is not counted in `len`), also before the
 * first append. Past `max` bytes an append is dropped and `failed` stays set: check it once, at the
 * end, before the content is used. Out of memory sets `failed` as well.
 */
#ifndef ABX_STRBUF_H
#define ABX_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/auto.h"

struct abx_strbuf {
	char *buf;
	size_t len;
	size_t alloc; /* 0 while buf is the shared empty string */
	size_t max;
	bool failed;
};

#define ABX_STRBUF_MAX ((size_t)8 << 20)

extern char abx_strbuf_empty[1];

#define ABX_STRBUF_INIT          ABX_STRBUF_INIT_MAX(ABX_STRBUF_MAX)
#define ABX_STRBUF_INIT_MAX(cap) { .buf = abx_strbuf_empty, .max = (cap) }

/* Free the content; the buffer is empty and usable again. */
void abx_strbuf_release(struct abx_strbuf *sb);
#define abx_auto_strbuf __attribute__((cleanup(abx_strbuf_release)))

/* Forget the content, keep the memory. */
void abx_strbuf_reset(struct abx_strbuf *sb);

/* Make room for `more` further bytes. Returns 0, or -1 with `failed` set. */
int abx_strbuf_reserve(struct abx_strbuf *sb, size_t more);

void abx_strbuf_add(struct abx_strbuf *sb, const void *data, size_t len);
void abx_strbuf_addc(struct abx_strbuf *sb, char c);
void abx_strbuf_adds(struct abx_strbuf *sb, const char *s);
void abx_strbuf_addf(struct abx_strbuf *sb, const char *fmt, ...) ABX_PRINTF(2, 3);
void abx_strbuf_vaddf(struct abx_strbuf *sb, const char *fmt, va_list ap) ABX_PRINTF(2, 0);

/* Remove `len` bytes at the front. */
void abx_strbuf_consume(struct abx_strbuf *sb, size_t len);

/* Cut the content to `len` bytes (no more than there are). */
void abx_strbuf_truncate(struct abx_strbuf *sb, size_t len);

/*
 * Hand the content over: the caller frees it with free(). Returns NULL when `failed` is set. The
 * buffer is empty afterwards.
 */
char *abx_strbuf_detach(struct abx_strbuf *sb);

#endif
