#include <string.h>

#include "common/gate.h"
#include "handlers/commands/commands.h"

int command_authorize(struct abx_request *req, const struct command *command, struct abx_err *err)
{
	if (command->endpoint) {
		req->endpoint = abx_endpoint_find(command->endpoint);
		return abx_gate_authorize(req, err);
	}
	if (!command->scopes || !req->identity || abx_policy_scopes_allow(req->identity->scopes, command->scopes))
		return 0;
	return abx_err_rule(err, ABX_E_MISSING_SCOPE, "default:scopes", "Command '%s' needs a scope that '%s' does not have", command->name,
			    req->identity->id);
}

double command_timeout(const struct abx_request *req, const struct command *command)
{
	double seconds = command->timeout > 0 ? command->timeout : (double)req->rule->limits.timeout_seconds;
	int64_t most = req->rule->max_timeout;

	return most && seconds > (double)most ? (double)most : seconds;
}

/* The rule of the endpoint that does the same, as far as commands_run's own limits do not say less. */
static struct abx_rule narrow(const struct abx_rule *rule, const struct abx_rule *outer)
{
	struct abx_rule narrowed = *rule;

	if (outer->given & ABX_KEY_TIMEOUT && (!rule->max_timeout || rule->max_timeout > outer->max_timeout))
		narrowed.max_timeout = outer->max_timeout;
	if (outer->given & ABX_KEY_MAX_OUTPUT && rule->limits.max_output_bytes > outer->limits.max_output_bytes)
		narrowed.limits.max_output_bytes = outer->limits.max_output_bytes;
	return narrowed;
}

/* What a policy asks to be confined by the kernel, and cannot be: better not to run at all. */
static int refuse_unconfined(const struct abx_request *req, const struct command *command, struct abx_err *err)
{
	return abx_err_rule(err, ABX_E_FORBIDDEN, req->rule->values_rule,
			    "The policy confines what commands start, and '%s', a %s command, starts nothing that could be confined", command->name,
			    command->kind->name);
}

/* With what commands_run and its own endpoint say of it. */
static int run(struct abx_request *req, const struct command *command, const struct abx_rule *outer, struct abx_err *err)
{
	const struct abx_rule *own = req->rule;
	struct abx_rule narrowed;
	int result;

	if (command->kind->in_server && own->confine)
		return refuse_unconfined(req, command, err);
	if (command->endpoint) {
		narrowed = narrow(own, outer);
		req->rule = &narrowed;
	}
	result = command->kind->run(req, command, err);
	req->rule = own;
	return result;
}

/* Before the body is looked at: whether the caller may use the command, and how often. */
static int admit(struct abx_request *req, const struct command *command, struct abx_err *err)
{
	const struct abx_endpoint *self = req->endpoint;
	const struct abx_rule *outer = req->rule;
	const struct abx_roots *roots = req->roots;
	bool own = command && command->endpoint;

	if (command && command_authorize(req, command, err) < 0)
		return -1;
	req->endpoint = self;
	req->rule = outer;
	req->roots = roots;
	if (abx_gate_admit(req, err) < 0)
		return -1;
	return own && (command_authorize(req, command, err) < 0 || abx_gate_admit(req, err) < 0) ? -1 : 0;
}

int h_commands_run(struct abx_request *req, struct abx_err *err)
{
	const char *name = abx_request_param(req, "name");
	const struct command *command = command_find(name);
	const struct abx_endpoint *self = req->endpoint, *own;
	const struct abx_rule *outer = req->rule;
	int result;

	if (admit(req, command, err) < 0)
		return -1;
	/* The body is one of a named command, whatever the endpoint that does the same takes. */
	own = req->endpoint;
	req->endpoint = self;
	result = abx_gate_arguments(req, command ? command->cut : NULL, err);
	req->endpoint = own;
	if (result < 0)
		return -1;
	if (!command)
		return abx_err_set(err, ABX_E_NO_COMMAND, "Unknown command: %s", name);
	return run(req, command, outer, err);
}
