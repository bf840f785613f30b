#include "handlers/ptyd/client.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "handlers/ptyd/frame.h"

/* Output in one message. */
#define PIECE ((size_t)64 << 10)

/* Errors that wait for their client, before no more of its messages are read. */
#define ERRORS_MAX 4096

/* How often a client that is behind or held back is looked at. */
#define LOOK_MS 1000

static struct pty_client *clients;
static unsigned n_clients;

bool pty_clients_any(void)
{
	return clients;
}

bool pty_clients_have_room(void)
{
	return n_clients < PTY_CLIENTS_MAX;
}

/* ---- sending */

void pty_client_wake(struct pty_client *client)
{
	ws_want_write(&client->ws);
	if (client->session && client->session->ring.end - client->pos >= PTY_BEHIND_MAX)
		pty_loop_deadline(abx_clock_ms() + LOOK_MS);
}

static void client_close(struct pty_client *client, int code, const char *reason)
{
	ws_close(&client->ws, code, reason, PTY_CLOSE_MS);
}

void pty_client_drop(struct pty_client *client)
{
	abx_log(ABX_LOG_INFO, "a client of session %s is too slow; closing its connection", client->session->id);
	client_close(client, PTY_CLOSE_SLOW, "too slow");
}

void pty_clients_stop(void)
{
	for (struct pty_client *c = clients; c; c = c->other)
		client_close(c, WS_CLOSE_GOING_AWAY, "the server stops");
}

static struct abx_strbuf out = ABX_STRBUF_INIT;

static struct abx_json_writer message_begin(const char *type)
{
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);

	abx_strbuf_reset(&out);
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "type", type);
	return jw;
}

static void message_send(struct pty_client *client)
{
	/* A message that there was no memory for: the connection is of no further use. */
	if (out.failed)
		client_close(client, WS_CLOSE_GOING_AWAY, "out of memory");
	else
		ws_send(&client->ws, out.buf, out.len);
}

static void send_event(struct pty_client *client, const char *event)
{
	const struct pty_session *session = client->session;
	struct abx_json_writer jw = message_begin("event");

	abx_jw_kstring(&jw, "event", event);
	abx_jw_kstring(&jw, "session_id", session->id);
	if (strcmp(event, "started") == 0)
		abx_jw_kint(&jw, "pid", session->child.pid);
	else
		abx_jw_kint(&jw, "exit_code", session->exit_code);
	abx_jw_object_end(&jw);
	message_send(client);
}

static void send_error(struct pty_client *client)
{
	struct abx_json_writer jw = message_begin("error");

	abx_jw_kstring(&jw, "error", client->errors.buf);
	abx_jw_object_end(&jw);
	abx_strbuf_consume(&client->errors, strlen(client->errors.buf) + 1);
	if (client->errors.len < ERRORS_MAX / 2)
		pty_client_unthrottle(client);
	message_send(client);
}

static void send_output(struct pty_client *client)
{
	static char piece[PIECE];
	struct abx_json_writer jw = message_begin("output");
	size_t len = client->prelude.len ? 0 : pty_ring_read(&client->session->ring, client->pos, piece, sizeof(piece));

	abx_jw_key(&jw, "data");
	abx_jw_stringn(&jw, len ? piece : client->prelude.buf, len ? len : client->prelude.len);
	abx_jw_object_end(&jw);
	abx_strbuf_release(&client->prelude);
	client->pos += len;
	client->moved_ms = abx_clock_ms();
	pty_session_taken(client->session);
	message_send(client);
}

static struct pty_client *client_of(struct ws *ws)
{
	return (struct pty_client *)((char *)ws - offsetof(struct pty_client, ws));
}

/* The connection takes a message: the next one, if there is one. */
static void client_writable(struct ws *ws)
{
	struct pty_client *client = client_of(ws);

	if (!client->greeted) {
		client->greeted = true;
		send_event(client, "started");
	} else if (client->errors.len > 0) {
		send_error(client);
	} else if (client->prelude.len > 0 || client->pos < client->session->ring.end) {
		send_output(client);
	} else if (client->session->state == PTY_ENDED) {
		send_event(client, "exited");
		client_close(client, WS_CLOSE_NORMAL, "exited");
	} else {
		return;
	}
	ws_want_write(ws);
}

/* ---- receiving */

static void client_throttle(struct pty_client *client)
{
	if (client->throttled || client->ws.closing)
		return;
	client->throttled = true;
	pty_loop_deadline(abx_clock_ms() + LOOK_MS);
	ws_pause(&client->ws, true);
}

void pty_client_unthrottle(struct pty_client *client)
{
	if (!client->throttled)
		return;
	client->throttled = false;
	ws_pause(&client->ws, false);
}

