/*
 * The audit file: a JSON object a line for each call that was denied, or for every call. It holds no body, no query and no header. Each responder appends with
 * one write(2) a line, so that lines of several never mix.
 */
#ifndef ABX_AUDIT_H
#define ABX_AUDIT_H

#include <stdbool.h>

#include "common/err.h"
#include "common/log.h"

struct abx_audit;

/* Open the file, which is made (mode 0600) if it is missing. `all`: every call is written. Returns NULL when it cannot be opened. */
struct abx_audit *abx_audit_open(const char *path, bool all, struct abx_err *err);
void abx_audit_close(struct abx_audit *audit);

/* Write the line of a finished call, if it is one that is wanted. `err`: its failure, or an empty one. */
void abx_audit_call(struct abx_audit *audit, const struct abx_log_call *call, const struct abx_err *err);

#endif
