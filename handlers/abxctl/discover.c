#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "handlers/abxctl/http.h"

/* The columns of an argument's line, all but the last padded to the widest of the command. */
enum { COLUMN_NAME, COLUMN_TYPE, COLUMN_NEED, COLUMNS };

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* How wide a text is on a terminal, by characters. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* "required", "optional" or "default …". */
static void describe_need(const json_t *arg, struct abx_strbuf *out)
{
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(out);
	const json_t *standard = json_object_get(arg, "default");

	if (json_is_true(json_object_get(arg, "required"))) {
		abx_strbuf_adds(out, "required");
	} else if (!standard || json_is_null(standard)) {
		abx_strbuf_adds(out, "optional");
	} else {
		abx_strbuf_adds(out, "default ");
		abx_jw_value(&jw, standard);
	}
}

static void print_cell(const char *text, int width)
{
	printf("%s%*s", text, width - width_of(text) + 2, "");
}

static void measure(const json_t *arg, int widths[COLUMNS])
{
	abx_auto_strbuf struct abx_strbuf need = ABX_STRBUF_INIT;

	describe_need(arg, &need);
	const char *cells[COLUMNS] = { text_of(arg, "name"), text_of(arg, "type"), need.buf };
	for (int i = 0; i < COLUMNS; i++)
		if (width_of(cells[i]) > widths[i])
			widths[i] = width_of(cells[i]);
}

static void print_argument(const json_t *arg, const int widths[COLUMNS])
{
	abx_auto_strbuf struct abx_strbuf need = ABX_STRBUF_INIT;

	describe_need(arg, &need);
	fputs("    ", stdout);
	print_cell(text_of(arg, "name"), widths[COLUMN_NAME]);
	print_cell(text_of(arg, "type"), widths[COLUMN_TYPE]);
	print_cell(need.buf, widths[COLUMN_NEED]);
	puts(text_of(arg, "description"));
}

static void print_arguments(const json_t *args)
{
	int widths[COLUMNS] = { 0 };

	for (size_t i = 0; i < json_array_size(args); i++)
		measure(json_array_get(args, i), widths);
	for (size_t i = 0; i < json_array_size(args); i++)
		print_argument(json_array_get(args, i), widths);
}

static void print_commands(const json_t *commands)
{
	int width = 0;

	for (size_t i = 0; i < json_array_size(commands); i++) {
		int own = width_of(text_of(json_array_get(commands, i), "name"));
		width = own > width ? own : width;
	}
	for (size_t i = 0; i < json_array_size(commands); i++) {
		const json_t *command = json_array_get(commands, i);

		print_cell(text_of(command, "name"), width);
		puts(text_of(command, "description"));
		print_arguments(json_object_get(command, "args"));
	}
}

int cmd_discover(struct ctl *ctl)
{
	const struct http_request call = { .method = "GET", .target = "/commands" };
	int status = CTL_OK;
	json_auto_t *body = http_call_json(ctl, &call, &status);
	json_t *commands = json_object_get(body, "commands");

	if (!body)
		return status;
	if (!json_is_array(commands))
		return ctl_fail(CTL_FAILED, "%s does not answer as expected: there is no list of commands", ctl->url);
	if (ctl->json)
		return ctl_print_json(ctl, commands);
	print_commands(commands);
	return CTL_OK;
}
