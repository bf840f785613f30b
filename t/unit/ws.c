#include "handlers/ptyd/ws.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/clock.h"
#include "t/tap.h"

/* The sample of RFC 6455, section 1.3. */
#define KEY    "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

#define MAX 1000

static struct ws ws;
static bool gone;
static char log_text[4096];

int64_t pty_tick(int64_t now_ms ABX_UNUSED)
{
	return INT64_MAX;
}

static void on_piece(struct ws *of ABX_UNUSED, const char *data, size_t len, bool binary, bool end)
{
	size_t n = strlen(log_text);

	snprintf(log_text + n, sizeof(log_text) - n, "%s%.*s%s", binary ? "B:" : "", len < 20 ? (int)len : 3, data, end ? ";" : "");
}

static void on_writable(struct ws *of)
{
	ws_send(of, "answer", 6);
}

static void on_gone(struct ws *of ABX_UNUSED)
{
	gone = true;
}

static void on_closing(struct ws *of ABX_UNUSED)
{
	strcat(log_text, "!");
}

static const struct ws_events events = { on_piece, on_writable, on_gone, on_closing };

static int open_pair(void)
{
	char head[256];
	int ends[2];
	ssize_t n;

	gone = false;
	log_text[0] = '\0';
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0 || ws_open(&ws, ends[0], KEY, MAX, &events) < 0)
		return -1;
	n = recv(ends[1], head, sizeof(head) - 1, 0);
	head[n > 0 ? n : 0] = '\0';
	return strstr(head, "\r\nSec-WebSocket-Accept: " ACCEPT "\r\n") ? ends[1] : -1;
}

/* What the server has sent, as it is told by the client's end: "text", "ping(…)" and the like, one after the other. */
static void describe(const unsigned char *data, size_t len, char *out)
{
	while (len >= 2 && len >= 2U + data[1]) {
		size_t n = data[1];

		if (data[0] == 0x88)
			out += sprintf(out, "close %d ", n >= 2 ? data[2] * 256 + data[3] : 0);
		else
			out += sprintf(out, "%s(%.*s) ", data[0] == 0x8a ? "pong" : data[0] == 0x81 ? "text" : "?", (int)n, (const char *)data + 2);
		data += 2 + n;
		len -= 2 + n;
	}
	*out = '\0';
}

/* Send the bytes, at once or one by one, and then no more. */
static void session(const char *bytes, size_t len, size_t step, char *ret_sent)
{
	unsigned char got[4096];
	int fd = open_pair();
	size_t n = 0;
	ssize_t some;

	*ret_sent = '\0';
	if (!ok(fd >= 0, "a connection"))
		return;
	for (size_t at = 0; at < len; at += step) {
		send(fd, bytes + at, len - at < step ? len - at : step, MSG_NOSIGNAL);
		if (step < len && !gone)
			pty_loop_serve();
	}
	shutdown(fd, SHUT_WR);
	while (!gone)
		pty_loop_serve();
	while ((some = recv(fd, got + n, sizeof(got) - n, 0)) > 0)
		n += (size_t)some;
	close(fd);
	describe(got, n, ret_sent);
}


