#include "policy/digest.h"

#include <nettle/sha2.h>
#include <stdio.h>

void abx_digest(const void *data, size_t len, unsigned char digest[ABX_TOKEN_HASH])
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, len, data);
	sha256_digest(&ctx, ABX_TOKEN_HASH, digest);
}

void abx_digest_hex(const void *data, size_t len, char *out, size_t digits)
{
	unsigned char digest[ABX_TOKEN_HASH];

	abx_digest(data, len, digest);
	for (size_t i = 0; i < digits / 2; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
