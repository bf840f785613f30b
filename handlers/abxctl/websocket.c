#include "handlers/abxctl/websocket.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/base64.h"
#include "handlers/abxctl/http.h"
#include "handlers/abxctl/http_curl.h"

/* Longest head of the answer. */
#define HEAD_MAX 16384

enum { OP_TEXT = 1, OP_CLOSE = 8, OP_PING = 9, OP_PONG = 10 };

void websocket_release(struct websocket *ws)
{
	if (ws->curl)
		curl_easy_cleanup(ws->curl);
	abx_strbuf_release(&ws->in);
}

/* ---- bytes */

static int write_all(struct websocket *ws, const char *data, size_t len)
{
	while (len > 0) {
		struct pollfd ready = { .fd = ws->fd, .events = POLLOUT };
		size_t n = 0;
		CURLcode rc = curl_easy_send(ws->curl, data, len, &n);

		if (rc == CURLE_AGAIN)
			poll(&ready, 1, -1);
		else if (rc != CURLE_OK)
			return -1;
		data += n;
		len -= n;
	}
	return 0;
}

void websocket_read(struct websocket *ws)
{
	char piece[65536];
	size_t n = 0;
	CURLcode rc = curl_easy_recv(ws->curl, piece, sizeof(piece), &n);

	if (rc == CURLE_OK && n > 0)
		abx_strbuf_add(&ws->in, piece, n);
	else if (rc != CURLE_AGAIN)
		ws->ended = true;
	ws->ended |= ws->in.failed;
}

/* ---- frames */

/* One frame, masked as those of clients have to be. */
static int send_frame(struct websocket *ws, int opcode, const char *data, size_t len)
{
	abx_auto_strbuf struct abx_strbuf frame = ABX_STRBUF_INIT;
	unsigned char mask[4];
	uint64_t long_len = htobe64(len);

	abx_strbuf_addc(&frame, (char)(0x80 | opcode));
	if (len < 126) {
		abx_strbuf_addc(&frame, (char)(0x80 | len));
	} else {
		abx_strbuf_addc(&frame, (char)(0x80 | 127));
		abx_strbuf_add(&frame, &long_len, sizeof(long_len));
	}
	if (getrandom(mask, sizeof(mask), 0) != sizeof(mask))
		return -1;
	abx_strbuf_add(&frame, mask, sizeof(mask));
	size_t begin = frame.len;
	abx_strbuf_add(&frame, data, len);
	if (frame.failed)
		return -1;
	for (size_t i = 0; i < len; i++)
		frame.buf[begin + i] ^= (char)mask[i % 4];
	return write_all(ws, frame.buf, frame.len);
}

int websocket_send(struct websocket *ws, const char *text, size_t len)
{
	return send_frame(ws, OP_TEXT, text, len);
}

struct frame {
	int opcode;
	const char *data;
	size_t len;
};

/* The frame at the front of what has come, if it is whole. Our server sends no message in parts. */
static bool take_frame(struct websocket *ws, struct frame *ret)
{
	const unsigned char *p = (const unsigned char *)ws->in.buf;
	size_t head = 2, len;
	uint64_t long_len;

	abx_strbuf_consume(&ws->in, ws->done);
	ws->done = 0;
	p = (const unsigned char *)ws->in.buf;
	if (ws->in.len < head)
		return false;
	len = p[1] & 0x7f;
	if (len == 126)
		head = 4;
	else if (len == 127)
		head = 10;
	if (ws->in.len < head)
		return false;
	if (len == 126) {
		len = (size_t)p[2] << 8 | p[3];
	} else if (len == 127) {
		memcpy(&long_len, p + 2, sizeof(long_len));
		len = (size_t)be64toh(long_len);
	}
	/* One that will never fit is the same as a broken connection. */
	if (len > ABX_STRBUF_MAX)
		ws->ended = true;
	if (len > ABX_STRBUF_MAX || ws->in.len < head + len)
		return false;
	*ret = (struct frame){ .opcode = p[0] & 0x0f, .data = ws->in.buf + head, .len = len };
	ws->done = head + len;
	return true;
}

static void take_close(struct websocket *ws, const struct frame *frame)
{
	ws->ended = true;
	ws->close_code = 1005;
	if (frame->len < 2)
		return;
	ws->close_code = (unsigned char)frame->data[0] << 8 | (unsigned char)frame->data[1];
	snprintf(ws->close_reason, sizeof(ws->close_reason), "%.*s", (int)(frame->len - 2), frame->data + 2);
	send_frame(ws, OP_CLOSE, frame->data, 2);
}

