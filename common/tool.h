/* Programs that the server itself asks something for a request: python3, pip, npm, ss, git. */
#ifndef ABX_TOOL_H
#define ABX_TOOL_H

#include "common/request.h"
#include "common/spawn.h"

struct abx_tool {
	char *const *argv;
	const struct abx_env *env;
	int cwd_fd;     /* -1: the root directory, where callers cannot have put files that the program would load */
	double timeout; /* seconds */
	size_t max_output;
};

/*
 * Run it to its end; the output is kept byte for byte. 0: it ended by itself, whatever its exit code, and the caller
 * releases *ret_result. -1: ABX_E_ERRNO with ENOENT when there is no such program, ABX_E_TIMEOUT, ABX_E_GONE when the
 * client left, ABX_E_UNAVAILABLE when the server stops, or what abx_spawn_run says. /
 */
int abx_tool_run(const struct abx_request *req, const struct abx_tool *tool, struct abx_spawn_result *ret_result,
		 struct abx_err *err);

/* Whether there is such a program for it to run, from the root directory. */
bool abx_tool_is_installed(const char *name);

/* Whether `err` says that a program is not installed. */
bool abx_tool_is_missing(const struct abx_err *err);

/*
 * The last line of what a failed program wrote to its standard error, without what is blank at its ends: for a
 * message. Appends "no message" if there is none.
 */
void abx_tool_last_line(const struct abx_spawn_result *result, struct abx_strbuf *out);

#endif
