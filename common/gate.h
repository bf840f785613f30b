/*
 * The gate: the only way to a handler.
 *
 * The checks come in the order of the contract's section 3: route → origin and credentials → enabled → scopes → size → body → arguments → the handler,
 * whose doors ask the policy about values. Every failure ends in one place that writes the error body.
 */
#ifndef ABX_GATE_H
#define ABX_GATE_H

#include "common/request.h"

/* Serve one request from its transport to its last byte, and log it. */
void abx_gate_serve(const struct abx_service *service, struct abx_io *io);

/* The same for a request that was set up by the caller: core answers for the web server with it. */
void abx_gate_run(struct abx_request *req);

/* Write an error body for `err` and remember it for the log. */
void abx_gate_fail(struct abx_request *req, const struct abx_err *err);

#endif
