/* From method and path to a row. */
#ifndef ABX_ROUTE_H
#define ABX_ROUTE_H

#include "common/request.h"

/*
 * Find the row of a request among the rows of the service's group (core: among all) and set req->endpoint and the path parameters.
 * A literal segment beats a parameter; one trailing slash is dropped; `%00` and a decoded '/' match no parameter.
 * Failures: ABX_E_ROUTE; ABX_E_METHOD, with the sorted list for the Allow header in *ret_allow (at least 32 bytes).
 */
int abx_route(struct abx_request *req, char ret_allow[32], struct abx_err *err);

#endif
