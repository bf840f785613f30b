#include "handlers/ptyd/client.h"

#include <libwebsockets.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "handlers/ptyd/frame.h"

/* Output in one message. */
#define PIECE ((size_t)64 << 10)

/* Bytes read from a connection at once. */
#define READ_SIZE 32768

/* Errors that wait for their client, before no more of its messages are read. */
#define ERRORS_MAX 4096

/* How often a client that is behind or held back is looked at. */
#define LOOK_MS 1000

/* Pings keep proxies from cutting a silent connection, and tell of a peer that has vanished. */
static const lws_retry_bo_t retry = { .secs_since_valid_ping = 25, .secs_since_valid_hangup = 90 };

static struct lws_context *context;
static struct lws_vhost *vhost;
static struct pty_client *clients, *adopting;
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
	if (client->wsi)
		lws_callback_on_writable(client->wsi);
	if (client->session && client->session->ring.end - client->pos >= PTY_BEHIND_MAX)
		pty_loop_deadline(abx_clock_ms() + LOOK_MS);
}

static void client_close(struct pty_client *client, int code, const char *reason)
{
	if (client->close_code)
		return;
	if (client->session)
		pty_session_detach(client->session, client);
	client->close_code = code;
	client->close_reason = reason;
	client->close_ms = abx_clock_ms() + PTY_CLOSE_MS;
	pty_loop_deadline(client->close_ms);
	pty_client_unthrottle(client);
	pty_client_wake(client);
}

void pty_client_drop(struct pty_client *client)
{
	abx_log(ABX_LOG_INFO, "a client of session %s is too slow; closing its connection", client->session->id);
	client_close(client, PTY_CLOSE_SLOW, "too slow");
}

void pty_clients_stop(void)
{
	for (struct pty_client *c = clients; c; c = c->other)
		client_close(c, PTY_CLOSE_GOING_AWAY, "the server stops");
}

/* Tell libwebsockets to send the close frame; its callback then returns this. */
static int say_close(struct pty_client *client)
{
	unsigned char reason[64];
	size_t len = strlen(client->close_reason);

	memcpy(reason, client->close_reason, len);
	lws_close_reason(client->wsi, (enum lws_close_status)client->close_code, reason, len);
	return -1;
}

/* A message is made behind room for the frame's header. */
static struct abx_strbuf out = ABX_STRBUF_INIT;

static struct abx_json_writer message_begin(const char *type)
{
	static const char room[LWS_PRE];
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);

	abx_strbuf_reset(&out);
	abx_strbuf_add(&out, room, sizeof(room));
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "type", type);
	return jw;
}

static int message_send(struct pty_client *client)
{
	size_t len = out.len - LWS_PRE;

	return out.failed || lws_write(client->wsi, (unsigned char *)out.buf + LWS_PRE, len, LWS_WRITE_TEXT) < (int)len ? -1 : 0;
}

static int send_event(struct pty_client *client, const char *event)
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
	return message_send(client);
}

static int send_error(struct pty_client *client)
{
	struct abx_json_writer jw = message_begin("error");

	abx_jw_kstring(&jw, "error", client->errors.buf);
	abx_jw_object_end(&jw);
	abx_strbuf_consume(&client->errors, strlen(client->errors.buf) + 1);
	if (client->errors.len < ERRORS_MAX / 2)
		pty_client_unthrottle(client);
	return message_send(client);
}

static int send_output(struct pty_client *client)
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
	return message_send(client);
}

/* The connection takes a message: the next one, if there is one. Returns what the callback returns. */
static int client_write(struct pty_client *client)
{
	int result = 0;

	if (client->close_code)
		return say_close(client);
	if (!client->greeted) {
		client->greeted = true;
		result = send_event(client, "started");
	} else if (client->errors.len > 0) {
		result = send_error(client);
	} else if (client->prelude.len > 0 || client->pos < client->session->ring.end) {
		result = send_output(client);
	} else if (client->session->state == PTY_ENDED) {
		result = send_event(client, "exited");
		client_close(client, PTY_CLOSE_NORMAL, "exited");
		return result;
	} else {
		return 0;
	}
	lws_callback_on_writable(client->wsi);
	return result;
}

/* ---- receiving */

static void client_throttle(struct pty_client *client)
{
	if (client->throttled || client->close_code)
		return;
	client->throttled = true;
	pty_loop_deadline(abx_clock_ms() + LOOK_MS);
	lws_rx_flow_control(client->wsi, 0);
}

