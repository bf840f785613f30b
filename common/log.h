/*
 * The log: one line per event on standard error, text or JSON (ABX_LOG_FORMAT).
 *
 * A line is one write(2) of at most 4 KiB. Where standard error is a pipe, socket or terminal that
 * would block, the line is dropped and counted instead, and the count is told with the next line
 * that goes out: a reader that stops reading never stops the server.
 * Nothing that is logged here may hold a token, a header or a body.
 */
#ifndef ABX_LOG_H
#define ABX_LOG_H

#include <stdbool.h>

#include "common/auto.h"

enum abx_log_level { ABX_LOG_DEBUG, ABX_LOG_INFO, ABX_LOG_WARNING, ABX_LOG_ERROR };

/* Name the program and set level and format. Before this call: level info, text, "abx". `program` is borrowed. */
void abx_log_init(const char *program, enum abx_log_level level, bool json);

/* Whether a line of this level would be written: asked before a costly line is made. */
bool abx_log_wants(enum abx_log_level level);

/* Parse "debug", "info", "warning" or "error". Returns 0, or -1 and leaves *ret_level alone. */
int abx_log_level_parse(const char *name, enum abx_log_level *ret_level);

/* Write one line. The text may hold any bytes: control characters and bytes that are not UTF-8 are replaced. */
void abx_log(enum abx_log_level level, const char *fmt, ...) ABX_PRINTF(2, 3);

/* One finished HTTP call. All strings are borrowed; `identity`, `endpoint` and `error` may be NULL. */
struct abx_log_call {
	const char *request_id, *identity, *remote, *endpoint, *method, *path, *error;
	int status;
	double duration_ms;
};

/* Write the line of a finished call: error from status 500, debug for a successful /health, else info. */
void abx_log_call(const struct abx_log_call *call);

#endif
