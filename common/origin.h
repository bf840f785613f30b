/* Browsers: whose pages may call (contract, section 4 "Browsers"; the Fetch standard's CORS protocol). */
#ifndef ABX_ORIGIN_H
#define ABX_ORIGIN_H

#include "common/request.h"

/* Add the CORS headers where the request is of a page of a listed origin: to every answer, or such a page could not read why it was refused. */
void abx_origin_mark(struct abx_request *req);

/*
 * Look at the Origin header. In local mode one that is not listed is refused with ABX_E_ORIGIN, unless its host and port are those of Host or
 * X-Forwarded-Host. Without an Origin nothing happens.
 */
int abx_origin_check(struct abx_request *req, struct abx_err *err);

/* Whether a page of `origin` (NULL: no page) may call; `host` and `forwarded_host` are the request's headers or NULL. */
enum abx_origin { ABX_ORIGIN_UNLISTED, ABX_ORIGIN_LISTED, ABX_ORIGIN_REFUSED };
enum abx_origin abx_origin_judge(const struct abx_policy *policy, const char *origin, const char *host, const char *forwarded_host);

/* The words of a refusal: ABX_E_ORIGIN. Returns -1. */
int abx_origin_refuse(struct abx_err *err);

/* Whether the request is a preflight of a listed origin; then what it may do was added to the headers, and the answer is 204. */
bool abx_origin_preflight(struct abx_request *req);

#endif
