/*
 * The gate: the only way to a handler.
 *
 * The checks come in the order of the contract's section 3: route → origin and credentials → enabled → scopes → rate → size → body → arguments → the handler,
 * whose doors ask the policy about values. Every failure ends in one place that writes the error body.
 */
#ifndef ABX_GATE_H
#define ABX_GATE_H

#include "common/request.h"

/* Serve one request from its transport to its last byte, and log it. */
void abx_gate_serve(const struct abx_service *service, struct abx_io *io);

/*
 * The checks and the handler of one request that was set up: 0, or -1 with the failure to be told. abx_gate_serve calls it, and core when
 * it answers in the web server's place.
 */
int abx_gate_pass(struct abx_request *req, struct abx_err *err);

/*
 * Read the body, and take and check the arguments. The gate does it itself but where the row says ABX_EP_RAW_ARGS: there the handler does, after abx_gate_admit, since it
 * knows which members may be large (`cut`, as in a row; NULL: none, and then req->body stays as the caller sent it).
 */
int abx_gate_arguments(struct abx_request *req, const char *const *cut, struct abx_err *err);

/*
 * Whether req->endpoint is enabled for the calling identity, and its scopes are held: the built-in commands ask it for the endpoint that does the same.
 * -1: ABX_E_DISABLED or ABX_E_MISSING_SCOPE.
 */
int abx_gate_authorize(struct abx_request *req, struct abx_err *err);

/*
 * Count the call against the rate and the number of calls that may run, of req->endpoint and the calling identity: ABX_E_RATE or ABX_E_CONCURRENCY. After
 * abx_gate_authorize; the handlers of ABX_EP_RAW_ARGS ask themselves, a built-in command once more for the endpoint that does the same.
 */
int abx_gate_admit(struct abx_request *req, struct abx_err *err);

/*
 * Answer with an error while the handler still runs, in another thread that touches neither request nor response any more, and let go of the connection. Once the
 * handler has returned nothing more is done for the call but to free it.
 */
void abx_gate_conclude(struct abx_request *req, const struct abx_err *err);

/* The call has ended: it counts as running no longer. */
void abx_gate_leave(struct abx_request *req);

#endif
