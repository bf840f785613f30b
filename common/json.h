/*
 * JSON in: jansson behind one strict door. JSON out: a writer that appends to a string buffer in the
 * spelling of Python's json.dumps (", " and ": " between, numbers as repr prints them), because
 * clients of the Python server compare bodies as text.
 */
#ifndef ABX_JSON_H
#define ABX_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/strbuf.h"

/* Nesting allowed in a document; one more level is an error (contract, section 8 "HTTP"). */
#define ABX_JSON_DEPTH 512

/*
 * Parse a whole document of any type. Refused with ABX_E_VALUE and the position (line, column, byte): what is not UTF-8, not
 * JSON, repeats a key, nests deeper than ABX_JSON_DEPTH, holds NaN, Infinity, a lone surrogate or an integer beyond 64 bits. \u0000 is
 * data. The nesting is checked before jansson recurses, so that a small stack suffices. Returns a new reference, or NULL.
 */
json_t *abx_json_parse(const char *text, size_t len, struct abx_err *err);

/* A large string value that was cut out of a body before parsing: see abx_json_parse_body. */
struct abx_json_text {
	const char *name; /* which member (borrowed from the list that was given), or NULL: none was cut */
	char *data;       /* unescaped, in place in the body; not NUL-terminated */
	size_t len;
};

/* A member shorter than this is left to jansson. */
#define ABX_JSON_CUT_MIN 16384

/*
 * As abx_json_parse for a request body, which must be an object ("" is {}). The first top-level
 * member whose name is in `cut` (NULL-terminated, or NULL) and whose value is a string of at least ABX_JSON_CUT_MIN bytes is
 * not given to jansson: it is unescaped in place in `body`, described by *ret_text, and its value in the returned
 * object is "". `body` must stay as long as *ret_text is used. Errors and positions are the same with and without a cut.
 */
json_t *abx_json_parse_body(char *body, size_t len, const char *const *cut, struct abx_json_text *ret_text,
			    struct abx_err *err);

/* The name of a value's type for messages: "object", "array", "string", "integer", "number", "boolean", "null". */
const char *abx_json_type_name(const json_t *value);

/* A JSON writer. The commas are its business. Nesting past ABX_JSON_DEPTH sets out->failed. Zero-initialise all but `out`. */
struct abx_json_writer {
	struct abx_strbuf *out;
	unsigned depth;
	bool comma; /* whether a value was written at this level, so that the next needs ", " */
};

#define ABX_JSON_WRITER_INIT(strbuf) { .out = (strbuf) }

void abx_jw_object(struct abx_json_writer *jw);
void abx_jw_object_end(struct abx_json_writer *jw);
void abx_jw_array(struct abx_json_writer *jw);
void abx_jw_array_end(struct abx_json_writer *jw);

/* The key of the next value. */
void abx_jw_key(struct abx_json_writer *jw, const char *key);

/* Values. Strings may hold any bytes: what is not UTF-8 becomes U+FFFD. A NULL string is null; a double that is not finite is null. */
void abx_jw_string(struct abx_json_writer *jw, const char *value);
void abx_jw_stringn(struct abx_json_writer *jw, const char *value, size_t len);
void abx_jw_int(struct abx_json_writer *jw, int64_t value);
void abx_jw_double(struct abx_json_writer *jw, double value);
void abx_jw_bool(struct abx_json_writer *jw, bool value);
void abx_jw_null(struct abx_json_writer *jw);
void abx_jw_value(struct abx_json_writer *jw, const json_t *value);

/* Key and value in one. */
void abx_jw_kstring(struct abx_json_writer *jw, const char *key, const char *value);
void abx_jw_kint(struct abx_json_writer *jw, const char *key, int64_t value);
void abx_jw_kbool(struct abx_json_writer *jw, const char *key, bool value);

/* Rounded to so many places as Python's round() does it: the double next to the exact decimal. */
void abx_jw_krounded(struct abx_json_writer *jw, const char *key, double value, int places);

/* Append a double as Python's repr prints it: "0.07", "1e-05", "3.0", "1e+16". */
void abx_json_repr(double value, struct abx_strbuf *out);

/* Append `text` escaped for a JSON string, without the quotes. */
void abx_json_escape(const char *text, size_t len, struct abx_strbuf *out);

#endif
