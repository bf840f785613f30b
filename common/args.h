/* The argument checks that a row asks for. */
#ifndef ABX_ARGS_H
#define ABX_ARGS_H

#include "common/request.h"

/*
 * Make req->args from the body (POST), the query (GET and raw bodies), or the query over the body (DELETE), against the rows' specs. `body`: the parsed body, an object whose
 * reference is taken; NULL for GET. Failures are ABX_E_VALUE with the field's name in front, ABX_E_DUPLICATE_PARAMETER, ABX_E_VARIABLE.
 */
int abx_args_check(struct abx_request *req, json_t *body, struct abx_err *err);

/* The checks alone: `args` (an object) against a list of specs; defaults are filled in, nulls are taken out. */
int abx_args_check_list(json_t *args, const struct abx_arg *specs, size_t n, struct abx_err *err);

#endif
