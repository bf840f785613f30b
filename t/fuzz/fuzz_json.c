/*
 * JSON: a document with and without the cut of its large string is the same document, or the same
 * error; and what the writer makes of it reads back as an equal value.
 */
#include "common/json.h"

#include <string.h>

#include "common/utf8.h"
#include "t/fuzz/fuzz.h"

/* The first '@' of the input becomes this many letters, so that short inputs reach the large members. */
#define FILL ABX_JSON_CUT_MIN

static const char *const names[] = { "content", "c", NULL };

static void expand(const uint8_t *data, size_t size, struct abx_strbuf *out)
{
	static char fill[FILL];
	const uint8_t *at = size ? memchr(data, '@', size) : NULL;
	size_t head = at ? (size_t)(at - data) : size;

	abx_strbuf_add(out, data, head);
	if (!at)
		return;
	memset(fill, 'x', sizeof(fill));
	abx_strbuf_add(out, fill, sizeof(fill));
	abx_strbuf_add(out, at + 1, size - head - 1);
}

static void check_written(const json_t *value)
{
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);
	struct abx_err err = ABX_ERR_INIT;

	abx_jw_value(&jw, value);
	FUZZ_CHECK(!out.failed && abx_utf8_is_valid(out.buf, out.len));
	json_t *again = abx_json_parse(out.buf, out.len, &err);
	FUZZ_CHECK(again && json_equal(again, value));
	json_decref(again);
}

static void check_cut(const struct abx_strbuf *text)
{
	struct abx_err whole_err = ABX_ERR_INIT, cut_err = ABX_ERR_INIT;
	struct abx_json_text cut = { .name = NULL };
	abx_auto_free char *body = malloc(text->len + 1);

	memcpy(body, text->buf, text->len);
	json_t *whole = abx_json_parse_body(body, text->len, NULL, NULL, &whole_err);
	FUZZ_CHECK(text->len == 0 || memcmp(body, text->buf, text->len) == 0);
	json_t *value = abx_json_parse_body(body, text->len, names, &cut, &cut_err);
	FUZZ_CHECK(!whole == !value && whole_err.kind == cut_err.kind &&
		   strcmp(whole_err.message, cut_err.message) == 0);
	if (cut.name) {
		FUZZ_CHECK(strcmp(json_string_value(json_object_get(value, cut.name)), "") == 0);
		json_object_set_new(value, cut.name, json_stringn(cut.data, cut.len));
	}
	FUZZ_CHECK(!whole || json_equal(whole, value));
	json_decref(whole);
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT, escaped = ABX_STRBUF_INIT;
	struct abx_err err = ABX_ERR_INIT;

	expand(data, size, &text);
	json_t *value = abx_json_parse(text.buf, text.len, &err);
	FUZZ_CHECK(value || (err.kind == ABX_E_VALUE && strncmp(err.message, "Invalid JSON: ", 14) == 0));
	if (value)
		check_written(value);
	json_decref(value);
	check_cut(&text);

	/* Any bytes, as a string. */
	abx_strbuf_addc(&escaped, '"');
	abx_json_escape((const char *)data, size, &escaped);
	abx_strbuf_addc(&escaped, '"');
	value = abx_json_parse(escaped.buf, escaped.len, &err);
	abx_auto_strbuf struct abx_strbuf mended = ABX_STRBUF_INIT;
	abx_utf8_lossy((const char *)data, size, &mended);
	FUZZ_CHECK(value && json_string_length(value) == mended.len &&
		   memcmp(json_string_value(value), mended.buf, mended.len) == 0);
	json_decref(value);
	return 0;
}
