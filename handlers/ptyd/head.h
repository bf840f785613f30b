/*
 * The head of a WebSocket handshake (RFC 6455, section 4.2.1), read with an eye on credentials: of a header that was sent twice both are seen.
 */
#ifndef PTYD_HEAD_H
#define PTYD_HEAD_H

#include <stdbool.h>

#include "common/credentials.h"

/* Longest head: what lighttpd takes on the other port. */
#define PTY_HEAD_MAX ((size_t)32 << 10)

/* Room for the base64 of 16 bytes. */
#define PTY_KEY_SIZE 25

struct pty_head {
	const char *method, *path, *query; /* without the '?'; "" */
	const char *host, *forwarded_host, *origin; /* NULL: not there */
	struct abx_credential_text credentials;
	bool is_upgrade; /* it asks for a WebSocket */
	bool version_ok;
	char key[PTY_KEY_SIZE]; /* "": none that is right */
};

/* Read a whole head, up to and with its empty line, in place: *ret_head points into `text`. Released with pty_head_release. -1: ABX_E_VALUE, it is no HTTP. */
int pty_head_parse(char *text, size_t len, struct pty_head *ret_head, struct abx_err *err);
void pty_head_release(struct pty_head *head);

#endif
