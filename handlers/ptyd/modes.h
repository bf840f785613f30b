/*
 * What a terminal was switched to by output that is no longer replayed: a client that connects later would paint a full-screen program's output on the wrong screen, or send the
 * wrong codes for its keys. A small reader of escape sequences (ECMA-48, and the private modes of xterm) that also knows where one ends, so that a replay does not begin inside.
 */
#ifndef PTYD_MODES_H
#define PTYD_MODES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/strbuf.h"

enum pty_modes_state { PTY_PLAIN, PTY_ESCAPE, PTY_ESCAPE_MORE, PTY_CSI, PTY_STRING, PTY_STRING_ESCAPE };

/* Zero-initialise: a terminal as it is at first. */
struct pty_modes {
	uint32_t changed; /* bit per entry of the table in modes.c: it is not as at first */
	uint8_t state;    /* enum pty_modes_state */
	bool overlong;    /* the parameters do not fit: none of ours */
	uint8_t len;
	char params[32];
};

void pty_modes_feed(struct pty_modes *modes, const char *text, size_t len);

/* Whether what was fed ends between two sequences. */
static inline bool pty_modes_between(const struct pty_modes *modes)
{
	return modes->state == PTY_PLAIN;
}

/* Whether a full-screen program is on. */
bool pty_modes_alternate(const struct pty_modes *modes);

/* Append what puts a new terminal into this state. */
void pty_modes_write(const struct pty_modes *modes, struct abx_strbuf *out);

#endif
