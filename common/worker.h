/*
 * How abx-commands and the worker of a template's own code (commands.py) speak: the protocol's one description. The other end is the Python package.
 *
 * Descriptors. CALLS is a pair of SOCK_SEQPACKET sockets: abx-commands has the one end (ABX_FD_CALLS), every worker the other, and abxd holds both open all the
 * time, so that a call which no worker has taken waits there while one is being started. CONTROL is a stream socket between abxd and one worker. A worker that
 * abxd has started finds the numbers of its ends in the variable ABX_WORKER_FDS, "<calls>,<control>".
 *
 * CONTROL carries lines. The worker writes its table (policy/code.h) and a line feed. When that is byte for byte the table that the server began with, abxd answers
 * {"accept": true, "secrets": ["CI_TOKEN", …], "invocation": "…"}: `secrets` are variables that held tokens, which the worker takes out of its environment,
 * and `invocation` is what it sets INVOCATION_ID to for the processes that it starts, so that they can be found when it dies. The line comes again when the policy was
 * read again. Another table ends the worker. The end of the stream is abxd's end: the worker exits.
 *
 * A call. abx-commands makes a pair of stream sockets and sends one message on CALLS, the byte 'C', which carries one of the two. A thread of the worker receives it,
 * and serves call after call that comes on it until it is closed: a pair outlives a call that was answered to the end. Both ways the stream consists of frames: the length of the payload in 4 bytes, little endian, a byte that tells the kind, 3 bytes of zero, the payload.
 *
 *   to the worker     Q  JSON: {"kind": "command", "name", "request_id", "identity": {"id", "scopes"}} or
 *                        {"kind": "route", "id", "method", "path", "path_params": {}, "query": [[name, value], …], "headers": [[name, value], …], "remote",
 *                        "request_id", "identity": null or {…}}
 *                     B  exactly one: the body as the caller sent it, checked to be a JSON object or empty
 *   from the worker   F  JSON: {"status", "error", "type"[, "code"]}: it failed
 *                     R  a command's result: the text of a JSON value, of any length
 *                     H  JSON, a route's head: {"status", "headers": [[name, value], …], "stream": bool, "length": number or null}
 *                     D  a piece of a route's body; of a stream, one event
 *                     Z  empty: the end of a route's body
 *
 * R or F; for a route H, D …, Z, or F in the place of H. The worker reads all of a call before it begins with it. A stream that it closes with something unread
 * (ECONNRESET) carries a call that was not begun: it is sent again. One that closes without an answer and with nothing unread is the worker's death or a fault of it. When the caller leaves, or the time is up, abx-commands closes its end.
 */
#ifndef ABX_WORKER_H
#define ABX_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ABX_WORKER_FDS "ABX_WORKER_FDS"

#define ABX_WORKER_HEADER 8

/* The longest payload that is taken apart; R and D are passed on as they come, and can be longer. */
#define ABX_WORKER_TEXT_MAX ((uint32_t)1 << 20)

/* Write a frame's header. */
void abx_worker_header(char kind, uint32_t len, unsigned char ret_header[ABX_WORKER_HEADER]);

struct abx_worker_frame {
	char kind;
	uint32_t len;
};

/* Read a frame's header as it comes from the worker. -1: no worker sends that. */
int abx_worker_parse(const unsigned char header[ABX_WORKER_HEADER], struct abx_worker_frame *ret_frame);

#endif
