/* JSON text of somebody else's making that is passed on as it is: checked, but never made into a tree. */
#ifndef ABX_JSON_VALUE_H
#define ABX_JSON_VALUE_H

#include <stddef.h>

#include "common/err.h"

/* Nesting that is passed on. */
#define ABX_JSON_VALUE_DEPTH 10000

/*
 * Find the one value in `text`, without the blanks around it: *ret_len is 0 when there is nothing but blanks. It has to be UTF-8 and JSON, where Python's NaN, Infinity
 * and -Infinity, numbers of any size, repeated keys and lone surrogates (as escapes) are taken as well. -1: ABX_E_VALUE, what is wrong and at which byte.
 */
int abx_json_value_find(const char *text, size_t len, size_t *ret_start, size_t *ret_len, struct abx_err *err);

#endif
