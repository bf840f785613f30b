/*
 * Calls that may never return: they run in the thread that serves the request, and one more thread watches their time. When it is over that one answers in their place, and
 * the thread is left behind until the call returns.
 */
#ifndef ABX_COMMANDS_WATCH_H
#define ABX_COMMANDS_WATCH_H

#include <stdatomic.h>

#include "handlers/commands/commands.h"

/* So many threads may be left behind: by one command, and by all. */
#define WATCH_LOST_COMMAND 16
#define WATCH_LOST_ALL     128

struct watch {
	struct watch *prev, *next;
	struct abx_request *req;
	const struct command *command;
	atomic_uint *lost; /* of the command */
	double seconds;
	int64_t deadline_us;
	atomic_int state; /* enum watch_state, written with the lock held */
};

enum watch_state { WATCH_RUNS, WATCH_OVER, WATCH_ANSWERED };

/* Begin a call of watch->command for watch->req, of watch->seconds; `lost` counts the threads of the command. -1: ABX_E_TABLE_FULL, too many are left behind. */
int watch_begin(struct watch *watch, struct abx_err *err);

/* The call has returned. true: it was answered meanwhile, and the request is not to be touched any more. */
bool watch_end(struct watch *watch);

#endif
