#include "handlers/system/sockets.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t/tap.h"

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define TAIL " 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000041cf5ff4 100 0 0 10 0\n"
#define NONE "00000000000000000000000000000000"

static void is_socket(const struct system_sockets *sockets, size_t i, int port, const char *address, bool v6, int pid)
{
	if (!ok(i < sockets->n, "there is a socket %zu", i))
		return;
	is_int(sockets->at[i].port, port, "its port");
	is_str(sockets->at[i].address, address, "its address");
	is_int(sockets->at[i].v6, v6, "its family");
	is_int(sockets->at[i].pid, pid, "its owner");
}

static void test_proc(void)
{
	system_auto_sockets struct system_sockets sockets = { 0 };
	char line[512];

	system_sockets_parse_proc("", false, &sockets);
	system_sockets_parse_proc(HEAD, false, &sockets);
	is_int((long long)sockets.n, 0, "a head alone is nothing");
	/* The kernel prints addresses in the byte order of the machine. */
	snprintf(line, sizeof(line),
		 HEAD "   0: %08X:238C 00000000:0000 0A" TAIL "   1: 00000000:0016 00000000:0000 01" TAIL
		      "  12: 00000000:FFFF 00000000:0000 0A" TAIL,
		 htonl(INADDR_LOOPBACK));
	is_int(system_sockets_parse_proc(line, false, &sockets), 0, "parsed");
	is_int((long long)sockets.n, 2, "only those that listen");
	is_socket(&sockets, 0, 9100, "127.0.0.1", false, 0);
	is_int((long long)sockets.at[0].inode, 4711, "its inode");
	is_socket(&sockets, 1, 65535, "0.0.0.0", false, 0);
}

static void test_proc6(void)
{
	system_auto_sockets struct system_sockets sockets = { 0 };
	struct in6_addr address;
	char line[1024] = HEAD;

	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "::1", "::", "::ffff:127.0.0.1" };
		size_t len = strlen(line);

		inet_pton(AF_INET6, names[i], &address);
		snprintf(line + len, sizeof(line) - len, "   %d: %08X%08X%08X%08X:0050 " NONE ":0000 0A" TAIL, i,
			 address.s6_addr32[0], address.s6_addr32[1], address.s6_addr32[2], address.s6_addr32[3]);
	}
	is_int(system_sockets_parse_proc(line, true, &sockets), 0, "parsed");
	is_int((long long)sockets.n, 3, "all");
	is_socket(&sockets, 0, 80, "::1", true, 0);
	is_socket(&sockets, 1, 80, "::", true, 0);
	is_socket(&sockets, 2, 80, "::ffff:127.0.0.1", true, 0);
}

static void test_odd_proc(void)
{
	static const char *const odd[] = {
		"   0: 0100007F:238C 00000000:0000 0A\n" "   1: garbage" TAIL,
		"   0: 0100007:238C 00000000:0000 0A" TAIL,
		"   0: 0100007F 00000000:0000 0A" TAIL,
		"   0: " NONE ":0050 " NONE ":0000 0A" TAIL,
		"\n\n\n",
		"   0: 0100007F:238C",
	};
	system_auto_sockets struct system_sockets sockets = { 0 };

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		is_int(system_sockets_parse_proc(odd[i], false, &sockets), 0, "odd text %zu is no failure", i);
		is_int((long long)sockets.n, 0, "and no socket");
	}
}

static void test_ss(void)
{
	static const char output[] = "State  Recv-Q Send-Q Local Address:Port  Peer Address:PortProcess\n"
				     "LISTEN 0      1024         0.0.0.0:9100       0.0.0.0:*    "
				     "users:((\"lighttpd\",pid=24982,fd=3),(\"abxd\",pid=24973,fd=12))\n"
				     "LISTEN 0      128          0.0.0.0:2024       0.0.0.0:*\n"
				     "LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:* users:((\"evil,pid=1,\",pid=77,fd=1))\n"
				     "LISTEN 0 4096 [::1]:631 [::]:*\n"
				     "LISTEN 0 4096 *:80 *:* users:((\"x\",pid=5,fd=4))\n"
				     "LISTEN 0 4096 [fe80::1]%eth0:443 [::]:*\n"
				     "UNCONN 0 0 127.0.0.1:1 0.0.0.0:*\n"
				     "LISTEN 0 0 nonsense 0.0.0.0:*\n"
				     "LISTEN 0 0 127.0.0.1:99999 0.0.0.0:*\n"
				     "LISTEN 0 0 :80 0.0.0.0:*\n";
	system_auto_sockets struct system_sockets sockets = { 0 };

	is_int(system_sockets_parse_ss(output, &sockets), 0, "parsed");
	is_int((long long)sockets.n, 6, "those that listen");
	is_socket(&sockets, 0, 9100, "0.0.0.0", false, 24973);
	is_socket(&sockets, 1, 2024, "0.0.0.0", false, 0);
	is_socket(&sockets, 2, 53, "127.0.0.53%lo", false, 77);
	is_socket(&sockets, 3, 631, "::1", true, 0);
	is_socket(&sockets, 4, 80, "::", true, 5);
	is_socket(&sockets, 5, 443, "fe80::1%eth0", true, 0);
}

static void test_owner(void)
{
	system_auto_sockets struct system_sockets sockets = { 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char path[32], link[64] = "";
	struct system_socket ours = { .port = 1 };

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!ok(readlink(path, link, sizeof(link) - 1) > 0 && sscanf(link, "socket:[%lu]", &ours.inode) == 1,
		"a socket of our own"))
		return;
	sockets.at = malloc(2 * sizeof(ours));
	sockets.at[0] = ours;
	ours.inode = 1;
	sockets.at[1] = ours;
	sockets.n = sockets.alloc = 2;
	system_sockets_find_owners(&sockets);
	is_int(sockets.at[0].pid, getpid(), "is found to be ours");
	is_int(sockets.at[1].pid, 0, "one that nobody has is nobody's");
	close(fd);
}

int main(void)
{
	test_proc();
	test_proc6();
	test_odd_proc();
	test_ss();
	test_owner();
	return done_testing();
}
