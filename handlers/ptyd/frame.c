#include "handlers/ptyd/frame.h"

#include <signal.h>
#include <string.h>

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "SIGINT", SIGINT }, { "SIGTERM", SIGTERM }, { "SIGKILL", SIGKILL }, { "SIGHUP", SIGHUP }, { "SIGQUIT", SIGQUIT },
};

int pty_size_take(const json_t *object, const char *name, int *ret_size, struct abx_err *err)
{
	const json_t *value = json_object_get(object, name);
	json_int_t size = json_integer_value(value);

	if (!json_is_integer(value) || size < 1 || size > PTY_SIZE_MAX)
		return abx_err_set(err, ABX_E_VALUE, "%s: must be an integer from 1 to %d", name, PTY_SIZE_MAX);
	*ret_size = (int)size;
	return 0;
}

static int take_input(struct pty_frame *frame, const struct abx_json_text *cut, struct abx_err *err)
{
	const json_t *data = json_object_get(frame->body, "data");

	if (!json_is_string(data))
		return abx_err_set(err, ABX_E_VALUE, "data: must be a string");
	frame->kind = PTY_FRAME_INPUT;
	frame->data = cut->name ? cut->data : json_string_value(data);
	frame->len = cut->name ? cut->len : json_string_length(data);
	return 0;
}

static int take_signal(struct pty_frame *frame, struct abx_err *err)
{
	const char *name = json_string_value(json_object_get(frame->body, "signal"));

	frame->kind = PTY_FRAME_SIGNAL;
	for (size_t i = 0; name && i < ABX_N(signals); i++) {
		if (strcmp(signals[i].name, name) == 0) {
			frame->signal = signals[i].number;
			return 0;
		}
	}
	return abx_err_set(err, ABX_E_VALUE, "signal: must be SIGINT, SIGTERM, SIGKILL, SIGHUP or SIGQUIT");
}

static int take(struct pty_frame *frame, const struct abx_json_text *cut, struct abx_err *err)
{
	const char *type = json_string_value(json_object_get(frame->body, "type"));

	if (type && strcmp(type, "input") == 0)
		return take_input(frame, cut, err);
	if (type && strcmp(type, "signal") == 0)
		return take_signal(frame, err);
	if (!type || strcmp(type, "resize") != 0)
		return abx_err_set(err, ABX_E_VALUE, "type: must be input, resize or signal");
	frame->kind = PTY_FRAME_RESIZE;
	return pty_size_take(frame->body, "cols", &frame->cols, err) < 0 ? -1 :
	       pty_size_take(frame->body, "rows", &frame->rows, err);
}

int pty_frame_parse(char *text, size_t len, struct pty_frame *ret_frame, struct abx_err *err)
{
	static const char *const cut_names[] = { "data", NULL };
	struct abx_json_text cut = { .name = NULL };
	struct pty_frame frame = { .kind = PTY_FRAME_INPUT };

	frame.body = abx_json_parse_body(text, len, cut_names, &cut, err);
	if (!frame.body)
		return -1;
	if (take(&frame, &cut, err) < 0) {
		json_decref(frame.body);
		return -1;
	}
	*ret_frame = frame;
	return 0;
}

void pty_frame_release(struct pty_frame *frame)
{
	json_decref(frame->body);
	frame->body = NULL;
}
