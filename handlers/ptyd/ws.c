#include "handlers/ptyd/ws.h"

#include <endian.h>
#include <errno.h>
#include <nettle/sha1.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base64.h"
#include "common/clock.h"
#include "common/utf8.h"

#define READ_SIZE    32768
#define OUT_MAX      ((size_t)8 << 20)
#define PING_MS      25000
#define VANISHED_MS  90000
#define SENT_WAIT_MS 5000 /* for the peer's close, when ours was sent */
#define ANSWERS_MAX  16   /* messages written before others get their turn */

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

enum { OP_CONTINUATION = 0, OP_TEXT = 1, OP_BINARY = 2, OP_CLOSE = 8, OP_PING = 9, OP_PONG = 10 };

static void ws_ready(struct pty_source *source, uint32_t events);

static void watch(struct ws *ws)
{
	uint32_t events = ws->paused && !ws->closing ? 0 : EPOLLIN | EPOLLRDHUP;

	if (ws->out.len > 0 || ws->pong_due || ws->wants_write)
		events |= EPOLLOUT;
	pty_loop_change(&ws->source, events);
}

/* After this there is no `ws`. */
static void end(struct ws *ws)
{
	pty_loop_close(&ws->source);
	abx_strbuf_release(&ws->out);
	ws->events->gone(ws);
}

/* ---- writing */

static size_t head_make(unsigned char head[10], unsigned opcode, size_t len)
{
	uint16_t len16 = htobe16((uint16_t)len);
	uint64_t len64 = htobe64(len);

	head[0] = (unsigned char)(0x80 | opcode);
	head[1] = (unsigned char)(len < 126 ? len : len <= UINT16_MAX ? 126 : 127);
	if (len < 126)
		return 2;
	if (len <= UINT16_MAX) {
		memcpy(head + 2, &len16, sizeof(len16));
		return 4;
	}
	memcpy(head + 2, &len64, sizeof(len64));
	return 10;
}

