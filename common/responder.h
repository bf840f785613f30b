/*
 * The main loop of a responder: what is left of a program is its name, its group and its init.
 */
#ifndef ABX_RESPONDER_H
#define ABX_RESPONDER_H

#include "common/request.h"

/* The descriptors 0, 3, 4 and 5 come from abxd (enum abx_supervised_fd). */
struct abx_program {
	const char *name; /* "abx-core" */
	enum abx_group group;
	unsigned max_threads; /* the pool starts small and grows while all threads are busy: 16 where handlers never block, 256 where they do */
	unsigned cage;        /* enum abx_cage_flags */
	size_t stack_size;    /* of a thread; 0: what handlers need */
	/*
	 * Called before the cage is entered and before the first thread; may be NULL. With ABX_E_VALUE the program exits with EX_CONFIG: something that its owner
	 * wrote is wrong. abxd tells the message, and stops with that status if it is starting.
	 */
	int (*init)(struct abx_service *service, struct abx_err *err);
};

/*
 * So many more of the threads that serve are left behind in calls that were answered without them (negative: have come back). A responder that drains does not wait for
 * them.
 */
void abx_responder_lose_threads(int n);

/*
 * Run until told to stop; the return value is main's. SIGTERM: accept no more, finish what runs, exit (a new generation has taken over). SIGINT: the same, and
 * running children are killed and streams ended. When abxd is gone the responder ends at once. `--list-endpoints` prints the group's rows as JSON lines.
 */
int abx_responder_main(int argc, char **argv, const struct abx_program *program);

/* Ask abxd for a new generation of this responder, once: the cage that it is in does not fit what there is any more. */
void abx_responder_outlived(void);

#endif
