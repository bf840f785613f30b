#include "common/json.h"

#include <stdio.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/utf8.h"

#define PARSE_FLAGS (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY)

#define TEXT_OF(x) #x
#define TEXT(macro) TEXT_OF(macro)

/* The text as the parser reads it: with a hole where a string was cut out. */
struct feed {
	const char *text;
	size_t len, at;
	size_t hole, hole_len;
};

static size_t feed_read(void *buffer, size_t size, void *arg)
{
	struct feed *feed = arg;

	if (feed->hole_len && feed->at == feed->hole)
		feed->at += feed->hole_len;
	size_t end = feed->hole_len && feed->at < feed->hole ? feed->hole : feed->len;
	size_t n = end - feed->at < size ? end - feed->at : size;
	memcpy(buffer, feed->text + feed->at, n);
	feed->at += n;
	return n;
}

/* How many characters the valid UTF-8 `text` has. */
static size_t count_characters(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

static size_t count_lines(const char *text, size_t len)
{
	size_t n = 1;

	for (const char *p = text, *end = text + len; (p = memchr(p, '\n', (size_t)(end - p))); p++)
		n++;
	return n;
}

static void fail_at(struct abx_err *err, const char *what, size_t line, size_t column, size_t byte)
{
	abx_err_set(err, ABX_E_VALUE, "Invalid JSON: %s at line %zu column %zu (byte %zu)", what, line, column, byte);
}

/* Tell of a failure at an offset; the text before it is UTF-8. */
static void fail_at_offset(struct abx_err *err, const char *what, const char *text, size_t offset)
{
	const char *newline = memrchr(text, '\n', offset);
	size_t start = newline ? (size_t)(newline - text) + 1 : 0;

	fail_at(err, what, count_lines(text, offset), count_characters(text + start, offset - start) + 1, offset);
}

/* Whether the parser has not yet read what it does not like: the end, or a character that it put back. */
static bool is_ahead(const char *what)
{
	static const char *const ahead[] = { "premature end of input", "unexpected newline", "control character" };

	for (size_t i = 0; i < ABX_N(ahead); i++)
		if (strncmp(what, ahead[i], strlen(ahead[i])) == 0)
			return true;
	return false;
}

/* Tell of the parser's failure, with the position in the whole text. */
static void fail_parse(struct abx_err *err, const json_error_t *error, const struct feed *feed)
{
	char what[sizeof(error->text)];
	const char *near = strstr(error->text, " near ");
	size_t line = (size_t)error->line, column = (size_t)error->column, byte = (size_t)error->position;

	if (error->text[0] == '\0') {
		abx_err_set(err, ABX_E_INTERNAL, "Out of memory while reading JSON");
		return;
	}
	/* The parser quotes what it stopped at; messages are logged, and bodies do not belong into a log. */
	size_t len = near ? (size_t)(near - error->text) : strlen(error->text);
	snprintf(what, sizeof(what), "%.*s", (int)len, error->text);
	if (feed->hole_len && byte > feed->hole) {
		byte += feed->hole_len;
		if (line == count_lines(feed->text, feed->hole))
			column += count_characters(feed->text + feed->hole, feed->hole_len);
	}
	/* It counts what it has read: as an offset that is the byte behind, while columns begin at 1. */
	if (is_ahead(what) || (near && strcmp(near, " near end of file") == 0))
		column++;
	else if (byte)
		byte--;
	fail_at(err, what, line, column, byte);
}

static json_t *parse(const char *text, size_t len, const char *const *names, struct abx_json_cut *ret_cut,
		     struct abx_err *err)
{
	json_error_t error;
	size_t good = abx_utf8_valid_prefix(text, len);

	if (good < len) {
		fail_at_offset(err, "not UTF-8", text, good);
		return NULL;
	}
	good = abx_json_scan(text, len, names, ret_cut);
	if (good < len) {
		fail_at_offset(err, "nested deeper than " TEXT(ABX_JSON_DEPTH) " levels", text, good);
		return NULL;
	}
	struct feed feed = { .text = text, .len = len, .hole = ret_cut->offset, .hole_len = ret_cut->len };
	json_t *value = json_load_callback(feed_read, &feed, PARSE_FLAGS, &error);
	if (!value)
		fail_parse(err, &error, &feed);
	/* The parser takes a NUL behind a number for the end. */
	const char *nul = json_is_number(value) ? memchr(text, '\0', len) : NULL;
	if (!nul)
		return value;
	json_decref(value);
	fail_at_offset(err, "control character 0x0", text, (size_t)(nul - text));
	return NULL;
}

json_t *abx_json_parse(const char *text, size_t len, struct abx_err *err)
{
	struct abx_json_cut cut;

	return parse(text, len, NULL, &cut, err);
}

json_t *abx_json_parse_body(char *body, size_t len, const char *const *cut, struct abx_json_text *ret_text,
			    struct abx_err *err)
{
	struct abx_json_cut found = { .name = NULL };
	json_t *value = len ? parse(body, len, cut, &found, err) : json_object();

	if (!value) {
		if (len == 0)
			abx_err_set(err, ABX_E_INTERNAL, "Out of memory while reading JSON");
		return NULL;
	}
	if (!json_is_object(value)) {
		abx_err_set(err, ABX_E_VALUE, "Request body must be a JSON object, not %s", abx_json_type_name(value));
		json_decref(value);
		return NULL;
	}
	if (ret_text) {
		*ret_text = (struct abx_json_text){ .name = found.name };
		if (found.name) {
			ret_text->data = body + found.offset;
			ret_text->len = abx_json_unescape(ret_text->data, found.len);
		}
	}
	return value;
}

const char *abx_json_type_name(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "object";
	case JSON_ARRAY:
		return "array";
	case JSON_STRING:
		return "string";
	case JSON_INTEGER:
		return "integer";
	case JSON_REAL:
		return "number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}