/* Write a frame, or keep what the kernel does not take. A failure shows at the next read. */
static void frame_send(struct ws *ws, unsigned opcode, const void *data, size_t len)
{
	unsigned char head[10];
	size_t head_len = head_make(head, opcode, len), sent = 0;
	union {
		const void *given;
		void *taken;
	} text = { data };
	struct iovec parts[2] = { { head, head_len }, { text.taken, len } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n = ws->out.len ? 0 : sendmsg(ws->source.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		sent = (size_t)n;
	if (sent < head_len) {
		abx_strbuf_add(&ws->out, head + sent, head_len - sent);
		sent = head_len;
	}
	abx_strbuf_add(&ws->out, (const char *)data + (sent - head_len), len - (sent - head_len));
	watch(ws);
}

void ws_send(struct ws *ws, const char *text, size_t len)
{
	if (!ws->closing)
		frame_send(ws, OP_TEXT, text, len);
}

void ws_want_write(struct ws *ws)
{
	ws->wants_write = !ws->closing;
	watch(ws);
}

void ws_pause(struct ws *ws, bool paused)
{
	ws->paused = paused;
	/* That it did not answer meanwhile is no sign. */
	ws->heard_ms = ws->pinged_ms = abx_clock_ms();
	watch(ws);
}

static void cut_off_at(struct ws *ws, int64_t moment_ms)
{
	if (moment_ms < ws->dead_ms)
		ws->dead_ms = moment_ms;
	pty_loop_deadline(ws->dead_ms);
}

static void close_sent(struct ws *ws)
{
	if (ws->deaf)
		shutdown(ws->source.fd, SHUT_WR);
	cut_off_at(ws, abx_clock_ms() + SENT_WAIT_MS);
}

static void close_send(struct ws *ws, const void *body, size_t len, int64_t patience_ms)
{
	ws->closing = true;
	ws->wants_write = ws->pong_due = false;
	frame_send(ws, OP_CLOSE, body, len);
	if (ws->out.len)
		cut_off_at(ws, abx_clock_ms() + patience_ms);
	else
		close_sent(ws);
	ws->events->closing(ws);
}

void ws_close(struct ws *ws, int code, const char *reason, int64_t patience_ms)
{
	unsigned char body[125];
	size_t len = strnlen(reason, sizeof(body) - 2);

	if (ws->closing)
		return;
	body[0] = (unsigned char)(code >> 8);
	body[1] = (unsigned char)code;
	memcpy(body + 2, reason, len);
	close_send(ws, body, len + 2, patience_ms);
}

/* Nothing that it sends means anything any more. */
static void fail(struct ws *ws, int code, const char *reason)
{
	ws->deaf = true;
	ws_close(ws, code, reason, SENT_WAIT_MS);
}

/* ---- reading */

static bool is_control(unsigned opcode)
{
	return opcode & 8;
}

/* How long the head is, as far as it is known. */
static size_t head_wanted(const struct ws *ws)
{
	unsigned len;

	if (ws->head_len < 2)
		return 2;
	len = ws->head[1] & 0x7f;
	return 2 + (len == 126 ? 2 : len == 127 ? 8 : 0) + 4;
}

static uint64_t head_length(const struct ws *ws)
{
	unsigned len = ws->head[1] & 0x7f;
	uint16_t len16;
	uint64_t len64;

	memcpy(&len16, ws->head + 2, sizeof(len16));
	memcpy(&len64, ws->head + 2, sizeof(len64));
	return len < 126 ? len : len == 126 ? be16toh(len16) : be64toh(len64);
}

/* What the first two bytes of a frame do wrong, or NULL. */
static const char *head_fault(const struct ws *ws)
{
	unsigned opcode = ws->head[0] & 0x0f, len = ws->head[1] & 0x7f;
	bool final = ws->head[0] & 0x80;

	if (ws->head[0] & 0x70)
		return "reserved bits";
	if (!(ws->head[1] & 0x80))
		return "a frame that is not masked";
	if (is_control(opcode))
		return opcode > OP_PONG ? "reserved opcode" : len > 125 || !final ? "a control frame that is long or in pieces" : NULL;
	if (opcode > OP_BINARY)
		return "reserved opcode";
	return (opcode == OP_CONTINUATION) == ws->in_message ? NULL : "a piece out of order";
}

/* The head of a frame is there. */
static void frame_begin(struct ws *ws)
{
	unsigned opcode = ws->head[0] & 0x0f;

	ws->left = head_length(ws);
	ws->at = 0;
	if (is_control(opcode))
		return;
	if (ws->left >> 63)
		fail(ws, WS_CLOSE_PROTOCOL, "a length that cannot be");
	else if (ws->left > ws->max - ws->message_len)
		fail(ws, WS_CLOSE_TOO_BIG, "message too big");
	if (opcode != OP_CONTINUATION)
		ws->binary = opcode == OP_BINARY;
	ws->in_message = true;
}

/* Codes that may be sent (RFC 6455, section 7.4, and the registry). */
static bool is_close_code(unsigned code)
{
	return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) || (code >= 3000 && code <= 4999);
}

static void take_close(struct ws *ws)
{
	size_t len = ws->at;
	const char *reason = (const char *)ws->control + 2;

	if (len == 1 || (len >= 2 && (!is_close_code(ws->control[0] * 256U + ws->control[1]) || !abx_utf8_is_valid(reason, len - 2)))) {
		fail(ws, WS_CLOSE_PROTOCOL, "a close that cannot be");
		return;
	}
	ws->closed_there = true;
	if (!ws->closing && len >= 2)
		close_send(ws, ws->control, 2, SENT_WAIT_MS);
	else
		ws_close(ws, WS_CLOSE_NORMAL, "", SENT_WAIT_MS);
}

/* While something waits to be written only the last ping is remembered. */
static void take_ping(struct ws *ws)
{
	if (ws->closing)
		return;
	if (!ws->out.len) {
		frame_send(ws, OP_PONG, ws->control, ws->at);
		return;
	}
	memcpy(ws->pong, ws->control, ws->at);
	ws->pong_len = ws->at;
	ws->pong_due = true;
}

static void frame_end(struct ws *ws)
{
	switch (ws->head[0] & 0x0f) {
	case OP_CLOSE:
		take_close(ws);
		break;
	case OP_PING:
		take_ping(ws);
		break;
	default:
		break;
	}
	ws->head_len = 0;
}

/* Payload of the frame that is arriving, masked. */
static void take_payload(struct ws *ws, char *data, size_t len)
{
	const unsigned char *mask = ws->head + head_wanted(ws) - 4;
	bool control = is_control(ws->head[0] & 0x0f), ends = len == ws->left;

	for (size_t i = 0; i < len; i++)
		data[i] = (char)(data[i] ^ (char)mask[(ws->at + i) & 3]);
	if (control)
		memcpy(ws->control + ws->at, data, len);
	ws->at += len;
	ws->left -= len;
	if (!control) {
		bool last = ends && (ws->head[0] & 0x80);

		ws->message_len = last ? 0 : ws->message_len + len;
		ws->in_message = !last;
		if (!ws->closing)
			ws->events->piece(ws, data, len, ws->binary, last);
	}
	if (ends)
		frame_end(ws);
}

static void take(struct ws *ws, char *data, size_t len)
{
	size_t n;

	while (len > 0 && !ws->closed_there && !ws->deaf) {
		if (ws->head_len < 2 || ws->head_len < head_wanted(ws)) {
			const char *fault;

			ws->head[ws->head_len++] = (unsigned char)*data++;
			len--;
			fault = ws->head_len == 2 ? head_fault(ws) : NULL;
			if (fault)
				fail(ws, WS_CLOSE_PROTOCOL, fault);
			if (fault || ws->head_len < head_wanted(ws))
				continue;
			frame_begin(ws);
			if (ws->deaf || ws->left > 0)
				continue;
		}
		n = len < ws->left ? len : (size_t)ws->left;
		take_payload(ws, data, n);
		data += n;
		len -= n;
	}
}

/* Returns -1 when the connection has ended. */
static int read_some(struct ws *ws)
{
	static char buf[READ_SIZE];
	ssize_t n = recv(ws->source.fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	ws->heard_ms = ws->pinged_ms = abx_clock_ms();
	take(ws, buf, (size_t)n);
	return 0;
}

/* Returns -1 when the connection has ended. */
static int write_some(struct ws *ws)
{
	ssize_t n = ws->out.len ? send(ws->source.fd, ws->out.buf, ws->out.len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	abx_strbuf_consume(&ws->out, (size_t)n);
	/* There was no room, and now there is: the peer has taken something. */
	if (n > 0)
		ws->heard_ms = abx_clock_ms();
	if (ws->out.len == 0)
		abx_strbuf_release(&ws->out);
	if (ws->closing && ws->out.len == 0)
		close_sent(ws);
	if (ws->pong_due && ws->out.len == 0) {
		ws->pong_due = false;
		frame_send(ws, OP_PONG, ws->pong, ws->pong_len);
	}
	for (int i = 0; i < ANSWERS_MAX && ws->wants_write && ws->out.len == 0; i++) {
		ws->wants_write = false;
		ws->events->writable(ws);
	}
	watch(ws);
	return ws->out.failed ? -1 : 0;
}

static void ws_ready(struct pty_source *source, uint32_t events)
{
	struct ws *ws = (struct ws *)source;

	if (((events & ~(uint32_t)EPOLLOUT) && read_some(ws) < 0) || ((events & EPOLLOUT) && write_some(ws) < 0) ||
	    (ws->closing && ws->closed_there && ws->out.len == 0))
		end(ws);
}

/* ---- beginning and time */

static int handshake_send(int fd, const char *key)
{
	struct sha1_ctx sha1;
	uint8_t digest[SHA1_DIGEST_SIZE];
	char accept[ABX_BASE64_ENCODED(SHA1_DIGEST_SIZE)], text[200];
	int len;

	sha1_init(&sha1);
	sha1_update(&sha1, strlen(key), (const uint8_t *)key);
	sha1_update(&sha1, strlen(GUID), (const uint8_t *)GUID);
	sha1_digest(&sha1, sizeof(digest), digest);
	abx_base64_encode(digest, sizeof(digest), accept);
	len = snprintf(text, sizeof(text), "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %.*s\r\n\r\n",
		       (int)sizeof(accept), accept);
	/* The socket is new: there is room. */
	return send(fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len ? 0 : -1;
}

int ws_open(struct ws *ws, int fd, const char *key, size_t max, const struct ws_events *events)
{
	*ws = (struct ws){
		.source = { .fd = fd, .events = EPOLLIN | EPOLLRDHUP, .ready = ws_ready },
		.events = events,
		.max = max,
		.out = ABX_STRBUF_INIT_MAX(OUT_MAX),
		.dead_ms = INT64_MAX,
	};
	ws->heard_ms = ws->pinged_ms = abx_clock_ms();
	if (handshake_send(fd, key) < 0 || pty_loop_add(&ws->source) < 0) {
		close(fd);
		return -1;
	}
	pty_loop_deadline(ws->heard_ms + PING_MS);
	return 0;
}

int64_t ws_tick(struct ws *ws, int64_t now_ms)
{
	if (ws->dead_ms <= now_ms || (!ws->paused && now_ms - ws->heard_ms >= VANISHED_MS)) {
		end(ws);
		return 0;
	}
	if (ws->closing)
		return ws->dead_ms;
	if (ws->paused)
		return now_ms + PING_MS;
	if (now_ms - ws->pinged_ms >= PING_MS) {
		ws->pinged_ms = now_ms;
		/* Behind what still waits it would tell nothing. */
		if (ws->out.len == 0)
			frame_send(ws, OP_PING, "", 0);
	}
	return ws->pinged_ms + PING_MS;
}
