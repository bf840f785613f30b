/*
 * Named commands: one table of all of them, of several kinds, which is frozen once the program has started.
 *
 * A kind (built-in, manifest, native, …) has a function that finds its commands and adds them, named in the list of loaders in registry.c, and a `run`.
 */
#ifndef ABX_COMMANDS_H
#define ABX_COMMANDS_H

#include "common/request.h"
#include "handlers/commands/handlers.h"

struct command;

struct command_arg {
	struct abx_arg spec;
	const char *description;
	const char *type; /* what it is called in GET /commands; NULL: as `003` names the type in spec */
};

/* What all commands of a sort have in common. */
struct command_kind {
	const char *name; /* "built-in", "manifest", …: for messages */
	/*
	 * Run it. Its arguments are in req->args: as the caller sent them, unchecked (built-ins: checked); req->rule and req->roots are those of commands_run, or of the
	 * endpoint that does the same. Sends the whole response, or fails as handlers do (req->failure for a failure of the command's own).
	 */
	int (*run)(struct abx_request *req, const struct command *command, struct abx_err *err);
	bool in_server; /* it runs in a process that the policy's `confine` does not reach: where that is asked for, the call is refused */
};

/* One command. Everything that it points to lives as long as the program. */
struct command {
	const struct command_kind *kind;
	const char *name, *description;
	const struct command_arg *args;
	size_t n_args;
	bool hidden;            /* left out of GET /commands; runs all the same */
	char *const *scopes;    /* NULL-terminated, all of them needed; or NULL */
	double timeout;         /* seconds; 0: none of its own */
	const char *endpoint;   /* built-ins: the endpoint that does the same, whose policy holds for the command too; else NULL */
	const char *const *cut; /* built-ins: members of the body that may be large, as in a row; NULL: req->body stays as it was sent */
	const char *source;     /* the file that it comes from, for messages; built-ins: NULL */
	void *data;             /* the kind's own */
};

/* ---- registry.c: what the program does before its first thread, and what may be read afterwards */

/* Load the commands of all kinds, and freeze the table. A mistake in what somebody wrote is ABX_E_VALUE, which stops the start of the server. */
int command_registry_load(const struct abx_service *service, struct abx_err *err);

/* Add one (copied; what it points to is borrowed) while the table is being loaded: a name that was defined before is ABX_E_VALUE, unless it is a built-in's. */
int command_registry_add(const struct command *command, struct abx_err *err);

/* Whether a command can have this name: ABX_E_VALUE, with a text that goes on from "name: ". */
int command_check_name(const char *name, struct abx_err *err);

size_t command_count(void);

/* By place in the list: built-ins, or what has replaced them, first, then by name. */
const struct command *command_at(size_t index);

/* The command of this name, or NULL. */
const struct command *command_find(const char *name);

/* ---- the kinds */

int command_load_builtins(const struct abx_service *service, struct abx_err *err);
int command_load_python(const struct abx_service *service, struct abx_err *err);

/* ---- run.c */

/*
 * Make the request one of the endpoint whose policy holds for the command, and ask whether the caller may use that, and has the command's scopes:
 * ABX_E_DISABLED or ABX_E_MISSING_SCOPE.
 */
int command_authorize(struct abx_request *req, const struct command *command, struct abx_err *err);

/* The seconds that a call may take: the command's own or commands_run's, and no more than the policy allows. */
double command_timeout(const struct abx_request *req, const struct command *command);

#endif