static const struct {
	const char *bytes;
	size_t len;
	const char *taken, *sent, *name;
} cases[] = {
#define CASE(bytes, taken, sent, name) { bytes, sizeof(bytes) - 1, taken, sent, name }
	CASE("\x81\x82\1\2\3\4\x69\x6b", "hi;", "", "a message"),
	CASE("\x81\x87\1\2\3\4\x60\x60\x60\x60\x60\x60\x60", NULL, "", "a mask that begins again"),
	CASE("\x81\x80\0\0\0\0", ";", "", "an empty one"),
	CASE("\x82\x82\0\0\0\0hi", NULL, "", "a binary one"),
	CASE("\x01\x81\0\0\0\0a\x00\x81\0\0\0\0b\x80\x81\0\0\0\0c\x81\x81\0\0\0\0d", NULL, "", "one in pieces"),
	CASE("\x89\x82\0\0\0\0xy", "", "pong(xy) ", "a ping"),
	CASE("\x01\x81\0\0\0\0a\x89\x80\0\0\0\0\x80\x81\0\0\0\0b", NULL, "pong() ", "a ping between pieces"),
	CASE("\x8a\x82\0\0\0\0xy", "", "", "a pong nobody asked for"),
	CASE("\x81\x02hi", "!", "close 1002 ", "not masked"),
	CASE("\x81\x02hi\x81\x82\0\0\0\0no", "!", "close 1002 ", "what follows means nothing"),
	CASE("\xc1\x80\0\0\0\0", "!", "close 1002 ", "a reserved bit"),
	CASE("\xa1\x80\0\0\0\0", "!", "close 1002 ", "another"),
	CASE("\x91\x80\0\0\0\0", "!", "close 1002 ", "the last"),
	CASE("\x83\x80\0\0\0\0", "!", "close 1002 ", "a reserved opcode"),
	CASE("\x8b\x80\0\0\0\0", "!", "close 1002 ", "one of control"),
	CASE("\x8f\x80\0\0\0\0", "!", "close 1002 ", "the last one"),
	CASE("\x09\x80\0\0\0\0", "!", "close 1002 ", "a ping in pieces"),
	CASE("\x89\xfe\0\x7e\0\0\0\0", "!", "close 1002 ", "a long ping"),
	CASE("\x80\x80\0\0\0\0", "!", "close 1002 ", "a piece of nothing"),
	CASE("\x01\x80\0\0\0\0\x81\x80\0\0\0\0", "!", "close 1002 ", "a message inside another"),
	CASE("\x81\xff\x80\0\0\0\0\0\0\0\0\0\0\0", "!", "close 1002 ", "a length with the highest bit"),
	CASE("\x81\xff\0\0\0\0\x7f\0\0\0\0\0\0\0", "!", "close 1009 ", "a length that is too long"),
	CASE("\x81\xfe\x03\xe9\0\0\0\0", "!", "close 1009 ", "by one"),
	CASE("\x01\x81\0\0\0\0a\x80\xfe\x03\xe8\0\0\0\0", "a!", "close 1009 ", "in pieces"),
	CASE("\x88\x80\0\0\0\0", "!", "close 1000 ", "a close without a code"),
	CASE("\x88\x82\0\0\0\0\x03\xe9", "!", "close 1001 ", "one with a code"),
	CASE("\x88\x84\0\0\0\0\x0f\xa0hi", "!", "close 4000 ", "and a reason"),
	CASE("\x88\x81\0\0\0\0\x03", "!", "close 1002 ", "half a code"),
	CASE("\x88\x82\0\0\0\0\x03\xed", "!", "close 1002 ", "a code that cannot be sent"),
	CASE("\x88\x82\0\0\0\0\0\0", "!", "close 1002 ", "none that there is"),
	CASE("\x88\x82\0\0\0\0\x13\x88", "!", "close 1002 ", "5000"),
	CASE("\x88\x83\0\0\0\0\x03\xe8\xff", "!", "close 1002 ", "a reason that is no UTF-8"),
	CASE("\x88\x80\0\0\0\0\x81\x82\0\0\0\0no", "!", "close 1000 ", "nothing follows a close"),
	CASE("\x81\x82\0\0\0\0h", "h", "", "half a message"),
	CASE("\x81", "", "", "half a head"),
#undef CASE
};

static void test_frames(void)
{
	char sent[4096];

	for (size_t i = 0; i < ABX_N(cases); i++)
		for (size_t step = 1; step <= cases[i].len; step += cases[i].len > 1 ? cases[i].len - 1 : 1) {
			/* How much is read at a time decides what is told of it in one piece. */
			session(cases[i].bytes, cases[i].len, step, sent);
			if (cases[i].taken)
				is_str(log_text, cases[i].taken, "%s, %zu at a time: taken", cases[i].name, step);
			is_str(sent, cases[i].sent, "%s, %zu at a time: sent", cases[i].name, step);
		}
	session(cases[1].bytes, cases[1].len, cases[1].len, sent);
	is_str(log_text, "abcdabc;", "a mask goes round");
	session(cases[3].bytes, cases[3].len, cases[3].len, sent);
	is_str(log_text, "B:hi;", "binary is told");
	session(cases[4].bytes, cases[4].len, cases[4].len, sent);
	is_str(log_text, "abc;d;", "pieces make a message");
	session(cases[6].bytes, cases[6].len, cases[6].len, sent);
	is_str(log_text, "ab;", "with a ping between them");
}

