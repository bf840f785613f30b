/* Commands of a request: what /shell and the command runshell share. */
#ifndef ABX_COMMAND_H
#define ABX_COMMAND_H

#include "common/request.h"
#include "common/spawn.h"

/* A command that may be run: where, with which environment, for how long. */
struct abx_command {
	struct abx_path cwd;
	struct abx_env env;
	double timeout;   /* seconds; 0: none */
	char seconds[32]; /* the same for a message */
};

#define ABX_COMMAND_INIT { .cwd = ABX_PATH_INIT }

/*
 * Check everything that a caller says of a command, before anything is started: `argv` against the policy (ABX_E_COMMAND), or where it is a shell's, `shell_text`,
 * which is what that shell is given (NULL else); the request's arguments cwd (missing, no directory or outside is ABX_E_PATH), env and timeout. Whatever starts
 * commands for a caller goes through here.
 */
int abx_command_prepare(struct abx_request *req, char *const *argv, const char *shell_text, struct abx_command *ret_command,
			struct abx_err *err);
void abx_command_release(struct abx_command *command);
#define abx_auto_command __attribute__((cleanup(abx_command_release)))

/*
 * Prepare and run a command with the endpoint's limits, to its end. 0: it ended by itself, and the caller releases *ret_result. -1: it could not start,
 * ABX_E_TIMEOUT (the output so far goes into the error body), ABX_E_GONE when the client left, ABX_E_UNAVAILABLE when the server stops.
 */
int abx_command_run(struct abx_request *req, char *const *argv, const char *shell_text, struct abx_spawn_result *ret_result,
		    struct abx_err *err);

/* The same with `len` bytes of standard input. */
int abx_command_run_input(struct abx_request *req, char *const *argv, const char *shell_text, const char *input, size_t len,
			  struct abx_spawn_result *ret_result, struct abx_err *err);

/* {"stdout", "stderr", "exit_code"} and, where output was dropped, "truncated". */
void abx_command_write(struct abx_json_writer *jw, const struct abx_spawn_result *result);

/* The same without the braces. */
void abx_command_write_members(struct abx_json_writer *jw, const struct abx_spawn_result *result);

#endif
