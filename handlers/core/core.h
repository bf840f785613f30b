/* What the files of core share. */
#ifndef ABX_CORE_H
#define ABX_CORE_H

#include "common/request.h"
#include "handlers/core/handlers.h"

/* What the calling identity may do with one endpoint. */
struct core_verdict {
	bool enabled, allowed;
	const char *code; /* endpoint_disabled or missing_scope; NULL when allowed */
	char rule[ABX_RULE_SIZE]; /* "" when allowed */
};

/* Decide for the caller, the groups that are mounted in lighttpd.conf included. */
void core_judge(const struct abx_request *req, const struct abx_endpoint *endpoint, struct core_verdict *ret_verdict);

/* Answer in the web server's place (abx_service.server_error). */
int core_server_error(struct abx_request *req, int status, struct abx_err *err);

/*
 * Pass the request on to the group's responder as a POST without a body, and its answer back as it comes. -1: the responder could not be
 * reached, or broke off before its answer began.
 */
int core_relay(struct abx_request *req, enum abx_group group, struct abx_err *err);

#endif
