/* Random identifiers, from getrandom(2). */
#ifndef ABX_IDS_H
#define ABX_IDS_H

#include <stdbool.h>
#include <stddef.h>

/* Fill `out` with `digits` random lower-case hex digits and a NUL: `out` has room for digits + 1. Aborts when the kernel gives no randomness. */
void abx_id_hex(char *out, size_t digits);

/* Write 16 hex digits that no other call of any process repeats, at no system call each: for tracing, not for secrets. */
void abx_id_unique(char out[17]);

/* Whether a caller's X-Request-Id may be used as it is: 1 to 128 of [A-Za-z0-9._:-]. */
bool abx_id_is_sane(const char *id);

#endif
