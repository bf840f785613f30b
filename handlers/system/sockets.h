/* Listening TCP sockets, as the kernel's files and as ss(8) tell them. The parsers take text that they do not trust. */
#ifndef ABX_SYSTEM_SOCKETS_H
#define ABX_SYSTEM_SOCKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

struct system_socket {
	int port;
	bool v6;
	char address[INET6_ADDRSTRLEN + 20]; /* a scope may follow */
	unsigned long inode;                 /* 0: not known */
	int pid;                             /* 0: not known */
};

struct system_sockets {
	struct system_socket *at;
	size_t n, alloc;
};

void system_sockets_release(struct system_sockets *sockets);
#define system_auto_sockets __attribute__((cleanup(system_sockets_release)))

/*
 * Add the sockets in listen state of the text of /proc/net/tcp, or of /proc/net/tcp6 with `v6`. Other lines are
 * skipped. -1: out of memory.
 */
int system_sockets_parse_proc(const char *text, bool v6, struct system_sockets *sockets);

/* Add the sockets of the output of `ss -tlnp`. -1: out of memory. */
int system_sockets_parse_ss(const char *text, struct system_sockets *sockets);

/* Fill in whose they are, where we can see that: the lowest pid of those that have the socket open. */
void system_sockets_find_owners(struct system_sockets *sockets);

#endif