void pty_client_unthrottle(struct pty_client *client)
{
	if (!client->throttled)
		return;
	client->throttled = false;
	lws_rx_flow_control(client->wsi, 1);
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

/* A piece of a message. Returns what the callback returns. */
static int client_read(struct pty_client *client, const char *data, size_t len)
{
	if (client->close_code)
		return 0;
	if (client->message.len + len + lws_remaining_packet_payload(client->wsi) > PTY_MESSAGE_MAX) {
		client_close(client, PTY_CLOSE_TOO_BIG, "message too big");
		return say_close(client);
	}
	abx_strbuf_add(&client->message, data, len);
	if (lws_remaining_packet_payload(client->wsi) > 0 || !lws_is_final_fragment(client->wsi))
		return 0;
	if (lws_frame_is_binary(client->wsi))
		refuse(client, "Messages are text");
	else
		take_message(client);
	/* What a large message took is given back. */
	if (client->message.alloc > PIECE)
		abx_strbuf_release(&client->message);
	abx_strbuf_reset(&client->message);
	return 0;
}

/* ---- the life of a connection */

static void client_free(struct pty_client *client)
{
	struct pty_client **link = &clients;

	if (adopting == client)
		adopting = NULL;
	if (client->session)
		pty_session_detach(client->session, client);
	while (*link && *link != client)
		link = &(*link)->other;
	if (*link)
		*link = client->other;
	n_clients--;
	abx_strbuf_release(&client->message);
	abx_strbuf_release(&client->errors);
	abx_strbuf_release(&client->prelude);
	free(client);
}

static int callback(struct lws *wsi, enum lws_callback_reasons reason, void *user ABX_UNUSED, void *in, size_t len)
{
	struct pty_client *client = lws_get_opaque_user_data(wsi);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
	switch (reason) {
	case LWS_CALLBACK_RAW_RX_FILE:
		pty_loop_serve();
		return 0;
	case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
		adopting->wsi = wsi;
		lws_set_opaque_user_data(wsi, adopting);
		return 0;
	case LWS_CALLBACK_ESTABLISHED:
		lws_callback_on_writable(wsi);
		return 0;
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return client_write(client);
	case LWS_CALLBACK_RECEIVE:
		return client_read(client, in, len);
	case LWS_CALLBACK_WSI_DESTROY:
		if (client)
			client_free(client);
		return 0;
	default:
		return 0;
	}
#pragma GCC diagnostic pop
}

/*
 * libwebsockets is handed a handshake of our own making: nothing that a stranger has written reaches its parser of headers, and it has no token to log.
 */
void pty_client_adopt(int fd, const char *key, struct pty_session *session, int close_code, const char *reason)
{
	struct pty_client *client = calloc(1, sizeof(*client));
	char head[256];
	int len = snprintf(head, sizeof(head), "GET /pty HTTP/1.1\r\nHost: pty\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
			   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", key);

	if (!client) {
		close(fd);
		return;
	}
	client->fd = fd;
	client->message = (struct abx_strbuf)ABX_STRBUF_INIT_MAX(PTY_MESSAGE_MAX + 1);
	client->prelude = (struct abx_strbuf)ABX_STRBUF_INIT;
	client->errors = (struct abx_strbuf)ABX_STRBUF_INIT_MAX(PTY_MESSAGE_MAX);
	client->moved_ms = abx_clock_ms();
	client->other = clients;
	clients = client;
	n_clients++;
	if (close_code)
		client_close(client, close_code, reason);
	else
		pty_session_attach(session, client);
	adopting = client;
	if (!lws_adopt_socket_vhost_readbuf(vhost, fd, head, (size_t)len) && adopting && !adopting->wsi)
		client_free(client);
	adopting = NULL;
}

/* ---- time */

/* Whether the peer has taken something since we last looked. */
static bool has_moved(struct pty_client *client)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	uint64_t before = client->acked;

	if (getsockopt(client->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return false;
	client->acked = info.tcpi_bytes_acked;
	return client->acked != before;
}

/* Returns when to look at it again. */
static int64_t client_tick(struct pty_client *client, int64_t now)
{
	/* It is we who read nothing from it: that it does not answer pings is no sign. */
	if (client->throttled)
		lws_validity_confirmed(client->wsi);
	if (client->close_code) {
		if (client->close_ms > now)
			return client->close_ms;
		client->close_ms = INT64_MAX;
		lws_set_timeout(client->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
		return INT64_MAX;
	}
	if (client->session->ring.end - client->pos < PTY_BEHIND_MAX) {
		client->moved_ms = now;
		return client->throttled ? now + LOOK_MS : INT64_MAX;
	}
	if (has_moved(client))
		client->moved_ms = now;
	if (client->moved_ms + PTY_STALL_MS <= now) {
		pty_client_drop(client);
		return client->close_ms;
	}
	return now + LOOK_MS;
}

int64_t pty_clients_tick(int64_t now_ms)
{
	int64_t next = INT64_MAX;
	struct pty_client *following;

	for (struct pty_client *c = clients; c; c = following) {
		following = c->other;
		int64_t moment = client_tick(c, now_ms);
		if (moment < next)
			next = moment;
	}
	return next;
}

/* ---- the beginning */

/* Its errors are no errors of ours: it calls an adopted handshake one. */
static void log_line(int level ABX_UNUSED, const char *line)
{
	abx_log(ABX_LOG_DEBUG, "libwebsockets: %.*s", (int)strcspn(line, "\n"), line);
}

int pty_clients_open(int loop_fd, struct abx_err *err)
{
	static const struct lws_protocols protocols[] = {
		{ .name = "pty", .callback = callback, .rx_buffer_size = READ_SIZE },
		{ .name = NULL },
	};
	const struct lws_context_creation_info info = {
		.port = CONTEXT_PORT_NO_LISTEN,
		.protocols = protocols,
		.retry_and_idle_policy = &retry,
		.pt_serv_buf_size = READ_SIZE,
		.max_http_header_data = 1024,
		.fd_limit_per_thread = PTY_CLIENTS_MAX + 16,
		.timeout_secs = 10,
		.gid = (gid_t)-1,
		.uid = (uid_t)-1,
		.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME,
		.vhost_name = "pty",
	};
	lws_sock_file_fd_type loop = { .filefd = loop_fd };

	lws_set_log_level(LLL_ERR | LLL_WARN, log_line);
	context = lws_create_context(&info);
	vhost = context ? lws_create_vhost(context, &info) : NULL;
	if (!vhost || !lws_adopt_descriptor_vhost(vhost, LWS_ADOPT_RAW_FILE_DESC, loop, "pty", NULL))
		return abx_err_set(err, ABX_E_INTERNAL, "Cannot make the WebSocket server");
	return 0;
}

void pty_clients_serve(void)
{
	lws_service(context, 0);
}
