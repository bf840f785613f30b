#include "common/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/utf8.h"

/* Escape text that is UTF-8. */
static void escape_valid(const char *text, size_t len, struct abx_strbuf *out)
{
	static const char letters[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";
	size_t i = 0;

	for (;;) {
		size_t run = abx_json_plain_run(text + i, len - i);
		abx_strbuf_add(out, text + i, run);
		i += run;
		if (i == len)
			return;
		const char *letter = text[i] ? strchr(letters, text[i]) : NULL;
		if (letter) {
			char escape[2] = { '\\', names[letter - letters] };
			abx_strbuf_add(out, escape, sizeof(escape));
		} else {
			abx_strbuf_addf(out, "\\u%04x", (unsigned)(unsigned char)text[i]);
		}
		i++;
	}
}

void abx_json_escape(const char *text, size_t len, struct abx_strbuf *out)
{
	size_t good = abx_utf8_valid_prefix(text, len);

	escape_valid(text, good, out);
	if (good == len)
		return;
	abx_auto_strbuf struct abx_strbuf mended = ABX_STRBUF_INIT_MAX(out->max);
	abx_utf8_lossy(text + good, len - good, &mended);
	if (mended.failed)
		out->failed = true;
	else
		escape_valid(mended.buf, mended.len, out);
}

/* A positive number in decimal: digits[0].digits[1]… times ten to the exponent. */
struct decimal {
	char digits[24];
	int exponent;
};

static bool reads_back(unsigned long long digits, int exponent, double value)
{
	char text[48];

	snprintf(text, sizeof(text), "%llue%d", digits, exponent);
	return strtod(text, NULL) == value;
}

/* The decimal of `precision` digits that reads back as `value`, if there is one. */
static bool to_precision(double value, int precision, struct decimal *ret_decimal)
{
	char text[48], *e, *to = ret_decimal->digits;

	snprintf(text, sizeof(text), "%.*e", precision - 1, value);
	unsigned long long digits = 0;
	for (e = text; *e != 'e'; e++)
		if (*e >= '0' && *e <= '9')
			digits = digits * 10 + (unsigned)(*e - '0');
	int exponent = (int)strtol(e + 1, NULL, 10) - (precision - 1);
	/*
	 * Above a power of two doubles lie twice as far apart as below it, so there the nearest
	 * decimal can miss while the next one up hits.
	 */
	if (!reads_back(digits, exponent, value) && !reads_back(++digits, exponent, value))
		return false;
	ret_decimal->exponent = snprintf(to, sizeof(ret_decimal->digits), "%llu", digits) - 1 + exponent;
	for (size_t n = strlen(to); n > 1 && to[n - 1] == '0'; n--)
		to[n - 1] = '\0';
	return true;
}

static void append_decimal(const struct decimal *decimal, struct abx_strbuf *out)
{
	const char *digits = decimal->digits;
	int n = (int)strlen(digits), exponent = decimal->exponent;

	if (exponent < -4 || exponent >= 16) {
		abx_strbuf_addf(out, "%c%s%se%+03d", digits[0], n > 1 ? "." : "", digits + 1, exponent);
		return;
	}
	if (exponent < 0) {
		abx_strbuf_addf(out, "0.%.*s%s", -exponent - 1, "000", digits);
		return;
	}
	for (int i = 0; i <= exponent; i++)
		abx_strbuf_addc(out, i < n ? digits[i] : '0');
	abx_strbuf_addf(out, ".%s", n > exponent + 1 ? digits + exponent + 1 : "0");
}

void abx_json_repr(double value, struct abx_strbuf *out)
{
	struct decimal decimal = { .digits = "0" };

	if (isnan(value)) {
		abx_strbuf_adds(out, "nan");
		return;
	}
	if (signbit(value))
		abx_strbuf_addc(out, '-');
	value = fabs(value);
	if (isinf(value)) {
		abx_strbuf_adds(out, "inf");
		return;
	}
	/* Fifteen digits always survive a double; only where doubles thin out near zero need less be tried. */
	int precision = value < DBL_MIN ? 1 : DBL_DIG;
	while (value > 0 && precision < 17 && !to_precision(value, precision, &decimal))
		precision++;
	if (precision == 17)
		to_precision(value, precision, &decimal);
	append_decimal(&decimal, out);
}

/* The comma before a key or a value that is not the first of its level. */
static void separate(struct abx_json_writer *jw)
{
	if (jw->comma)
		abx_strbuf_add(jw->out, ", ", 2);
	jw->comma = true;
}

static void open_level(struct abx_json_writer *jw, char bracket)
{
	separate(jw);
	if (jw->depth == ABX_JSON_DEPTH)
		jw->out->failed = true;
	jw->depth++;
	jw->comma = false;
	abx_strbuf_addc(jw->out, bracket);
}

static void close_level(struct abx_json_writer *jw, char bracket)
{
	jw->depth--;
	jw->comma = true;
	abx_strbuf_addc(jw->out, bracket);
}

void abx_jw_object(struct abx_json_writer *jw)
{
	open_level(jw, '{');
}

void abx_jw_object_end(struct abx_json_writer *jw)
{
	close_level(jw, '}');
}

void abx_jw_array(struct abx_json_writer *jw)
{
	open_level(jw, '[');
}

void abx_jw_array_end(struct abx_json_writer *jw)
{
	close_level(jw, ']');
}

void abx_jw_key(struct abx_json_writer *jw, const char *key)
{
	separate(jw);
	jw->comma = false;
	abx_strbuf_addc(jw->out, '"');
	abx_json_escape(key, strlen(key), jw->out);
	abx_strbuf_add(jw->out, "\": ", 3);
}

void abx_jw_stringn(struct abx_json_writer *jw, const char *value, size_t len)
{
	separate(jw);
	abx_strbuf_addc(jw->out, '"');
	abx_json_escape(value, len, jw->out);
	abx_strbuf_addc(jw->out, '"');
}

void abx_jw_string(struct abx_json_writer *jw, const char *value)
{
	if (value)
		abx_jw_stringn(jw, value, strlen(value));
	else
		abx_jw_null(jw);
}

void abx_jw_int(struct abx_json_writer *jw, int64_t value)
{
	separate(jw);
	abx_strbuf_addf(jw->out, "%lld", (long long)value);
}

void abx_jw_double(struct abx_json_writer *jw, double value)
{
	if (!isfinite(value)) {
		abx_jw_null(jw);
		return;
	}
	separate(jw);
	abx_json_repr(value, jw->out);
}

void abx_jw_bool(struct abx_json_writer *jw, bool value)
{
	separate(jw);
	abx_strbuf_adds(jw->out, value ? "true" : "false");
}

void abx_jw_null(struct abx_json_writer *jw)
{
	separate(jw);
	abx_strbuf_adds(jw->out, "null");
}

/* jansson iterates over objects that it does not change through a pointer that is not const. */
static json_t *to_iterate(const json_t *value)
{
	json_t *same;

	memcpy(&same, &value, sizeof(same));
	return same;
}

static void write_object(struct abx_json_writer *jw, json_t *object)
{
	const char *key;
	json_t *member;

	abx_jw_object(jw);
	json_object_foreach(object, key, member) {
		/* What is too deep is not descended into: the stack is small. */
		if (jw->out->failed)
			break;
		abx_jw_key(jw, key);
		abx_jw_value(jw, member);
	}
	abx_jw_object_end(jw);
}

static void write_array(struct abx_json_writer *jw, const json_t *array)
{
	abx_jw_array(jw);
	for (size_t i = 0; i < json_array_size(array) && !jw->out->failed; i++)
		abx_jw_value(jw, json_array_get(array, i));
	abx_jw_array_end(jw);
}

void abx_jw_value(struct abx_json_writer *jw, const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		write_object(jw, to_iterate(value));
		break;
	case JSON_ARRAY:
		write_array(jw, value);
		break;
	case JSON_STRING:
		abx_jw_stringn(jw, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		abx_jw_int(jw, json_integer_value(value));
		break;
	case JSON_REAL:
		abx_jw_double(jw, json_real_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		abx_jw_bool(jw, json_is_true(value));
		break;
	case JSON_NULL:
		abx_jw_null(jw);
		break;
	}
}

void abx_jw_kstring(struct abx_json_writer *jw, const char *key, const char *value)
{
	abx_jw_key(jw, key);
	abx_jw_string(jw, value);
}

void abx_jw_kint(struct abx_json_writer *jw, const char *key, int64_t value)
{
	abx_jw_key(jw, key);
	abx_jw_int(jw, value);
}

void abx_jw_kbool(struct abx_json_writer *jw, const char *key, bool value)
{
	abx_jw_key(jw, key);
	abx_jw_bool(jw, value);
}

void abx_jw_krounded(struct abx_json_writer *jw, const char *key, double value, int places)
{
	char text[352]; /* the largest double has 309 digits before the point */

	snprintf(text, sizeof(text), "%.*f", places, value);
	abx_jw_key(jw, key);
	abx_jw_double(jw, strtod(text, NULL));
}
