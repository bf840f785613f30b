/*
 * Base64 with 32-byte vectors, for processors that have them: whole blocks from the front, as long as it goes. Private to base64.c, which does the
 * rest (ends, padding, line breaks, what is invalid).
 */
#ifndef ABX_BASE64_SIMD_H
#define ABX_BASE64_SIMD_H

#include <stddef.h>

/* Encode 24 bytes at a time. Returns how many bytes of `data` were taken: a multiple of 24, possibly 0; a third more characters were written. */
size_t abx_base64_encode_blocks(const unsigned char *data, size_t len, char *out);

/* Decode 32 characters at a time, up to the block that holds anything but digits. Returns how many characters were taken; `out` may be `text`. */
size_t abx_base64_decode_blocks(const unsigned char *text, size_t len, unsigned char *out);

#endif
