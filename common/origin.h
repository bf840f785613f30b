/* Browsers: whose pages may call (contract, section 4 "Browsers"; the Fetch standard's CORS protocol). */
#ifndef ABX_ORIGIN_H
#define ABX_ORIGIN_H

#include "common/request.h"

/*
 * Look at the Origin header. A listed origin gets the CORS headers. In local mode another one is refused with ABX_E_ORIGIN, unless its host and
 * port are those of Host or X-Forwarded-Host. Without an Origin nothing happens.
 */
int abx_origin_check(struct abx_request *req, struct abx_err *err);

/* Whether the request is a preflight of a listed origin; then its headers were added and the answer is 204. */
bool abx_origin_preflight(struct abx_request *req);

#endif
