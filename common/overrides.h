/*
 * Environment overrides: what POST /env has set. They are on the board, so that every group sees them before its next
 * child, and nobody who deletes files takes them away. They last as long as the server. /
 */
#ifndef ABX_OVERRIDES_H
#define ABX_OVERRIDES_H

#include "common/board.h"
#include "common/err.h"
#include "common/strbuf.h"

/* Append all overrides to `out`: "NAME=value", each with its NUL. -1: out of memory. */
int abx_overrides_read(struct abx_board *board, struct abx_strbuf *out);

/*
 * Set variables on top of those that are there, all or none: `vars` holds "NAME=value", each with its NUL, `len`
 * bytes in all. ABX_E_TOO_LARGE when a variable is longer than the kernel takes one, or when together they would
 * leave a command no room for its arguments: otherwise one call could keep every later child from starting. /
 */
int abx_overrides_set(struct abx_board *board, const char *vars, size_t len, struct abx_err *err);

#endif
