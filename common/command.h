/* Commands of a request: what /shell and the command runshell share. */
#ifndef ABX_COMMAND_H
#define ABX_COMMAND_H

#include "common/confine.h"
#include "common/request.h"
#include "common/spawn.h"
#include "common/workdir.h"

/* A command of a request, ready to be started. */
struct abx_command {
	struct abx_path cwd;
	struct abx_env env;
	struct abx_spawn spawn; /* argv is borrowed, and client_fd the request's; without input and sink */
	char seconds[32];       /* spawn.timeout as a message names it */
	struct abx_confinement confinement; /* where spawn.confine points to it */
	struct abx_workdir temp;            /* its TMPDIR when its files are confined: the one place it has to itself */
	int *trees;                         /* of the confinement */
};

#define ABX_COMMAND_INIT { .cwd = ABX_PATH_INIT, .temp = ABX_WORKDIR_INIT }

/*
 * The directory to start in: the base directory, unless the argument "cwd" names one inside the allowed trees. One that is missing, no directory or outside is
 * ABX_E_PATH. The caller releases *ret_cwd.
 */
int abx_command_cwd(struct abx_request *req, struct abx_path *ret_cwd, struct abx_err *err);

/*
 * Check everything that a caller says of a command, before anything is started, and make it ready with the endpoint's limits: `argv` against the policy
 * (ABX_E_COMMAND), or where it is a shell's, `shell_text`, which is what that shell is given (NULL else); the request's arguments cwd (missing, no directory
 * or outside is ABX_E_PATH), env and timeout; and what the policy confines it to. Whatever starts commands for a caller goes through here. The caller releases *ret_command.
 */
int abx_command_prepare(struct abx_request *req, char *const *argv, const char *shell_text, struct abx_command *ret_command,
			struct abx_err *err);

/*
 * The same for a program that the server's owner has chosen, and not the caller: it is started in the base directory, with nothing from the request's arguments, and for
 * `seconds` at most. Where files are confined it may read the directory `program_fd`, an O_PATH descriptor.
 */
int abx_command_prepare_own(struct abx_request *req, char *const *argv, int program_fd, double seconds, struct abx_command *ret_command,
			    struct abx_err *err);
void abx_command_release(struct abx_command *command);
#define abx_auto_command __attribute__((cleanup(abx_command_release)))

/* Say why a command did not end by itself: ABX_E_TIMEOUT, ABX_E_GONE, or ABX_E_UNAVAILABLE when the server stops. Returns -1. */
int abx_command_cut_short(const struct abx_command *command, enum abx_spawn_end end, struct abx_err *err);

/*
 * Prepare a command and run it to its end. 0: it ended by itself, and the caller releases *ret_result. -1: as abx_command_prepare and abx_spawn_run, or what
 * abx_command_cut_short says; at a timeout the output so far goes into the error body.
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
