#include "handlers/dev_tools/git_repo.h"

#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/utf8.h"
#include "handlers/dev_tools/git_find.h"
#include "handlers/dev_tools/git_parse.h"

#define CONFIG_MAX ((size_t)1 << 20)

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

void git_repo_release(struct git_repo *repo)
{
	abx_path_release(&repo->start);
	abx_workdir_release(&repo->ours);
	abx_env_release(&repo->env);
	abx_env_release(&repo->plain_env);
	free(repo->work_tree);
	free(repo->git_dir);
	free(repo->common_dir);
	*repo = (struct git_repo)GIT_REPO_INIT;
}

/* What failed, in git's words, without what git says around it. */
static void message_of(const struct abx_spawn_result *result, struct abx_strbuf *out)
{
	const char *line = strstr(result->err.buf, "fatal: ");

	if (!line && strncmp(result->err.buf, "error: ", 7) == 0)
		line = result->err.buf;
	if (line)
		abx_utf8_lossy(line + 7, strcspn(line + 7, "\n"), out);
	else
		abx_tool_last_line(result, out);
}

/* What remains of the request's time: all runs of git share it. */
static double seconds_left(const struct abx_request *req)
{
	return (double)req->rule->limits.timeout_seconds - (double)(abx_clock_us() - req->started_us) / 1e6;
}

static int too_long(const struct abx_request *req, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_DEADLINE, "git timed out after %lld s",
			   (long long)req->rule->limits.timeout_seconds);
}

static int no_git(struct abx_err *err)
{
	return abx_err_errno(err, ENOENT, "There is no 'git' on PATH. Install the package git");
}

static int run(const struct abx_request *req, struct abx_tool *tool, struct abx_spawn_result *ret_result,
	       struct abx_err *err)
{
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	abx_auto_strbuf struct abx_strbuf message = ABX_STRBUF_INIT;

	tool->timeout = seconds_left(req);
	if (tool->timeout <= 0)
		return too_long(req, err);
	if (abx_tool_run(req, tool, &result, err) < 0) {
		if (abx_tool_is_missing(err))
			return no_git(err);
		return err->kind == ABX_E_TIMEOUT ? too_long(req, err) : -1;
	}
	if (result.exit_code != 0) {
		message_of(&result, &message);
		return abx_err_set(err, ABX_E_GIT, "%s", message.buf);
	}
	*ret_result = result;
	result = (struct abx_spawn_result)ABX_SPAWN_RESULT_INIT;
	return 0;
}

int git_run(struct abx_request *req, const struct git_repo *repo, const char *const *args, size_t max_output,
	    struct abx_spawn_result *ret_result, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf safe = ABX_STRBUF_INIT;
	struct abx_tool tool = { .env = &repo->env, .cwd_fd = repo->start.fd, .max_output = max_output };
	abx_auto_free const char **argv = NULL;
	size_t n = 0;

	while (args[n])
		n++;
	argv = calloc(n + 5, sizeof(*argv));
	abx_strbuf_addf(&safe, "safe.directory=%s", repo->work_tree);
	if (!argv || safe.failed)
		return out_of_memory(err);
	argv[0] = "git";
	argv[1] = "--no-pager";
	argv[2] = "-c";
	argv[3] = safe.buf;
	memcpy(argv + 4, args, n * sizeof(*args));
	/* The same array: execve takes pointers to strings that it does not write to. */
	memcpy(&tool.argv, &argv, sizeof(tool.argv));
	return run(req, &tool, ret_result, err);
}

/* Settings that are numbers or words, and change what status and diff say. In lower case, as git lists them. */
static const char *const plain_settings[] = {
	"core.autocrlf",
	"core.bigfilethreshold",
	"core.checkstat",
	"core.eol",
	"core.filemode",
	"core.ignorecase",
	"core.repositoryformatversion",
	"core.sparsecheckout",
	"core.sparsecheckoutcone",
	"core.symlinks",
	"core.trustctime",
	"diff.algorithm",
	"diff.context",
	"diff.indentheuristic",
	"diff.interhunkcontext",
	"diff.renamelimit",
	"diff.renames",
	"extensions.compatobjectformat",
	"extensions.objectformat",
	"extensions.refstorage",
	"status.renamelimit",
	"status.renames",
};

static bool is_plain_setting(const char *key, size_t len)
{
	for (size_t i = 0; i < ABX_N(plain_settings); i++)
		if (strlen(plain_settings[i]) == len && memcmp(plain_settings[i], key, len) == 0)
			return true;
	return false;
}

/*
 * Take over one setting of the real configuration: "key\nvalue", or a key alone, which is true. What is not a plain
 * word is left out.
 */
static void copy_setting(const char *record, size_t len, struct abx_strbuf *config)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	const char *newline = memchr(record, '\n', len), *value = newline ? newline + 1 : "true", *dot;
	size_t key_len = newline ? (size_t)(newline - record) : len, value_len = newline ? len - key_len - 1 : 4;

	if (!is_plain_setting(record, key_len) || value_len == 0 || value_len > 64)
		return;
	for (size_t i = 0; i < value_len; i++)
		if (!value[i] || !strchr(word, value[i]))
			return;
	dot = memchr(record, '.', key_len);
	abx_strbuf_addf(config, "[%.*s]\n\t%.*s = %.*s\n", (int)(dot - record), record,
			(int)(key_len - (size_t)(dot - record) - 1), dot + 1, (int)value_len, value);
}

int git_read_config(struct abx_request *req, const struct git_repo *repo, const char *dir, const char *name,
		    struct abx_spawn_result *ret_result, struct abx_err *err)
{
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	abx_auto_free char *path = NULL;
	int there = git_inside(req->roots, dir, name, &path, err);
	char *const argv[] = {
		"git", "--no-pager", "config", "--file", path, "--no-includes", "--null", "--list", NULL
	};
	struct abx_tool tool = { .argv = argv, .env = &repo->plain_env, .cwd_fd = -1, .max_output = CONFIG_MAX };

