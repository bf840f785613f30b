/* A bar on standard error for a transfer that takes long: nothing for the first two seconds, nor where standard error is no terminal. */
#ifndef ABXCTL_PROGRESS_H
#define ABXCTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	int64_t begin_ms, next_ms; /* 0: not begun */
	bool shown;
};

#define PROGRESS_INIT { .begin_ms = 0 }

/* `done` of `total` bytes have gone; total 0: nobody knows how many there are. */
void progress_show(struct progress *progress, int64_t done, int64_t total);

/* Take the bar away. */
void progress_end(struct progress *progress);

#endif
