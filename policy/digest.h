/* SHA-256, as the policy uses it. */
#ifndef ABX_DIGEST_H
#define ABX_DIGEST_H

#include <stddef.h>

#include "policy/settings.h"

void abx_digest(const void *data, size_t len, unsigned char digest[ABX_TOKEN_HASH]);

/* The first `digits` hex digits (an even number, no more than 64), with a NUL behind. */
void abx_digest_hex(const void *data, size_t len, char *out, size_t digits);

#endif
