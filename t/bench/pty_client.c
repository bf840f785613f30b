/*
 * Measures a terminal: round trips of a typed character that the terminal echoes, and the time of a long output (`cat FILE`).
 *   pty_client bare ROUNDS FILE           on a pseudo-terminal of its own, which is the best that can be had
 *   pty_client PORT SESSION ROUNDS FILE   through a session's WebSocket
 * t/bench/pty.pl runs both and prints a table.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/strbuf.h"

static int fd;
static bool bare;
static struct abx_strbuf in = ABX_STRBUF_INIT_MAX((size_t)64 << 20);

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void fill(void)
{
	static char piece[1 << 18];
	ssize_t n = read(fd, piece, sizeof(piece));

	if (n <= 0)
		die("read");
	abx_strbuf_add(&in, piece, (size_t)n);
}

/* ---- the WebSocket: only what our own server sends */

static void send_message(const char *text)
{
	unsigned char frame[256];
	size_t len = strlen(text);

	frame[0] = 0x81;
	frame[1] = (unsigned char)(0x80 | len);
	memset(frame + 2, 0, 4);
	memcpy(frame + 6, text, len);
	if (write(fd, frame, len + 6) != (ssize_t)(len + 6))
		die("write");
}

/* Take one message off, and return its length; it is at *ret_text until the next call. */
static size_t next_message(const char **ret_text)
{
	static size_t done;
	const unsigned char *p;
	size_t head = 2, len;

	abx_strbuf_consume(&in, done);
	for (;; fill()) {
		p = (const unsigned char *)in.buf;
		if (in.len < 10 && (in.len < 2 || in.len < 2 + (size_t)p[1]))
			continue;
		len = p[1];
		head = len == 127 ? 10 : len == 126 ? 4 : 2;
		if (len == 126)
			len = (size_t)p[2] << 8 | p[3];
		if (len == 127)
			len = (size_t)p[6] << 24 | (size_t)p[7] << 16 | (size_t)p[8] << 8 | p[9];
		if (in.len >= head + len)
			break;
	}
	done = head + len;
	*ret_text = in.buf + head;
	return len;
}

static void open_socket(int port, const char *session)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char head[512];
	int one = 1, len = snprintf(head, sizeof(head), "GET /pty?session_id=%s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
				    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n", session);

	fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || write(fd, head, (size_t)len) != len)
		die("connect");
	while (!memmem(in.buf, in.len, "\r\n\r\n", 4))
		fill();
	abx_strbuf_consume(&in, (size_t)((char *)memmem(in.buf, in.len, "\r\n\r\n", 4) - in.buf) + 4);
}

/* ---- a terminal of its own */

static void open_bare(void)
{
	char name[64];

	fd = posix_openpt(O_RDWR | O_NOCTTY);
	if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0 || ptsname_r(fd, name, sizeof(name)) != 0)
		die("pty");
	if (fork() == 0) {
		setsid();
		int tty = open(name, O_RDWR);
		dup2(tty, 0);
		dup2(tty, 1);
		dup2(tty, 2);
		close(fd);
		execl("/bin/sh", "/bin/sh", (char *)NULL);
		_exit(127);
	}
}

/* ---- either */

static void type(const char *text)
{
	char message[200];

	if (!bare) {
		snprintf(message, sizeof(message), "{\"type\": \"input\", \"data\": \"%s\\n\"}", text);
		send_message(message);
	} else if (dprintf(fd, "%s\n", text) < 0) {
		die("write");
	}
}

/* Read until `text` was seen, and return how many bytes came. */
static size_t wait_for(const char *text)
{
	const char *message;
	size_t total = 0, len, text_len = strlen(text);

	for (;;) {
		if (bare) {
			abx_strbuf_reset(&in);
			fill();
			message = in.buf;
			len = in.len;
		} else {
			len = next_message(&message);
		}
		total += len;
		/* The mark comes in one piece: it is written at once. */
		if (memmem(message + (len > 4096 ? len - 4096 : 0), len > 4096 ? 4096 : len, text, text_len))
			return total;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure_echo(int rounds)
{
	double *times = calloc((size_t)rounds, sizeof(*times));

	type("stty -icanon; echo go''ing; exec cat >/dev/null");
	wait_for("going");
	for (int i = 0; i < rounds; i++) {
		int64_t start = abx_clock_us();
		const char *message;

		if (bare) {
			char c;
			if (write(fd, "x", 1) != 1 || read(fd, &c, 1) != 1)
				die("echo");
		} else {
			send_message("{\"type\": \"input\", \"data\": \"x\"}");
			next_message(&message);
		}
		times[i] = (double)(abx_clock_us() - start);
	}
	qsort(times, (size_t)rounds, sizeof(*times), by_value);
	printf("%.0f %.0f\n", times[rounds / 2], times[rounds * 99 / 100]);
	free(times);
}

static void measure_flood(const char *file)
{
	char command[160];
	struct stat st;
	int64_t start;

	if (stat(file, &st) < 0)
		die(file);
	snprintf(command, sizeof(command), "cat %s; echo en''ded", file);
	start = abx_clock_us();
	type(command);
	wait_for("ended");
	printf("%.1f ", (double)st.st_size / (double)(abx_clock_us() - start));
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	bare = strcmp(argv[1], "bare") == 0;
	if (bare)
		open_bare();
	else
		open_socket(atoi(argv[1]), argv[2]);
	type("echo re''ady");
	wait_for("ready");
	measure_flood(argv[argc - 1]);
	measure_echo(atoi(argv[argc - 2]));
	return 0;
}
