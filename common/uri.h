/* Request targets: percent-decoding and query strings (RFC 3986, and application/x-www-form-urlencoded for '+'). */
#ifndef ABX_URI_H
#define ABX_URI_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/strbuf.h"

/*
 * Decode %XX in `text` and append the bytes to `out`; with `plus`, '+' is a blank (query strings).
 * A '%' that no two hex digits follow stays as it is (as Python's unquote does).
 */
void abx_uri_decode(const char *text, size_t len, bool plus, struct abx_strbuf *out);

/* Append `text` with every byte but [A-Za-z0-9._~-] (and '/' when `keep_slash`) percent-encoded. */
void abx_uri_encode(const char *text, size_t len, bool keep_slash, struct abx_strbuf *out);

/* One parameter of a query string. Both strings are decoded and NUL-terminated; the lengths tell of inner NULs. */
struct abx_query_param {
	char *name, *value;
	size_t name_len, value_len;
};

/* Whether a parameter's text is a true boolean: true, yes or 1, in any case (contract, section 8 "HTTP"). */
bool abx_text_is_true(const char *text);

struct abx_query {
	struct abx_query_param *params;
	size_t n;
	char *storage; /* one block that all strings live in */
};

/*
 * Parse a query string (what follows '?'; "" is fine). Parts are separated by '&'; a part without '=' has the value "";
 * empty parts are skipped. A name that occurs twice is ABX_E_DUPLICATE_PARAMETER unless it ends in "[]"; more than 256 parameters are ABX_E_VALUE. On success
 * the caller releases with abx_query_release; on failure *ret_query is empty.
 */
int abx_query_parse(const char *text, struct abx_query *ret_query, struct abx_err *err);
void abx_query_release(struct abx_query *query);

/* The parameter of this name, or NULL. */
const struct abx_query_param *abx_query_find(const struct abx_query *query, const char *name);

#endif
