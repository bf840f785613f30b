/*
 * Reading JSON text without parsing it: what json.c does at memory speed before it calls jansson, which is slow on large
 * strings and recurses without asking. Private to json*.c.
 */
#ifndef ABX_JSON_SCAN_H
#define ABX_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes at the front of `text` are none of '"', '\\' and the control characters below 0x20. */
size_t abx_json_plain_run(const char *text, size_t len);

/* The contents of one string, between its quotes: valid, but still escaped. */
struct abx_json_cut {
	const char *name; /* NULL: nothing to cut */
	size_t offset, len;
};

/*
 * Go once over a document. With `names` (NULL-terminated, or NULL), find the string that
 * abx_json_parse_body may cut out; it is valid JSON if `text` is UTF-8. Returns `len`, or the
 * offset of the bracket that opens one level too many. Where the text stops being JSON the scan may
 * stop too: the parser gets no further either.
 */
size_t abx_json_scan(const char *text, size_t len, const char *const *names, struct abx_json_cut *ret_cut);

/* Resolve the escapes of a string that abx_json_scan found valid, in place. Returns its new length. */
size_t abx_json_unescape(char *text, size_t len);

#endif
