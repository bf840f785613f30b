/*
 * Counters of calls, on the board: how many of an identity's calls to an endpoint passed lately, and how many are running. All groups share them, and they
 * outlive every responder.
 *
 * A slot keeps when calls passed, so that a rate holds in every window, wherever it begins. Up to ABX_RATE_MARKS calls of a window are kept one by one. For
 * higher rates calls that came close together share a mark with the time of the last of them: never more than the rate pass, and a call may wait
 * longer than it must by no more than a 2048th of the window.
 */
#ifndef ABX_RATES_H
#define ABX_RATES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

#define ABX_RATE_SLOTS  4096
#define ABX_RATE_MARKS  4096
#define ABX_RATE_OWNERS 24 /* responders that have calls of one slot running: a generation or two of each group that serves the endpoint */

struct abx_rate_slot {
	unsigned char key[16]; /* which identity and endpoint */
	uint32_t round;        /* the last abx_rates_begin that it was asked for after */
	pthread_mutex_t lock;  /* robust: whoever dies with it leaves counts that are one too high at most */
	uint32_t first, n;     /* the ring of marks */
	uint64_t total;        /* calls that the marks stand for */
	struct {
		int32_t pid; /* 0: free */
		int32_t running;
	} owners[ABX_RATE_OWNERS];
};

/* Some calls and when the last of them passed: 48 bits of microseconds, 16 bits of calls. */
typedef uint64_t abx_rate_mark;

struct abx_rates {
	uint32_t n, round; /* slots that were ever taken; how many policies there were: abxd's */
	struct abx_rate_slot slots[ABX_RATE_SLOTS];
	abx_rate_mark marks[ABX_RATE_SLOTS][ABX_RATE_MARKS]; /* memory that was never written takes none */
};

/* A new policy is about to ask for its slots (abxd alone does this). */
void abx_rates_begin(struct abx_rates *rates);

/*
 * The slot of an identity and an endpoint, taken if there is none yet. Counts stay as they are when the limits change. When all are taken, one that this policy
 * has not asked for is given away. -1: there is none.
 */
int32_t abx_rates_slot(struct abx_rates *rates, const char *identity, const char *endpoint);

/* What a call must stay under; 0: no limit of that kind. */
struct abx_rate_limits {
	int64_t count, window_ms, max_concurrent;
};

enum abx_rate_verdict { ABX_RATE_PASSED, ABX_RATE_TOO_OFTEN, ABX_RATE_TOO_MANY };

/*
 * Let a call of the process `self` pass, or not. One that passed counts as running until abx_rates_leave. *ret_wait_ms, when it came too often: how long until
 * the next may pass.
 */
enum abx_rate_verdict abx_rates_enter(struct abx_rates *rates, int32_t slot, const struct abx_rate_limits *limits, pid_t self,
				      int64_t *ret_wait_ms);
void abx_rates_leave(struct abx_rates *rates, int32_t slot, pid_t self);

/* The process has died: its calls are running no longer. */
void abx_rates_forget(struct abx_rates *rates, pid_t pid);

/* abx_rates_enter at a given moment (microseconds), for tests. */
enum abx_rate_verdict abx_rates_enter_at(struct abx_rates *rates, int32_t slot, const struct abx_rate_limits *limits, pid_t self,
					 int64_t now_us, int64_t *ret_wait_ms);

#endif
