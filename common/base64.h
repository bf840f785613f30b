/*
 * Base64, standard alphabet (RFC 4648 section 4). Padding must be right and unused bits zero; line
 * breaks (CR, LF) are allowed between any two characters, nothing else is.
 */
#ifndef ABX_BASE64_H
#define ABX_BASE64_H

#include <stddef.h>
#include <sys/types.h>

/* Bytes of the encoding of `len` bytes, without a NUL. */
#define ABX_BASE64_ENCODED(len) (((len) + 2) / 3 * 4)

/* Most bytes that `len` characters can decode to. */
#define ABX_BASE64_DECODED(len) ((len) / 4 * 3 + 3)

/* Write the encoding of `data` to `out` (ABX_BASE64_ENCODED(len) bytes, no NUL). Returns the bytes written. */
size_t abx_base64_encode(const void *data, size_t len, char *out);

/*
 * Decode `len` characters to `out`, which may be the same memory as `text` (the output never
 * overtakes the input) and needs ABX_BASE64_DECODED(len) bytes otherwise. Returns the bytes written, or -1
 * when the text is not base64 (`out` then holds rubbish).
 */
ssize_t abx_base64_decode(const char *text, size_t len, void *out);

#endif