bool websocket_next(struct websocket *ws, const char **ret_text, size_t *ret_len)
{
	struct frame frame;

	while (take_frame(ws, &frame)) {
		if (frame.opcode == OP_TEXT) {
			*ret_text = frame.data;
			*ret_len = frame.len;
			return true;
		}
		if (frame.opcode == OP_PING && send_frame(ws, OP_PONG, frame.data, frame.len) < 0)
			ws->ended = true;
		if (frame.opcode == OP_CLOSE) {
			take_close(ws, &frame);
			return false;
		}
	}
	if (ws->ended && !ws->close_code)
		ws->close_code = 1006;
	return false;
}

/* ---- the handshake */

static int send_handshake(const struct ctl *ctl, const char *target, struct websocket *ws)
{
	abx_auto_strbuf struct abx_strbuf head = ABX_STRBUF_INIT;
	/* Behind the host comes the path that the server is mounted at. */
	const char *host = strstr(ctl->url, "://") + 3, *path = host + strcspn(host, "/");
	unsigned char random[16];
	char key[ABX_BASE64_ENCODED(sizeof(random))];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -1;
	abx_base64_encode(random, sizeof(random), key);
	abx_strbuf_addf(&head, "GET %s%s HTTP/1.1\r\nHost: %.*s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
			"Sec-WebSocket-Key: %.*s\r\n", path, target, (int)(path - host), host, (int)sizeof(key), key);
	if (ctl->token)
		abx_strbuf_addf(&head, "Authorization: Bearer %s\r\n", ctl->token);
	abx_strbuf_adds(&head, "\r\n");
	int result = head.failed ? -1 : write_all(ws, head.buf, head.len);
	explicit_bzero(head.buf, head.len);
	return result;
}

/* Read the answer's head. What comes behind it are frames. */
static int take_answer(const struct ctl *ctl, struct websocket *ws, struct abx_err *err)
{
	const char *end;
	int status = 0;

	while (!(end = memmem(ws->in.buf, ws->in.len, "\r\n\r\n", 4)) && !ws->ended && ws->in.len < HEAD_MAX) {
		struct pollfd ready = { .fd = ws->fd, .events = POLLIN };

		poll(&ready, 1, -1);
		websocket_read(ws);
	}
	if (!end || sscanf(ws->in.buf, "HTTP/1.1 %d", &status) != 1)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "%s: the connection was closed", ctl->url);
	if (status != 101)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "%s: there is no terminal here (HTTP status %d)", ctl->url, status);
	ws->done = (size_t)(end - ws->in.buf) + 4;
	return 0;
}

int websocket_open(const struct ctl *ctl, const char *target, struct websocket *ws, struct abx_err *err)
{
	char message[CURL_ERROR_SIZE] = "";
	curl_socket_t fd = CURL_SOCKET_BAD;
	CURLcode rc;

	ws->curl = curl_easy_init();
	if (!ws->curl) {
		abx_err_set(err, ABX_E_INTERNAL, "out of memory");
		return CTL_FAILED;
	}
	rc = http_curl_prepare(ws->curl, ctl->url, message);
	if (rc == CURLE_OK)
		rc = curl_easy_setopt(ws->curl, CURLOPT_CONNECT_ONLY, 1L);
	/* Over HTTP/2 a WebSocket begins differently. */
	if (rc == CURLE_OK)
		rc = curl_easy_setopt(ws->curl, CURLOPT_SSL_ENABLE_ALPN, 0L);
	if (rc == CURLE_OK)
		rc = curl_easy_perform(ws->curl);
	if (rc == CURLE_OK)
		rc = curl_easy_getinfo(ws->curl, CURLINFO_ACTIVESOCKET, &fd);
	if (rc != CURLE_OK)
		return http_curl_explain(ctl, ws->curl, rc, message, err);
	ws->fd = fd;
	if (send_handshake(ctl, target, ws) < 0) {
		abx_err_set(err, ABX_E_UNAVAILABLE, "%s: the connection was closed", ctl->url);
		return CTL_FAILED;
	}
	return take_answer(ctl, ws, err) < 0 ? CTL_FAILED : CTL_OK;
}
