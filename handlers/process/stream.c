#include "common/command.h"
#include "common/sse.h"
#include "handlers/process/handlers.h"
#include "handlers/process/lines.h"
#include "handlers/process/words.h"

/* Less than a socket that poll(2) finds writable takes without blocking: three quarters of its buffer (SEND_BUFFER, common/fcgi_io.c). */
#define SLICE ((size_t)16 << 10)

/* A block that grew past this for a very long line gives its memory back. */
#define BLOCK_KEPT ((size_t)256 << 10)

struct stream {
	struct abx_spawn_sink sink;
	struct abx_response *res;
	struct lines lines[2];    /* by enum abx_stream */
	struct abx_strbuf block;  /* events that wait to be sent */
	size_t sent;              /* bytes of it */
	enum abx_stream current;
};

static const char *const event_names[] = { [ABX_STDOUT] = "stdout", [ABX_STDERR] = "stderr" };

static struct stream *stream_of(struct abx_spawn_sink *sink)
{
	return (struct stream *)sink;
}

static void add_line(void *ctx, const struct abx_strbuf *line)
{
	struct stream *stream = ctx;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&stream->block);

	if (line->failed)
		stream->block.failed = true;
	abx_sse_open(&stream->block, event_names[stream->current]);
	abx_jw_object(&jw);
	abx_jw_key(&jw, "data");
	abx_jw_stringn(&jw, line->buf, line->len);
	abx_jw_object_end(&jw);
	abx_sse_close(&stream->block);
}

static int stream_begin(struct abx_spawn_sink *sink)
{
	return abx_sse_begin(stream_of(sink)->res);
}

static void stream_take(struct abx_spawn_sink *sink, enum abx_stream which, const char *data, size_t len)
{
	struct stream *stream = stream_of(sink);

	stream->current = which;
	if (data)
		lines_take(&stream->lines[which], data, len, add_line, stream);
	else
		lines_end(&stream->lines[which], add_line, stream);
	sink->waiting = stream->block.len > 0;
}

static void stream_idle(struct abx_spawn_sink *sink)
{
	abx_sse_comment(&stream_of(sink)->block);
	sink->waiting = true;
}

static int stream_send(struct abx_spawn_sink *sink)
{
	struct stream *stream = stream_of(sink);
	size_t left = stream->block.len - stream->sent, n = left < SLICE ? left : SLICE;

	/* A line that did not fit into memory cannot be left out in silence. */
	if (stream->block.failed) {
		abx_response_abort(stream->res);
		return -1;
	}
	if (abx_response_write(stream->res, stream->block.buf + stream->sent, n) < 0 ||
	    stream->res->io->ops->flush(stream->res->io) < 0)
		return -1;
	stream->sent += n;
	if (n < left)
		return 0;
	if (stream->block.alloc > BLOCK_KEPT)
		abx_strbuf_release(&stream->block);
	else
		abx_strbuf_reset(&stream->block);
	stream->sent = 0;
	sink->waiting = false;
	return 0;
}

static void stream_release(struct stream *stream)
{
	lines_release(&stream->lines[ABX_STDOUT]);
	lines_release(&stream->lines[ABX_STDERR]);
	abx_strbuf_release(&stream->block);
}

/* The one end event: `exit` when the command ended by itself, else `error`. -1: the client has gone. */
static int stream_end(struct stream *stream, const struct abx_spawn_result *result, const struct abx_err *failure)
{
	abx_auto_strbuf struct abx_strbuf json = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&json);

	abx_jw_object(&jw);
	if (failure->kind == ABX_E_NONE) {
		abx_jw_kint(&jw, "exit_code", result->exit_code);
	} else {
		abx_jw_kstring(&jw, "error", failure->message);
		abx_jw_kstring(&jw, "type", abx_err_type(failure));
	}
	abx_jw_object_end(&jw);
	return abx_sse_event(stream->res, failure->kind == ABX_E_NONE ? "exit" : "error", &json);
}

int h_shell_stream(struct abx_request *req, struct abx_err *err)
{
	auto_words char **argv = words_of_command(req, ABX_E_VALUE, err);
	abx_auto_command struct abx_command command = ABX_COMMAND_INIT;
	struct stream stream __attribute__((cleanup(stream_release))) = {
		.sink = { .begin = stream_begin, .take = stream_take, .idle = stream_idle, .send = stream_send, .idle_ms = ABX_SSE_HEARTBEAT_MS },
		.res = &req->res,
		.lines = { LINES_INIT, LINES_INIT },
		.block = ABX_STRBUF_INIT_MAX((size_t)64 << 20),
	};
	struct abx_spawn_result result;
	struct abx_err failure = ABX_ERR_INIT;

	if (!argv || abx_command_prepare(req, argv, NULL, &command, err) < 0)
		return -1;
	command.spawn.sink = &stream.sink;
	if (abx_spawn_run(&command.spawn, &result, err) < 0)
		return -1;
	abx_spawn_result_release(&result);
	if (result.end != ABX_SPAWN_EXITED)
		abx_command_cut_short(&command, result.end, &failure);
	if (stream.sink.waiting || result.end == ABX_SPAWN_CLIENT_GONE || stream_end(&stream, &result, &failure) < 0)
		return abx_err_set(err, ABX_E_GONE, "The client left the stream");
	return 0;
}
