/* The parts of abx-exec. */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* What is to be given up: see struct abx_confinement. */
struct exec_options {
	uint64_t trees, readable, filesystem, no_network, memory, processes, cpu;
};

/* Resource limits. */
int exec_limit(const struct exec_options *options, struct abx_err *err);

/* Go to a network namespace with nothing in it but a loopback of its own. *ret_done false: that is not permitted. */
int exec_leave_network(bool *ret_done, struct abx_err *err);

/*
 * Have a /proc in which only the processes show that are confined with us, once Landlock is in force. Where mounting is not permitted it stays the
 * system's, and Landlock hides what is inside the others: environment, memory, descriptors, directories.
 */
int exec_own_proc(struct abx_err *err);

/* Keep those of root's powers that concern its own files and processes, and give the others up for good. */
int exec_drop_capabilities(struct abx_err *err);

#endif
