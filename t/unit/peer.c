#include "common/peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/auto.h"
#include "t/tap.h"

/* A connection through the loopback device: the client's end, the server's, and what a web server says of it. */
struct pair {
	int client, server;
	char text[4][80];
	char *params[5];
};

static const char *where(int family)
{
	return family == AF_INET ? "127.0.0.1" : "::1";
}

static unsigned address(int fd, int (*of)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_in6 addr;
	socklen_t len = sizeof(addr);

	of(fd, (struct sockaddr *)&addr, &len);
	/* The port is at the same place in both kinds. */
	return ntohs(addr.sin6_port);
}

static int pair_open(struct pair *pair, int family, const char *remote)
{
	abx_auto_fd int listener = socket(family, SOCK_STREAM, 0);
	struct sockaddr_storage addr = { .ss_family = (sa_family_t)family };
	socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	inet_pton(family, where(family), family == AF_INET ? (void *)&((struct sockaddr_in *)&addr)->sin_addr : (void *)&((struct sockaddr_in6 *)&addr)->sin6_addr);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) < 0)
		return -1;
	pair->client = socket(family, SOCK_STREAM, 0);
	if (connect(pair->client, (struct sockaddr *)&addr, len) < 0)
		return -1;
	pair->server = accept(listener, NULL, NULL);
	snprintf(pair->text[0], sizeof(pair->text[0]), "SERVER_ADDR=%s", where(family));
	snprintf(pair->text[1], sizeof(pair->text[1]), "SERVER_PORT=%u", address(pair->server, getsockname));
	snprintf(pair->text[2], sizeof(pair->text[2]), "REMOTE_ADDR=%s", remote);
	snprintf(pair->text[3], sizeof(pair->text[3]), "REMOTE_PORT=%u", address(pair->server, getpeername));
	for (size_t i = 0; i < 4; i++)
		pair->params[i] = pair->text[i];
	return pair->server >= 0 ? 0 : -1;
}

static void test_leaving(int family, const char *what, void (*leave)(int fd))
{
	struct pair pair = { 0 };
	struct abx_peer peer;

	if (pair_open(&pair, family, where(family)) < 0) {
		skip("%s: no such network", what);
		return;
	}
	abx_peer_init(&peer, pair.params);
	ok(!abx_peer_has_left(&peer) && peer.family, "%s: there", what);
	leave(pair.client);
	ok(abx_peer_has_left(&peer), "%s: gone", what);
	close(pair.server);
}

static void leave_close(int fd)
{
	close(fd);
}

static void leave_half(int fd)
{
	shutdown(fd, SHUT_WR);
}

static void leave_reset(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

static void test_another_address(void)
{
	struct pair pair = { 0 };
	struct abx_peer peer;

	pair_open(&pair, AF_INET, "192.0.2.7");
	abx_peer_init(&peer, pair.params);
	ok(!abx_peer_has_left(&peer), "an address that a proxy has put there: never gone");
	ok(!peer.family, "and not asked for again");
	close(pair.client);
	ok(!abx_peer_has_left(&peer), "whatever the client does");
	close(pair.server);
}

static void test_variables(void)
{
	static char bad[][4][32] = {
		{ "SERVER_PORT=0", "REMOTE_PORT=1", "SERVER_ADDR=127.0.0.1", "REMOTE_ADDR=127.0.0.1" },
		{ "SERVER_PORT=1", "REMOTE_PORT=70000", "SERVER_ADDR=127.0.0.1", "REMOTE_ADDR=127.0.0.1" },
		{ "SERVER_PORT=1", "REMOTE_PORT=1x", "SERVER_ADDR=127.0.0.1", "REMOTE_ADDR=127.0.0.1" },
		{ "SERVER_PORT=1", "REMOTE_PORT=-1", "SERVER_ADDR=127.0.0.1", "REMOTE_ADDR=127.0.0.1" },
		{ "SERVER_PORT=1", "REMOTE_PORT=1", "SERVER_ADDR=/run/socket", "REMOTE_ADDR=127.0.0.1" },
		{ "SERVER_PORT=1", "REMOTE_PORT=1", "SERVER_ADDR=::1", "REMOTE_ADDR=127.0.0.1" },
		{ "SERVER_PORT=1", "REMOTE_PORT=1", "SERVER_ADDR=127.0.0.1", "REMOTE_ADDR=" },
	};
	struct abx_peer peer;

	for (size_t i = 0; i < ABX_N(bad); i++) {
		char *params[5] = { 0 };

		for (size_t j = 0; j < 4; j++)
			params[j] = bad[i][j];
		abx_peer_init(&peer, params);
		ok(!peer.family && !abx_peer_has_left(&peer), "variables %zu name no connection", i);
	}
	abx_peer_init(&peer, (char *[]){ NULL });
	ok(!peer.family, "no variables");
}

int main(void)
{
	for (int family = AF_INET; family; family = family == AF_INET ? AF_INET6 : 0) {
		test_leaving(family, where(family), leave_close);
		test_leaving(family, where(family), leave_half);
		test_leaving(family, where(family), leave_reset);
	}
	test_another_address();
	test_variables();
	return done_testing();
}