static void refuse(struct pty_client *client, const char *why)
{
	abx_strbuf_add(&client->errors, why, strlen(why) + 1);
	if (client->errors.len > ERRORS_MAX)
		client_throttle(client);
	pty_client_wake(client);
}

static void take_message(struct pty_client *client)
{
	struct abx_err err = ABX_ERR_INIT;
	struct pty_frame frame;

	if (pty_frame_parse(client->message.buf, client->message.len, &frame, &err) < 0) {
		refuse(client, err.message);
		return;
	}
	switch (frame.kind) {
	case PTY_FRAME_INPUT:
		pty_session_input(client->session, frame.data, frame.len);
		if (client->session->input.len > PTY_INPUT_MAX)
			client_throttle(client);
		break;
	case PTY_FRAME_RESIZE:
		if (pty_session_resize(client->session, frame.cols, frame.rows, &err) < 0)
			refuse(client, err.message);
		break;
	case PTY_FRAME_SIGNAL:
		pty_session_signal(client->session, frame.signal);
		break;
	}
	pty_frame_release(&frame);
}

static void client_piece(struct ws *ws, const char *data, size_t len, bool binary, bool end)
{
	struct pty_client *client = client_of(ws);

	abx_strbuf_add(&client->message, data, len);
	if (!end)
		return;
	if (binary)
		refuse(client, "Messages are text");
	else
		take_message(client);
	/* What a large message took is given back. */
	if (client->message.alloc > PIECE)
		abx_strbuf_release(&client->message);
	abx_strbuf_reset(&client->message);
}

/* ---- the life of a connection */

static void client_closing(struct ws *ws)
{
	struct pty_client *client = client_of(ws);

	if (client->session)
		pty_session_detach(client->session, client);
	client->throttled = false;
}

static void client_gone(struct ws *ws)
{
	struct pty_client *client = client_of(ws), **link = &clients;

	if (client->session)
		pty_session_detach(client->session, client);
	while (*link != client)
		link = &(*link)->other;
	*link = client->other;
	n_clients--;
	abx_strbuf_release(&client->message);
	abx_strbuf_release(&client->errors);
	abx_strbuf_release(&client->prelude);
	free(client);
}

void pty_client_adopt(int fd, const char *key, struct pty_session *session, int close_code, const char *reason)
{
	static const struct ws_events events = { client_piece, client_writable, client_gone, client_closing };
	struct pty_client *client = calloc(1, sizeof(*client));

	if (!client) {
		close(fd);
		return;
	}
	if (ws_open(&client->ws, fd, key, PTY_MESSAGE_MAX, &events) < 0) {
		free(client);
		return;
	}
	client->message = (struct abx_strbuf)ABX_STRBUF_INIT_MAX(PTY_MESSAGE_MAX + 1);
	client->prelude = (struct abx_strbuf)ABX_STRBUF_INIT;
	client->errors = (struct abx_strbuf)ABX_STRBUF_INIT_MAX(PTY_MESSAGE_MAX);
	client->moved_ms = abx_clock_ms();
	client->other = clients;
	clients = client;
	n_clients++;
	if (close_code) {
		client_close(client, close_code, reason);
		return;
	}
	pty_session_attach(session, client);
	ws_want_write(&client->ws);
}

/* ---- time */

/* Whether the peer has taken something since we last looked. */
static bool has_moved(struct pty_client *client)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	uint64_t before = client->acked;

	if (getsockopt(client->ws.source.fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return false;
	client->acked = info.tcpi_bytes_acked;
	return client->acked != before;
}

/* Returns when to look at it again. Not for one that closes. */
static int64_t client_tick(struct pty_client *client, int64_t now)
{
	if (client->session->ring.end - client->pos < PTY_BEHIND_MAX) {
		client->moved_ms = now;
		return client->throttled ? now + LOOK_MS : INT64_MAX;
	}
	if (has_moved(client))
		client->moved_ms = now;
	if (client->moved_ms + PTY_STALL_MS <= now) {
		pty_client_drop(client);
		return client->ws.dead_ms;
	}
	return now + LOOK_MS;
}

int64_t pty_clients_tick(int64_t now_ms)
{
	int64_t next = INT64_MAX;
	struct pty_client *following;

	for (struct pty_client *c = clients; c; c = following) {
		following = c->other;
		int64_t moment = ws_tick(&c->ws, now_ms);
		/* 0: it is no more. */
		if (moment && !c->ws.closing) {
			int64_t own = client_tick(c, now_ms);

			moment = own < moment ? own : moment;
		}
		if (moment && moment < next)
			next = moment;
	}
	return next;
}
