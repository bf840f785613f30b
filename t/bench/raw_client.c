/*
 * Moves bytes as fast as a client can: one connection, one transfer, nothing looked at.
 *
 *   raw_client get PORT TARGET          prints the bytes of the body and the seconds that it took
 *   raw_client put PORT TARGET BYTES    sends BYTES of a pattern as application/octet-stream
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE ((size_t)256 << 10)

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int connect_to(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 ? fd : -1;
}

static bool send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static bool send_head(int fd, char **argv, bool put)
{
	char head[4096];

	if (put)
		snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/octet-stream\r\n"
			 "Content-Length: %s\r\n\r\n", argv[3], argv[4]);
	else
		snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", argv[3]);
	return send_all(fd, head, strlen(head));
}

int main(int argc, char **argv)
{
	static char piece[PIECE];
	bool put = argc == 5 && strcmp(argv[1], "put") == 0;
	long long left = put ? atoll(argv[4]) : 0, total = 0;
	double begin = now();
	ssize_t n;
	int fd;

	if (!put && !(argc == 4 && strcmp(argv[1], "get") == 0))
		return 2;
	fd = connect_to(atoi(argv[2]));
	memset(piece, 'x', sizeof(piece));
	if (fd < 0 || !send_head(fd, argv, put))
		return 1;
	for (; left > 0; left -= (long long)PIECE)
		if (!send_all(fd, piece, left < (long long)PIECE ? (size_t)left : PIECE))
			return 1;
	n = recv(fd, piece, sizeof(piece), 0);
	if (n < 12 || memcmp(piece + 9, "200", 3) != 0)
		return 1;
	do
		total += n;
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0);
	printf("%lld %.6f\n", put ? atoll(argv[4]) : total, now() - begin);
	return n < 0;
}