	if (there <= 0)
		return there;
	if (run(req, &tool, &result, err) < 0)
		return -1;
	if (result.truncated)
		return abx_err_set(err, ABX_E_GIT, "%s has more than %zu bytes", name, CONFIG_MAX);
	*ret_result = result;
	result = (struct abx_spawn_result)ABX_SPAWN_RESULT_INIT;
	return 1;
}

static int read_settings(struct abx_request *req, const struct git_repo *repo, struct abx_strbuf *config,
			 struct abx_err *err)
{
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;

	if (git_read_config(req, repo, repo->common_dir, "config", &result, err) < 0)
		return -1;
	for (const char *at = result.out.buf, *end = at + result.out.len; at < end; at += strlen(at) + 1)
		copy_setting(at, strlen(at), config);
	return 0;
}

/* Our configuration, and links to the real things that are there. */
static int fill_common_dir(struct abx_request *req, const struct git_repo *repo, struct abx_err *err)
{
	static const char *const links[] = { "objects", "refs", "packed-refs", "reftable", "info", "shallow" };
	abx_auto_strbuf struct abx_strbuf config = ABX_STRBUF_INIT;

	if (read_settings(req, repo, &config, err) < 0)
		return -1;
	abx_strbuf_adds(&config, "[core]\n\tbare = false\n\tquotePath = false\n[diff]\n\tautoRefreshIndex = false\n");
	if (config.failed)
		return out_of_memory(err);
	for (size_t i = 0; i < ABX_N(links); i++) {
		abx_auto_free char *target = NULL;
		int there = git_inside(req->roots, repo->common_dir, links[i], &target, err);

		if (there < 0 || (there && abx_workdir_link(&repo->ours, links[i], target, err) < 0))
			return -1;
	}
	return abx_workdir_write(&repo->ours, "config", config.buf, config.len, err);
}

/* Nothing of the caller's, of the user's or of the machine's own settings for git is left. */
static int make_env(const struct git_repo *repo, struct abx_env *env, struct abx_err *err)
{
	const char *const vars[][2] = {
		{ "GIT_CONFIG_NOSYSTEM", "1" },
		{ "GIT_CONFIG_SYSTEM", "/dev/null" },
		{ "GIT_CONFIG_GLOBAL", "/dev/null" },
		/* For versions that do not know the variables before. */
		{ "HOME", repo->ours.path },
		{ "XDG_CONFIG_HOME", repo->ours.path },
		{ "GIT_OPTIONAL_LOCKS", "0" },
		{ "GIT_TERMINAL_PROMPT", "0" },
		/* An object that is missing is not fetched. */
		{ "GIT_NO_LAZY_FETCH", "1" },
		{ "GIT_ALLOW_PROTOCOL", "none" },
		{ "LC_ALL", "C" },
	};
	int failed = abx_env_init(env);

	abx_env_drop(env, "GIT_");
	abx_env_drop(env, "LANGUAGE=");
	for (size_t i = 0; !failed && i < ABX_N(vars); i++)
		failed = abx_env_set(env, vars[i][0], vars[i][1]);
	return failed ? out_of_memory(err) : 0;
}

static int make_envs(struct git_repo *repo, struct abx_err *err)
{
	if (make_env(repo, &repo->plain_env, err) < 0 || make_env(repo, &repo->env, err) < 0)
		return -1;
	if (abx_env_set(&repo->env, "GIT_DIR", repo->git_dir) < 0 ||
	    abx_env_set(&repo->env, "GIT_COMMON_DIR", repo->ours.path) < 0 ||
	    abx_env_set(&repo->env, "GIT_WORK_TREE", repo->work_tree) < 0)
		return out_of_memory(err);
	return 0;
}

static int open_into(struct abx_request *req, const char *path, struct git_repo *repo, struct abx_err *err)
{
	if (abx_path_resolve(req->roots, path, 0, &repo->start, err) < 0)
		return -1;
	if (!S_ISDIR(repo->start.st.st_mode))
		return abx_err_set(err, ABX_E_GIT, "not a directory: %s", path);
	/* Without git nothing is a repository: it is git that is to be named, and not the directory. */
	if (git_find(req->roots, repo->start.resolved, &repo->work_tree, &repo->git_dir, &repo->common_dir, err) < 0)
		return err->kind == ABX_E_GIT && !abx_tool_is_installed("git") ? no_git(err) : -1;
	if (git_check_inside(req->roots, repo->git_dir, repo->common_dir, err) < 0 ||
	    abx_workdir_make(req->service->policy->run_dir, &repo->ours, err) < 0 || make_envs(repo, err) < 0)
		return -1;
	return fill_common_dir(req, repo, err);
}

bool git_repo_hides(const struct abx_request *req, const struct git_repo *repo, const struct git_text *name)
{
	abx_auto_strbuf struct abx_strbuf path = ABX_STRBUF_INIT;

	if (!req->roots->picky || !name->data)
		return false;
	abx_strbuf_addf(&path, "%s/", repo->work_tree);
	abx_strbuf_add(&path, name->data, name->len);
	return path.failed || abx_roots_deny(req->roots, path.buf);
}

int git_repo_open(struct abx_request *req, const char *path, struct git_repo *ret_repo, struct abx_err *err)
{
	git_auto_repo struct git_repo repo = GIT_REPO_INIT;

	if (open_into(req, path, &repo, err) < 0)
		return -1;
	*ret_repo = repo;
	repo = (struct git_repo)GIT_REPO_INIT;
	return 0;
}
