/*
 * Whether the client of a request is still there, asked of the kernel.
 *
 * lighttpd tells a responder that a client has left by the end of the FastCGI connection, but before a byte of the answer it notices that only when it happened to
 * wait for the request: a request that is there at once when the connection is made goes unwatched. What has to end with its client without an answer that has
 * begun, a command above all, looks at the client's own connection besides, which is in the same network namespace.
 */
#ifndef ABX_PEER_H
#define ABX_PEER_H

#include <linux/inet_diag.h>
#include <stdbool.h>

struct abx_peer {
	int family;                 /* AF_INET or AF_INET6; 0: not known, nothing is ever asked */
	struct inet_diag_sockid id; /* the web server's end of the connection */
	bool seen;                  /* it was there once, so that its absence means something */
};

/* By the CGI variables REMOTE_ADDR, REMOTE_PORT, SERVER_ADDR and SERVER_PORT. Where they do not name a connection the client is not known. */
void abx_peer_init(struct abx_peer *peer, char *const *params);

/*
 * Whether the client has closed its connection, or its half of it. False as well where that cannot be found out: the kernel has no sock_diag, or the variables name
 * no connection of this machine, as behind a proxy that has its client's address written into them; then it is not asked again.
 */
bool abx_peer_has_left(struct abx_peer *peer);

#endif
