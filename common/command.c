#include "common/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/evaluate.h"

int abx_command_cwd(struct abx_request *req, struct abx_path *ret_cwd, struct abx_err *err)
{
	const char *path = abx_arg_string(req, "cwd");

	if (abx_path_resolve(req->roots, path ? path : ".", 0, ret_cwd, err) < 0) {
		if (err->kind == ABX_E_NO_FILE || err->kind == ABX_E_VALUE)
			err->kind = ABX_E_PATH;
		return abx_err_prefix(err, "cwd");
	}
	if (!S_ISDIR(ret_cwd->st.st_mode))
		return abx_err_set(err, ABX_E_PATH, "cwd: Not a directory: %s", path ? path : ".");
	return 0;
}

static int make_env(const struct abx_request *req, struct abx_env *env, struct abx_err *err)
{
	json_t *given = json_object_get(req->args, "env");
	const char *name;
	json_t *value;
	int failed = abx_env_init(env);

	json_object_foreach(given, name, value) failed |= abx_env_set(env, name, json_string_value(value));
	return failed ? abx_err_set(err, ABX_E_INTERNAL, "Out of memory") : 0;
}

/*
 * The trees that a command whose files are confined may write: the endpoint's, and a temporary directory. The kernel knows no globs, so what the policy allows by
 * one is left out.
 */
static int confine_files(struct abx_request *req, struct abx_command *command, int program_fd, struct abx_err *err)
{
	size_t n = 0;

	command->trees = calloc(req->roots->n + 2, sizeof(*command->trees));
	if (!command->trees)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (abx_workdir_make(req->service->policy->spool_dir, &command->temp, err) < 0)
		return -1;
	for (size_t i = 0; i < req->roots->n; i++)
		if (!req->roots->roots[i].only)
			command->trees[n++] = req->roots->roots[i].fd;
	command->trees[n++] = command->temp.fd;
	if (program_fd >= 0) {
		command->trees[n++] = program_fd;
		command->confinement.n_readable = 1;
	}
	command->confinement.trees = command->trees;
	command->confinement.n_trees = n;
	/* A caller may have one of its own. */
	if ((program_fd >= 0 || !json_object_get(json_object_get(req->args, "env"), "TMPDIR")) && abx_env_set(&command->env, "TMPDIR", command->temp.path) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	return 0;
}

/* What the policy says of confinement, as the spawn door wants it. `program_fd`: the directory of the server's own program, or -1. */
static int confine(struct abx_request *req, struct abx_command *command, int program_fd, struct abx_err *err)
{
	command->confinement = abx_confinement_of(req->rule->confine, &req->rule->confine_limits);
	return command->confinement.filesystem ? confine_files(req, command, program_fd, err) : 0;
}

/* Hand a prepared command over. */
static void finish(struct abx_request *req, char *const *argv, struct abx_command *command, struct abx_command *ret_command)
{
	command->spawn.argv = argv;
	command->spawn.client_fd = req->io->client_fd;
	abx_peer_init(&command->spawn.peer, req->io->params);
	command->spawn.max_output = (size_t)req->rule->limits.max_output_bytes;
	*ret_command = *command;
	/* These are where the caller's are, and nowhere else. */
	ret_command->spawn.env = &ret_command->env;
	ret_command->spawn.cwd_fd = ret_command->cwd.fd;
	ret_command->spawn.confine = req->rule->confine ? &ret_command->confinement : NULL;
	*command = (struct abx_command)ABX_COMMAND_INIT;
}

int abx_command_prepare(struct abx_request *req, char *const *argv, const char *shell_text, struct abx_command *ret_command,
			struct abx_err *err)
{
	abx_auto_command struct abx_command command = ABX_COMMAND_INIT;
	int allowed = shell_text ? abx_rule_allows_shell_text(req->rule, shell_text, err) : abx_rule_allows_command(req->rule, argv, err);

	if (allowed < 0 || abx_command_cwd(req, &command.cwd, err) < 0 || make_env(req, &command.env, err) < 0 ||
	    confine(req, &command, -1, err) < 0)
		return -1;
	command.spawn.timeout = abx_arg_timeout(req, command.seconds);
	finish(req, argv, &command, ret_command);
	return 0;
}

int abx_command_prepare_own(struct abx_request *req, char *const *argv, int program_fd, double seconds, struct abx_command *ret_command,
			    struct abx_err *err)
{
	abx_auto_command struct abx_command command = ABX_COMMAND_INIT;
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;

	if (abx_path_resolve(req->roots, ".", 0, &command.cwd, err) < 0)
		return -1;
	if (abx_env_init(&command.env) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (confine(req, &command, program_fd, err) < 0)
		return -1;
	if (seconds == (double)(int64_t)seconds)
		abx_strbuf_addf(&text, "%lld", (long long)seconds);
	else
		abx_json_repr(seconds, &text);
	snprintf(command.seconds, sizeof(command.seconds), "%s", text.buf);
	command.spawn.timeout = seconds;
	finish(req, argv, &command, ret_command);
	return 0;
}

void abx_command_release(struct abx_command *command)
{
	abx_path_release(&command->cwd);
	abx_env_release(&command->env);
	abx_workdir_release(&command->temp);
	free(command->trees);
}

int abx_command_cut_short(const struct abx_command *command, enum abx_spawn_end end, struct abx_err *err)
{
	if (end == ABX_SPAWN_CLIENT_GONE)
		return abx_err_set(err, ABX_E_GONE, "The client left before the command ended");
	if (end == ABX_SPAWN_STOPPED)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The server is stopping");
	return abx_err_set(err, ABX_E_TIMEOUT, "Command timed out after %ss", command->seconds);
}

int abx_command_run(struct abx_request *req, char *const *argv, const char *shell_text, struct abx_spawn_result *ret_result,
		    struct abx_err *err)
{
	return abx_command_run_input(req, argv, shell_text, NULL, 0, ret_result, err);
}

int abx_command_run_input(struct abx_request *req, char *const *argv, const char *shell_text, const char *input, size_t len,
			  struct abx_spawn_result *ret_result, struct abx_err *err)
{
	abx_auto_command struct abx_command command = ABX_COMMAND_INIT;

	if (abx_command_prepare(req, argv, shell_text, &command, err) < 0)
		return -1;
	command.spawn.input = input;
	command.spawn.input_len = len;
	if (abx_spawn_run(&command.spawn, ret_result, err) < 0)
		return -1;
	if (ret_result->end == ABX_SPAWN_EXITED)
		return 0;
	abx_command_cut_short(&command, ret_result->end, err);
	if (err->kind == ABX_E_TIMEOUT)
		req->error_members = json_pack("{s:s%, s:s%}", "stdout", ret_result->out.buf, ret_result->out.len, "stderr",
					       ret_result->err.buf, ret_result->err.len);
	abx_spawn_result_release(ret_result);
	return -1;
}

void abx_command_write(struct abx_json_writer *jw, const struct abx_spawn_result *result)
{
	abx_jw_object(jw);
	abx_command_write_members(jw, result);
	abx_jw_object_end(jw);
}

void abx_command_write_members(struct abx_json_writer *jw, const struct abx_spawn_result *result)
{
	abx_jw_key(jw, "stdout");
	abx_jw_stringn(jw, result->out.buf, result->out.len);
	abx_jw_key(jw, "stderr");
	abx_jw_stringn(jw, result->err.buf, result->err.len);
	abx_jw_kint(jw, "exit_code", result->exit_code);
	if (result->truncated)
		abx_jw_kbool(jw, "truncated", true);
}
