/*
 * Requests of abx-terminal. Each comes as one message on ABX_FD_PTY that carries a connected socket, and for "create" the directory to start in: on that socket the request
 * follows as one JSON line, and the answer is one JSON line.
 */
#ifndef PTYD_CONTROL_H
#define PTYD_CONTROL_H

#include "handlers/ptyd/session.h"

/* Longest request: an environment of this size does not fit into an execve(2) either. */
#define PTY_REQUEST_MAX ((size_t)4 << 20)

/* Receive one byte, and up to `max` descriptors that came with it: *ret_n of them go to `fds`. Returns what recvmsg(2) does. */
ssize_t pty_receive(int socket, int *fds, size_t max, size_t *ret_n);

int pty_control_open(struct abx_err *err);

#endif
