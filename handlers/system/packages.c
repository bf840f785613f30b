#include <string.h>

#include "common/tool.h"
#include "handlers/system/handlers.h"

#define OUTPUT_MAX ((size_t)64 << 20)

/* The parsed output. NULL: it is no JSON, and what the program said on standard error is the failure. */
static json_t *parse_output(const char *program, const struct abx_spawn_result *result, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf line = ABX_STRBUF_INIT;
	struct abx_err unused = ABX_ERR_INIT;
	json_t *parsed = result->truncated ? NULL : abx_json_parse(result->out.buf, result->out.len, &unused);

	if (parsed)
		return parsed;
	abx_tool_last_line(result, &line);
	abx_err_set(err, ABX_E_INTERNAL, "%s failed with status %d: %s", program, result->exit_code, line.buf);
	return NULL;
}

static void write_package(struct abx_json_writer *jw, const char *name, const char *version)
{
	if (!name || !version)
		return;
	abx_jw_object(jw);
	abx_jw_kstring(jw, "name", name);
	abx_jw_kstring(jw, "version", version);
	abx_jw_object_end(jw);
}

static int run_tool(struct abx_request *req, char *const *argv, int cwd_fd, struct abx_spawn_result *result,
		    struct abx_err *err)
{
	abx_auto_env struct abx_env env = { 0 };
	struct abx_tool tool = {
		.argv = argv,
		.env = &env,
		.cwd_fd = cwd_fd,
		.timeout = (double)req->rule->limits.timeout_seconds,
		.max_output = OUTPUT_MAX,
	};

	if (abx_env_init(&env) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	return abx_tool_run(req, &tool, result, err);
}

/*
 * From the root directory: python3 -m loads modules from where it is started, and the base directory is where callers
 * put files. No python3 and no pip is no packages. /
 */
static int list_pip(struct abx_request *req, struct abx_json_writer *jw, struct abx_err *err)
{
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	char *const argv[] = {
		"python3", "-m", "pip", "list", "--format", "json", "--disable-pip-version-check", NULL
	};
	json_auto_t *packages = NULL;

	if (run_tool(req, argv, -1, &result, err) < 0)
		return abx_tool_is_missing(err) ? 0 : -1;
	if (result.exit_code && strstr(result.err.buf, "No module named pip"))
		return 0;
	packages = parse_output("pip", &result, err);
	if (!packages)
		return -1;
	for (size_t i = 0; i < json_array_size(packages); i++) {
		const json_t *package = json_array_get(packages, i);

		write_package(jw, json_string_value(json_object_get(package, "name")),
			      json_string_value(json_object_get(package, "version")));
	}
	return 0;
}

/*
 * In the base directory. Its exit code tells of dependencies that do not fit together; what it lists is right all the
 * same. One without a version is not there.
 */
static int list_npm(struct abx_request *req, struct abx_json_writer *jw, struct abx_err *err)
{
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	abx_auto_path struct abx_path base = ABX_PATH_INIT;
	/* Without the option npm leaves a log file of every run. */
	char *const argv[] = { "npm", "list", "--json", "--depth=0", "--logs-max=0", "--no-update-notifier", NULL };
	json_auto_t *tree = NULL;
	const char *name;
	json_t *package;

	if (abx_path_resolve(&req->service->roots, ".", 0, &base, err) < 0)
		return -1;
	if (run_tool(req, argv, base.fd, &result, err) < 0)
		return abx_tool_is_missing(err) ? 0 : -1;
	tree = parse_output("npm", &result, err);
	if (!tree)
		return -1;
	json_object_foreach(json_object_get(tree, "dependencies"), name, package)
		write_package(jw, name, json_string_value(json_object_get(package, "version")));
	return 0;
}

int h_packages(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX(OUTPUT_MAX);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	const char *manager = abx_arg_string(req, "manager");
	int result;

	if (strcmp(manager, "pip") != 0 && strcmp(manager, "npm") != 0)
		return abx_err_set(err, ABX_E_VALUE, "manager: must be pip or npm");
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "manager", manager);
	abx_jw_key(&jw, "packages");
	abx_jw_array(&jw);
	result = *manager == 'p' ? list_pip(req, &jw, err) : list_npm(req, &jw, err);
	abx_jw_array_end(&jw);
	abx_jw_object_end(&jw);
	return result < 0 ? -1 : abx_response_json(&req->res, 200, &body, err);
}
