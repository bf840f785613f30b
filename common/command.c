#include "common/command.h"

#include <string.h>

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

/* What did not end by itself. */
static int cut_short(struct abx_request *req, const struct abx_spawn_result *result, const char *seconds,
		     struct abx_err *err)
{
	if (result->end == ABX_SPAWN_CLIENT_GONE)
		return abx_err_set(err, ABX_E_GONE, "The client left before the command ended");
	if (result->end == ABX_SPAWN_STOPPED)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The server is stopping");
	req->error_members = json_pack("{s:s%, s:s%}", "stdout", result->out.buf, result->out.len, "stderr",
				       result->err.buf, result->err.len);
	return abx_err_set(err, ABX_E_TIMEOUT, "Command timed out after %ss", seconds);
}

int abx_command_run(struct abx_request *req, char *const *argv, struct abx_spawn_result *ret_result,
		    struct abx_err *err)
{
	return abx_command_run_input(req, argv, NULL, 0, ret_result, err);
}

int abx_command_run_input(struct abx_request *req, char *const *argv, const char *input, size_t len,
			  struct abx_spawn_result *ret_result, struct abx_err *err)
{
	abx_auto_path struct abx_path cwd = ABX_PATH_INIT;
	abx_auto_env struct abx_env env = { 0 };
	struct abx_spawn spawn = {
		.argv = argv,
		.env = &env,
		.client_fd = req->io->client_fd,
		.input = input,
		.input_len = len,
	};
	char seconds[32];

	if (abx_command_cwd(req, &cwd, err) < 0 || make_env(req, &env, err) < 0)
		return -1;
	spawn.cwd_fd = cwd.fd;
	spawn.timeout = abx_arg_timeout(req, seconds);
	spawn.max_output = (size_t)req->rule->limits.max_output_bytes;
	if (abx_spawn_run(&spawn, ret_result, err) < 0)
		return -1;
	if (ret_result->end == ABX_SPAWN_EXITED)
		return 0;
	cut_short(req, ret_result, seconds, err);
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
