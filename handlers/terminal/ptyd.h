/* Asking the pty daemon, which owns the sessions (handlers/ptyd/control.h is the other end). */
#ifndef ABX_TERMINAL_PTYD_H
#define ABX_TERMINAL_PTYD_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"

/*
 * Send `request`, with `n_fds` descriptors, at most ABX_PTY_FDS - 1, and wait for the answer: a new reference, or NULL. ABX_E_UNAVAILABLE: the daemon is not
 * there, or has died meanwhile.
 */
json_t *ptyd_ask(const json_t *request, const int *fds, size_t n_fds, struct abx_err *err);

#endif
