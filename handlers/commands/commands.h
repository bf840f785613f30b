/* Named commands: the registry and the built-in ones. */
#ifndef ABX_COMMANDS_H
#define ABX_COMMANDS_H

#include "common/request.h"
#include "handlers/commands/handlers.h"

struct command_arg {
	struct abx_arg spec;
	const char *description;
};

/* One command. `run` gets checked arguments in req->args and sends the whole response. */
struct command {
	const char *name, *description;
	const struct command_arg *args;
	size_t n_args;
	const char *endpoint; /* the endpoint that does the same, whose policy holds for the command too */
	int (*run)(struct abx_request *req, struct abx_err *err);
};

/* The built-in commands, by name. */
extern const struct command command_builtins[];
extern const size_t command_n_builtins;

/* The command of this name, or NULL. */
const struct command *command_find(const char *name);

#endif
