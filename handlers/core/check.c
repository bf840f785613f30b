#include <string.h>

#include "common/shlex.h"
#include "common/variables.h"
#include "handlers/core/core.h"
#include "policy/evaluate.h"

/* The answer to /capabilities/check: not allowed when `code` is set. */
static int answer(struct abx_request *req, const char *code, const char *reason, const char *rule, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);

	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "endpoint", abx_arg_string(req, "endpoint"));
	abx_jw_kbool(&jw, "allowed", code == NULL);
	abx_jw_kstring(&jw, "code", code);
	abx_jw_kstring(&jw, "reason", reason);
	if (rule && *rule)
		abx_jw_kstring(&jw, "rule", rule);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}

/* Whether the endpoint has an argument of one of two types. What a call does not use cannot be wrong with it. */
static bool takes(const struct abx_endpoint *endpoint, enum abx_arg_type type, enum abx_arg_type other)
{
	for (size_t i = 0; i < endpoint->n_args; i++)
		if (endpoint->args[i].type == type || endpoint->args[i].type == other)
			return true;
	/* Whatever a named command takes, only the command knows. */
	return endpoint->flags & ABX_EP_RAW_ARGS;
}

/* Only where the path lies is asked, not whether something is there. */
static int check_path(const struct abx_request *req, const struct abx_endpoint *endpoint, const struct abx_rule *rule,
		      struct abx_err *err)
{
	const struct abx_roots *roots = abx_service_roots(req->service, endpoint);
	unsigned flags = ABX_PATH_MISSING | (endpoint->flags & ABX_EP_LINK ? ABX_PATH_NOFOLLOW : 0);
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	const char *given = abx_arg_string(req, "path");
	const char *slash;

	if (!given || !*given || !takes(endpoint, ABX_ARG_PATH, ABX_ARG_PATHS))
		return 0;
	if (abx_path_resolve(roots, given, flags, &path, err) < 0)
		return err->kind == ABX_E_PATH ? -1 : 0;
	if ((endpoint->flags & ABX_EP_REMOVES) && (abx_path_check_removal(&path, roots, err) < 0 ||
						   abx_path_check_removal(&path, &req->service->roots, err) < 0))
		return -1;
	slash = strrchr(path.resolved, '/');
	return abx_rule_allows_extension(rule, slash ? slash + 1 : path.resolved, err);
}

/* What holds of a variable without a policy, and what the policy says. */
static int check_variable(const struct abx_request *req, const struct abx_endpoint *endpoint, const struct abx_rule *rule,
			  struct abx_err *err)
{
	const char *name = abx_arg_string(req, "variable");

	if (!name)
		return 0;
	if (strcmp(endpoint->id, "env_set") == 0 && abx_variable_check_set(name, err) < 0)
		return abx_err_prefix(err, "variable");
	if (strcmp(endpoint->id, "env_get") == 0 && abx_variable_is_secret(name))
		return abx_err_set(err, ABX_E_VARIABLE, "variable: '%s' is not shown: its name is that of a secret", name);
	if (takes(endpoint, ABX_ARG_ENV, ABX_ARG_ENV) && abx_variable_is_own(name))
		return abx_err_set(err, ABX_E_VARIABLE, "variable: '%s' cannot be set: it is one of the server's own", name);
	return abx_rule_allows_variable(rule, name, err);
}

static void free_argv(char ***argv)
{
	abx_argv_free(*argv);
}

static int check_command(const struct abx_request *req, const struct abx_rule *rule, struct abx_err *err)
{
	const char *given = abx_arg_string(req, "command");
	char **argv __attribute__((cleanup(free_argv))) = given ? abx_shlex_split(given, err) : NULL;

	if (!given)
		return 0;
	return argv ? abx_rule_allows_command(rule, argv, err) : -1;
}

/* What the call would use, each where it was given. */
static int check_values(const struct abx_request *req, const struct abx_endpoint *endpoint, struct abx_err *err)
{
	const struct abx_rule *rule = abx_policy_rule(req->service->policy, endpoint);
	const char *language = abx_arg_string(req, "language"), *url = abx_arg_string(req, "url");

	if (check_path(req, endpoint, rule, err) < 0 || check_command(req, rule, err) < 0)
		return -1;
	if (language && abx_rule_allows_language(rule, language, err) < 0)
		return -1;
	if (url && abx_rule_allows_url(rule, url, err) < 0)
		return -1;
	return check_variable(req, endpoint, rule, err);
}

int h_capabilities_check(struct abx_request *req, struct abx_err *err)
{
	const struct abx_endpoint *endpoint = abx_endpoint_find(abx_arg_string(req, "endpoint"));
	abx_auto_strbuf struct abx_strbuf why = ABX_STRBUF_INIT;
	struct abx_err refused = ABX_ERR_INIT;
	struct core_verdict verdict;

	if (!endpoint) {
		abx_strbuf_addf(&why, "There is no endpoint '%s'", abx_arg_string(req, "endpoint"));
		return answer(req, "unknown_endpoint", why.buf, NULL, err);
	}
	core_judge(req, endpoint, &verdict);
	if (!verdict.enabled) {
		abx_policy_explain_disabled(endpoint, verdict.rule, &why);
		return answer(req, verdict.code, why.buf, verdict.rule, err);
	}
	if (!verdict.allowed) {
		abx_strbuf_addf(&why, "Endpoint '%s' needs a scope that '%s' does not have", endpoint->id,
				req->identity->id);
		return answer(req, verdict.code, why.buf, verdict.rule, err);
	}
	if (check_values(req, endpoint, &refused) == 0)
		return answer(req, NULL, NULL, NULL, err);
	/* A command that is none, say, is wrong whatever the policy says. */
	if (!abx_err_code(&refused)) {
		*err = refused;
		if (err->kind == ABX_E_SHELL_SYNTAX)
			abx_err_set(err, ABX_E_VALUE, "command: %s", refused.message);
		return -1;
	}
	return answer(req, abx_err_code(&refused), refused.message, refused.rule, err);
}
