/* Asking the pty daemon, which owns the sessions (handlers/ptyd/control.h is the other end). */
#ifndef ABX_TERMINAL_PTYD_H
#define ABX_TERMINAL_PTYD_H

#include <jansson.h>

#include "common/err.h"

/*
 * Send `request`, with the directory `cwd_fd` unless it is -1, and wait for the answer: a new reference, or NULL. ABX_E_UNAVAILABLE: the daemon is not there, or has died
 * meanwhile.
 */
json_t *ptyd_ask(const json_t *request, int cwd_fd, struct abx_err *err);

#endif
