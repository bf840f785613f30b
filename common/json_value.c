#include "common/json_value.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/utf8.h"

/* Where we are, and of each level that is open whether it is an object. */
struct reader {
	const char *text;
	size_t len, at, depth;
	const char *wrong; /* what is wrong at `at` */
	uint8_t objects[ABX_JSON_VALUE_DEPTH / 8];
};

static bool fail(struct reader *r, const char *wrong)
{
	r->wrong = wrong;
	return false;
}

static char peek(const struct reader *r)
{
	return r->at < r->len ? r->text[r->at] : '\0';
}

static void skip_blanks(struct reader *r)
{
	while (r->at < r->len && strchr(" \t\r\n", r->text[r->at]) && r->text[r->at])
		r->at++;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool take_escape(struct reader *r)
{
	char c = r->at + 1 < r->len ? r->text[r->at + 1] : '\0';

	if (c && strchr("\"\\/bfnrt", c)) {
		r->at += 2;
		return true;
	}
	for (size_t i = 2; i < 6; i++)
		if (c != 'u' || r->at + i >= r->len || !is_hex(r->text[r->at + i]))
			return fail(r, "an escape that is none");
	r->at += 6;
	return true;
}

/* A string whose opening quote is next. */
static bool take_string(struct reader *r)
{
	r->at++;
	for (;;) {
		r->at += abx_json_plain_run(r->text + r->at, r->len - r->at);
		if (r->at == r->len)
			return fail(r, "a string without an end");
		if (r->text[r->at] == '"') {
			r->at++;
			return true;
		}
		if (r->text[r->at] != '\\')
			return fail(r, "a control character in a string");
		if (!take_escape(r))
			return false;
	}
}

static bool take_word(struct reader *r, const char *word)
{
	size_t len = strlen(word);

	if (r->len - r->at < len || memcmp(r->text + r->at, word, len) != 0)
		return false;
	r->at += len;
	return true;
}

static bool take_digits(struct reader *r)
{
	if (!is_digit(peek(r)))
		return fail(r, "a number that is none");
	while (is_digit(peek(r)))
		r->at++;
	return true;
}

static bool take_number(struct reader *r)
{
	if (peek(r) == '-')
		r->at++;
	if (peek(r) == '0')
		r->at++;
	else if (!take_digits(r))
		return false;
	if (peek(r) == '.') {
		r->at++;
		if (!take_digits(r))
			return false;
	}
	if (peek(r) == 'e' || peek(r) == 'E') {
		r->at++;
		if (peek(r) == '+' || peek(r) == '-')
			r->at++;
		return take_digits(r);
	}
	return true;
}

static bool take_scalar(struct reader *r)
{
	static const char *const words[] = { "null", "true", "false", "NaN", "Infinity", "-Infinity" };

	if (peek(r) == '"')
		return take_string(r);
	for (size_t i = 0; i < ABX_N(words); i++)
		if (take_word(r, words[i]))
			return true;
	if (peek(r) == '-' || is_digit(peek(r)))
		return take_number(r);
	return fail(r, r->at == r->len ? "the end where a value is expected" : "no value");
}

static bool in_object(const struct reader *r)
{
	return r->objects[(r->depth - 1) / 8] & (1u << ((r->depth - 1) % 8));
}

static bool open_level(struct reader *r, bool object)
{
	uint8_t bit = (uint8_t)(1u << (r->depth % 8)), *byte = &r->objects[r->depth / 8];

	if (r->depth == ABX_JSON_VALUE_DEPTH)
		return fail(r, "too many levels");
	*byte = (uint8_t)(object ? *byte | bit : *byte & ~bit);
	r->depth++;
	r->at++;
	skip_blanks(r);
	return true;
}

/* A key and its colon. */
static bool take_key(struct reader *r)
{
	skip_blanks(r);
	if (peek(r) != '"')
		return fail(r, "no key");
	if (!take_string(r))
		return false;
	skip_blanks(r);
	if (peek(r) != ':')
		return fail(r, "no colon");
	r->at++;
	return true;
}

/* Behind a value: close what ends here. *ret_more tells whether another value follows. */
static bool take_ends(struct reader *r, bool *ret_more)
{
	for (*ret_more = false; r->depth > 0; r->depth--, r->at++) {
		bool object = in_object(r);

		skip_blanks(r);
		if (peek(r) == ',') {
			r->at++;
			*ret_more = true;
			return !object || take_key(r);
		}
		if (peek(r) != (object ? '}' : ']'))
			return fail(r, r->at == r->len ? "the end too early" : "no comma");
	}
	return true;
}

/* Open levels up to the first scalar or empty level, and take that. */
static bool take_begin(struct reader *r)
{
	for (;;) {
		skip_blanks(r);
		char c = peek(r);
		if (c != '{' && c != '[')
			return take_scalar(r);
		if (!open_level(r, c == '{'))
			return false;
		if (peek(r) == (c == '{' ? '}' : ']')) {
			r->depth--;
			r->at++;
			return true;
		}
		if (c == '{' && !take_key(r))
			return false;
	}
}

static bool take_value(struct reader *r)
{
	bool more = true;

	while (more)
		if (!take_begin(r) || !take_ends(r, &more))
			return false;
	return true;
}

int abx_json_value_find(const char *text, size_t len, size_t *ret_start, size_t *ret_len, struct abx_err *err)
{
	struct reader r = { .text = text, .len = len };
	size_t good = abx_utf8_valid_prefix(text, len), start;

	if (good < len)
		return abx_err_set(err, ABX_E_VALUE, "not UTF-8 at byte %zu", good);
	skip_blanks(&r);
	start = r.at;
	if (r.at < len && !take_value(&r))
		return abx_err_set(err, ABX_E_VALUE, "%s at byte %zu", r.wrong, r.at);
	*ret_start = start;
	*ret_len = r.at - start;
	skip_blanks(&r);
	if (r.at < len)
		return abx_err_set(err, ABX_E_VALUE, "more than one value at byte %zu", r.at);
	return 0;
}
