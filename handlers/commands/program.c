#include "handlers/commands/program.h"

#include <string.h>

#include "common/command.h"
#include "common/utf8.h"

/* What is kept of standard error: its last line is the message of a failure. */
#define TAIL ((size_t)64 << 10)

/*
 * Takes a program's output. A result is worth nothing when it is cut, so past the limit the program is ended: for the spawn door the client has gone then.
 */
struct output {
	struct abx_spawn_sink sink;
	size_t max;
	struct abx_strbuf out; /* not more than max */
	struct abx_strbuf err; /* its end, between TAIL and twice that */
	bool over;
};

static void output_release(struct output *output)
{
	abx_strbuf_release(&output->out);
	abx_strbuf_release(&output->err);
}

static int output_begin(struct abx_spawn_sink *sink ABX_UNUSED)
{
	return 0;
}

static void output_take(struct abx_spawn_sink *sink, enum abx_stream stream, const char *data, size_t len)
{
	struct output *output = (struct output *)sink;

	if (!data)
		return;
	if (stream == ABX_STDERR) {
		abx_strbuf_add(&output->err, data, len);
		if (output->err.len > 2 * TAIL)
			abx_strbuf_consume(&output->err, output->err.len - TAIL);
		return;
	}
	if (len <= output->max - output->out.len)
		abx_strbuf_add(&output->out, data, len);
	else
		output->over = true;
	output->over |= output->out.failed;
	sink->waiting = output->over;
}

static void output_idle(struct abx_spawn_sink *sink ABX_UNUSED)
{
}

static int output_send(struct abx_spawn_sink *sink ABX_UNUSED)
{
	return -1;
}

/* The last line that is not blank. */
static const char *last_line(const struct abx_strbuf *text, size_t *ret_len)
{
	size_t end = text->len, start;

	while (end > 0 && strchr(" \t\r\n", text->buf[end - 1]))
		end--;
	for (start = end; start > 0 && text->buf[start - 1] != '\n';)
		start--;
	*ret_len = end - start;
	return text->buf + start;
}

/* The program said that it failed, or was killed. */
static int fail_exit(struct abx_request *req, const struct command *command, const struct output *output, int exit_code, struct abx_err *err)
{
	size_t len;
	const char *line = last_line(&output->err, &len);

	if (len > 0)
		return command_fail(req, line, len, err);
	if (exit_code < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "The program of '%s' was killed by signal %d", command->name, -exit_code);
	return abx_err_set(err, ABX_E_INTERNAL, "The program of '%s' exited with status %d", command->name, exit_code);
}

static void add_text(json_t *members, const char *key, const struct abx_strbuf *bytes)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX((size_t)1 << 30);

	abx_utf8_lossy(bytes->buf, bytes->len, &text);
	json_object_set_new(members, key, json_stringn(text.buf, text.len));
}

static int finish(struct abx_request *req, const struct command *command, const struct abx_command *spawned, const struct output *output,
		  const struct abx_spawn_result *result, struct abx_err *err)
{
	if (output->over)
		return abx_err_set(err, ABX_E_INTERNAL, "The result of '%s' is larger than %zu bytes", command->name, output->max);
	if (result->end != ABX_SPAWN_EXITED) {
		abx_command_cut_short(spawned, result->end, err);
		if (err->kind == ABX_E_TIMEOUT && (req->error_members = json_object())) {
			add_text(req->error_members, "stdout", &output->out);
			add_text(req->error_members, "stderr", &output->err);
		}
		return -1;
	}
	if (result->exit_code != 0)
		return fail_exit(req, command, output, result->exit_code, err);
	return command_result(req, command, output->out.buf, output->out.len, err);
}

static int run_program(struct abx_request *req, const struct command *command, struct abx_err *err)
{
	const struct program *program = command->data;
	abx_auto_strbuf struct abx_strbuf input = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	abx_auto_command struct abx_command spawned = ABX_COMMAND_INIT;
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	size_t max = (size_t)req->rule->limits.max_output_bytes;
	__attribute__((cleanup(output_release))) struct output output = {
		.sink = { .begin = output_begin, .take = output_take, .idle = output_idle, .send = output_send, .idle_ms = INT32_MAX },
		.max = max,
		.out = ABX_STRBUF_INIT_MAX(max),
		.err = ABX_STRBUF_INIT_MAX(4 * TAIL),
	};

	if (command_arguments(req, command, &input, err) < 0 ||
	    abx_command_prepare_own(req, program->argv, program->dir_fd, command_timeout(req, command), &spawned, err) < 0)
		return -1;
	/* What reads lines finds one. */
	abx_strbuf_addc(&input, '\n');
	spawned.spawn.input = input.buf;
	spawned.spawn.input_len = input.len;
	spawned.spawn.sink = &output.sink;
	if (abx_spawn_run(&spawned.spawn, &result, err) < 0)
		return -1;
	return finish(req, command, &spawned, &output, &result, err);
}

const struct command_kind program_kind = { .name = "manifest", .run = run_program };
