/* Commands of a request: what /shell and the command runshell share. */
#ifndef ABX_COMMAND_H
#define ABX_COMMAND_H

#include "common/request.h"
#include "common/spawn.h"

/*
 * The directory to start in: the base directory, unless the argument "cwd" names one inside the allowed trees. One that is missing, no directory or outside is
 * ABX_E_PATH. The caller releases *ret_cwd.
 */
int abx_command_cwd(struct abx_request *req, struct abx_path *ret_cwd, struct abx_err *err);

/*
 * Run `argv` with the request's arguments cwd, env and timeout and the endpoint's limits, to its end. 0: it ended by itself, and the caller releases
 * *ret_result. -1: it could not start (a cwd that is missing, no directory or outside is ABX_E_PATH), ABX_E_TIMEOUT (the output so far goes into the error
 * body), ABX_E_GONE when the client left, ABX_E_UNAVAILABLE when the server stops.
 */
int abx_command_run(struct abx_request *req, char *const *argv, struct abx_spawn_result *ret_result,
		    struct abx_err *err);

/* The same with `len` bytes of standard input. */
int abx_command_run_input(struct abx_request *req, char *const *argv, const char *input, size_t len, struct abx_spawn_result *ret_result,
			  struct abx_err *err);

/* {"stdout", "stderr", "exit_code"} and, where output was dropped, "truncated". */
void abx_command_write(struct abx_json_writer *jw, const struct abx_spawn_result *result);

/* The same without the braces. */
void abx_command_write_members(struct abx_json_writer *jw, const struct abx_spawn_result *result);

#endif
