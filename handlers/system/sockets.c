#include "handlers/system/sockets.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/auto.h"

#define STATE_LISTEN 0x0a

void system_sockets_release(struct system_sockets *sockets)
{
	free(sockets->at);
	*sockets = (struct system_sockets){ 0 };
}

static int sockets_add(struct system_sockets *sockets, const struct system_socket *socket)
{
	if (sockets->n == sockets->alloc) {
		size_t alloc = sockets->alloc ? sockets->alloc * 2 : 16;
		struct system_socket *grown = realloc(sockets->at, alloc * sizeof(*grown));

		if (!grown)
			return -1;
		sockets->at = grown;
		sockets->alloc = alloc;
	}
	sockets->at[sockets->n++] = *socket;
	return 0;
}

/* Length of the line at `text`, and of what ends it. */
static size_t line_length(const char *text)
{
	size_t len = strcspn(text, "\n");

	return len + (text[len] == '\n');
}

/* The kernel prints an address as numbers of its own byte order, eight hex digits each. */
static bool parse_address(const char *hex, bool v6, struct system_socket *socket)
{
	size_t words = v6 ? 4 : 1;
	uint32_t address[4];

	if (strlen(hex) != words * 8)
		return false;
	for (size_t i = 0; i < words; i++)
		if (sscanf(hex + i * 8, "%8" SCNx32, &address[i]) != 1)
			return false;
	return inet_ntop(v6 ? AF_INET6 : AF_INET, address, socket->address, sizeof(socket->address)) != NULL;
}

/* "   0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 …" */
static bool parse_proc_line(const char *line, bool v6, struct system_socket *ret_socket)
{
	struct system_socket socket = { .v6 = v6 };
	char local[33];
	unsigned port, state;

	if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%4x %*32[0-9A-Fa-f]:%*4x %2x %*8x:%*8x %*2x:%*8x %*8x %*u %*u %lu",
		   local, &port, &state, &socket.inode) != 4)
		return false;
	if (state != STATE_LISTEN || !parse_address(local, v6, &socket))
		return false;
	socket.port = (int)port;
	*ret_socket = socket;
	return true;
}

int system_sockets_parse_proc(const char *text, bool v6, struct system_sockets *sockets)
{
	struct system_socket socket;

	for (; *text; text += line_length(text)) {
		char line[256];
		size_t len = strcspn(text, "\n");

		/* A line by itself: a scan must not go on in the next one. */
		if (len >= sizeof(line))
			continue;
		memcpy(line, text, len);
		line[len] = '\0';
		if (parse_proc_line(line, v6, &socket) && sockets_add(sockets, &socket) < 0)
			return -1;
	}
	return 0;
}

/* "[::1]:80", "[fe80::1]%eth0:80", "*:80", "127.0.0.1%lo:80": the address without brackets, and the port. */
static bool parse_ss_local(const char *local, struct system_socket *socket)
{
	const char *colon = strrchr(local, ':');
	size_t len = colon ? (size_t)(colon - local) : 0, n = 0;
	char *end;
	long port;

	if (len == 0 || !isdigit((unsigned char)colon[1]))
		return false;
	port = strtol(colon + 1, &end, 10);
	if (*end || port > 65535 || len >= sizeof(socket->address))
		return false;
	for (size_t i = 0; i < len; i++)
		if (local[i] != '[' && local[i] != ']')
			socket->address[n++] = local[i];
	socket->address[n] = '\0';
	/* A star is a socket for both families that is bound to no address. */
	if (strcmp(socket->address, "*") == 0)
		memcpy(socket->address, "::", 3);
	socket->v6 = strchr(socket->address, ':') != NULL;
	socket->port = (int)port;
	return true;
}

/* 'LISTEN 0 128 127.0.0.1:80 0.0.0.0:* users:(("nginx",pid=12,fd=6),("nginx",pid=11,fd=6))' */
static bool parse_ss_line(const char *line, struct system_socket *ret_socket)
{
	struct system_socket socket = { 0 };
	const char *users, *pid;
	char local[128];

	if (sscanf(line, "LISTEN %*u %*u %127s", local) != 1 || !parse_ss_local(local, &socket))
		return false;
	/* A program's name may hold anything but a quote, so a pid is what follows one. */
	users = strstr(line, "users:((\"");
	for (pid = users ? strstr(users, "\",pid=") : NULL; pid; pid = strstr(pid + 1, "\",pid=")) {
		int number = atoi(pid + 6);

		if (number > 0 && (!socket.pid || number < socket.pid))
			socket.pid = number;
	}
	*ret_socket = socket;
	return true;
}

int system_sockets_parse_ss(const char *text, struct system_sockets *sockets)
{
	struct system_socket socket;

	for (; *text; text += line_length(text)) {
		abx_auto_free char *line = strndup(text, strcspn(text, "\n"));

		if (!line || (parse_ss_line(line, &socket) && sockets_add(sockets, &socket) < 0))
			return -1;
	}
	return 0;
}

/* Note `pid` at the sockets that it has open. */
static void look_at_process(int pid, struct system_sockets *sockets)
{
	char path[32], link[64];
	struct dirent *entry;
	unsigned long inode;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	abx_auto_dir DIR *fds = opendir(path);
	while (fds && (entry = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (sscanf(link, "socket:[%lu]", &inode) != 1)
			continue;
		for (size_t i = 0; i < sockets->n; i++) {
			struct system_socket *socket = &sockets->at[i];

			if (socket->inode == inode && (!socket->pid || pid < socket->pid))
				socket->pid = pid;
		}
	}
}

void system_sockets_find_owners(struct system_sockets *sockets)
{
	abx_auto_dir DIR *proc = sockets->n ? opendir("/proc") : NULL;
	struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			look_at_process(atoi(entry->d_name), sockets);
}