static void test_limit(void)
{
	char bytes[8 + MAX] = "\x81\xfe\x03\xe8", sent[4096];

	memset(bytes + 8, 'x', MAX);
	session(bytes, sizeof(bytes), sizeof(bytes), sent);
	is_str(log_text, "xxx;", "the longest message");
}

/* A peer that reads nothing: what waits is kept and sent later, in order, and the close behind it. */
static void test_writing(void)
{
	static char big[300000], got[700000];
	int fd = open_pair();
	size_t n = 0;
	ssize_t some;

	memset(big, 'x', sizeof(big));
	ws_send(&ws, big, sizeof(big));
	ok(ws.out.len > 0, "not all of it was taken");
	ws_send(&ws, "y", 1);
	ws_close(&ws, 4008, "slow", 1000);
	ws_send(&ws, "z", 1);
	is_str(log_text, "!", "it closes");
	while (n < sizeof(got) && (n < 4 || got[n - 4] != 's')) {
		while ((some = recv(fd, got + n, sizeof(got) - n, 0)) > 0)
			n += (size_t)some;
		if (n < 10 + sizeof(big) + 3 + 8)
			pty_loop_serve();
		else
			break;
	}
	is_int((long long)n, 10 + (long long)sizeof(big) + 3 + 8, "all has come");
	ok(memcmp(got, "\x81\x7f\0\0\0\0\0\x04\x93\xe0", 10) == 0 && memcmp(got + 10, big, sizeof(big)) == 0, "the message");
	ok(memcmp(got + 10 + sizeof(big), "\x81\x01y\x88\x06\x0f\xa8slow", 11) == 0, "the next, and the close; nothing behind it");
	ok(!gone, "their close is waited for");
	is_int(ws_tick(&ws, abx_clock_ms()), ws.dead_ms, "until some moment");
	send(fd, "\x88\x80\0\0\0\0", 6, 0);
	while (!gone)
		pty_loop_serve();
	ok(recv(fd, got, 1, 0) == 0, "then the connection is closed");
	close(fd);
}

static void test_time(void)
{
	unsigned char got[16];
	int fd = open_pair();
	int64_t now = abx_clock_ms();

	ok(ws_tick(&ws, now) > now && recv(fd, got, sizeof(got), 0) < 0, "nothing is sent at first");
	ws_tick(&ws, now + 26000);
	ok(recv(fd, got, sizeof(got), 0) == 2 && got[0] == 0x89 && got[1] == 0, "a silent peer gets a ping");
	ws_tick(&ws, now + 27000);
	ok(recv(fd, got, sizeof(got), 0) < 0, "but one");
	ws_pause(&ws, true);
	ok(ws_tick(&ws, now + 200000) != 0 && !gone, "one that is not read from cannot answer");
	ws_pause(&ws, false);
	is_int(ws_tick(&ws, abx_clock_ms() + 91000), 0, "one that has vanished");
	ok(gone, "is given up");
	close(fd);
}

/* A message is asked for, and a pong is due. */
static void test_wanting(void)
{
	char sent[4096];
	unsigned char got[64];
	int fd = open_pair();

	ws_want_write(&ws);
	pty_loop_serve();
	ok(recv(fd, got, sizeof(got), 0) == 8 && memcmp(got, "\x81\x06" "answer", 8) == 0, "what was asked for");
	send(fd, "\x88\x80\0\0\0\0", 6, 0);
	while (!gone)
		pty_loop_serve();
	close(fd);
	session("", 0, 1, sent);
	is_str(sent, "", "a peer that says nothing");
}

int main(void)
{
	struct abx_err err = ABX_ERR_INIT;

	if (pty_loop_open(&err) < 0)
		return 1;
	test_frames();
	test_limit();
	test_writing();
	test_time();
	test_wanting();
	return done_testing();
}
