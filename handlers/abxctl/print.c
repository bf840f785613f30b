#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "handlers/abxctl/abxctl.h"
#include "common/json.h"

#define OUTPUT_MAX ((size_t)2 << 30)

int ctl_fail(int status, const char *fmt, ...)
{
	va_list ap;

	/* Standard output may be a pipe to the same place: what was printed before comes before. */
	fflush(stdout);
	fputs("abxctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

/* ---- JSON */

static void add_plain(struct abx_strbuf *out, const json_t *value)
{
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(out);

	abx_jw_value(&jw, value);
}

static void begin_line(struct abx_strbuf *out, unsigned depth, bool comma)
{
	abx_strbuf_adds(out, comma ? ",\n" : "\n");
	for (unsigned i = 0; i < depth; i++)
		abx_strbuf_adds(out, "  ");
}

static void add_indented(struct abx_strbuf *out, json_t *value, unsigned depth);

static void add_object(struct abx_strbuf *out, json_t *object, unsigned depth)
{
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(out);
	bool comma = false;
	const char *key;
	json_t *member;

	abx_strbuf_addc(out, '{');
	json_object_foreach(object, key, member) {
		begin_line(out, depth + 1, comma);
		jw.comma = false;
		abx_jw_key(&jw, key);
		add_indented(out, member, depth + 1);
		comma = true;
	}
	begin_line(out, depth, false);
	abx_strbuf_addc(out, '}');
}

static void add_array(struct abx_strbuf *out, const json_t *array, unsigned depth)
{
	abx_strbuf_addc(out, '[');
	for (size_t i = 0; i < json_array_size(array); i++) {
		begin_line(out, depth + 1, i > 0);
		add_indented(out, json_array_get(array, i), depth + 1);
	}
	begin_line(out, depth, false);
	abx_strbuf_addc(out, ']');
}

static void add_indented(struct abx_strbuf *out, json_t *value, unsigned depth)
{
	if (json_object_size(value) > 0)
		add_object(out, value, depth);
	else if (json_array_size(value) > 0)
		add_array(out, value, depth);
	else
		add_plain(out, value);
}

int ctl_print_json(const struct ctl *ctl, json_t *value)
{
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT_MAX(OUTPUT_MAX);

	if (ctl->json)
		add_plain(&out, value);
	else
		add_indented(&out, value, 0);
	abx_strbuf_addc(&out, '\n');
	if (out.failed)
		return ctl_fail(CTL_FAILED, "the answer is too large to be printed");
	fwrite(out.buf, 1, out.len, stdout);
	return CTL_OK;
}

/* ---- results of commands */

static void print_string(const json_t *string, FILE *to)
{
	fwrite(json_string_value(string), 1, json_string_length(string), to);
}

static int exit_status(json_int_t code)
{
	if (code < 0)
		return code >= -127 ? (int)(128 - code) : CTL_FAILED;
	return code <= 255 ? (int)code : CTL_FAILED;
}

int ctl_print_result(const struct ctl *ctl, json_t *result)
{
	const json_t *out = json_object_get(result, "stdout"), *errors = json_object_get(result, "stderr");
	const json_t *code = json_object_get(result, "exit_code");

	if (!ctl->json && json_is_string(out) && json_is_string(errors) && json_is_integer(code)) {
		print_string(out, stdout);
		fflush(stdout);
		print_string(errors, stderr);
		if (json_is_true(json_object_get(result, "truncated")))
			ctl_fail(CTL_OK, "the output was longer than the server keeps, and is cut");
		return exit_status(json_integer_value(code));
	}
	if (ctl->json || !json_is_string(result))
		return ctl_print_json(ctl, result);
	print_string(result, stdout);
	size_t len = json_string_length(result);
	if (len == 0 || json_string_value(result)[len - 1] != '\n')
		putchar('\n');
	return CTL_OK;
}
