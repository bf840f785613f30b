/*
 * The daemon's descriptors: one epoll set. All is one thread, but for what ends process trees (end.c).
 */
#ifndef PTYD_LOOP_H
#define PTYD_LOOP_H

#include <stdint.h>

#include "common/err.h"

struct pty_source {
	int fd; /* -1: there is none */
	uint32_t events;
	void (*ready)(struct pty_source *source, uint32_t events);
};

int pty_loop_open(struct abx_err *err);

/* Wait for an event and serve it. */
void pty_loop_serve(void);

/* Watch source->fd for source->events. 0 or -1 with errno. */
int pty_loop_add(struct pty_source *source);

/* Watch it for other events from now on; 0: for nothing at all, not even its hang-up, which would be told without end. */
void pty_loop_change(struct pty_source *source, uint32_t events);

/* Watch it no more, and close it. */
void pty_loop_close(struct pty_source *source);

/* Call pty_tick (main.c) at this moment at the latest. */
void pty_loop_deadline(int64_t moment_ms);

/* All that waits for a time looks at it: returns the next moment, INT64_MAX for none. */
int64_t pty_tick(int64_t now_ms);

#endif
