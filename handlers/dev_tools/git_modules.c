#include "handlers/dev_tools/git_modules.h"

#include <stdio.h>
#include <string.h>

#include "handlers/dev_tools/git_find.h"

/* Submodules of submodules, and of one repository, that are looked at. */
#define DEPTH_MAX   8
#define MODULES_MAX 256
#define OUTPUT_MAX  ((size_t)8 << 20)

const char *const git_status_args[] = {
	"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty", NULL,
};

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

void git_modules_release(struct git_modules *modules)
{
	for (size_t i = 0; i < modules->n; i++)
		free(modules->at[i].path);
	free(modules->at);
	*modules = (struct git_modules)GIT_MODULES_INIT;
}

/* The value of submodule.<name>.<what> in the settings, where <name> is `name_len` bytes; NULL without one. */
static const char *setting(const struct abx_strbuf *settings, const char *name, size_t name_len, const char *what)
{
	static const char section[] = "submodule.";
	const char *value = NULL;

	for (const char *at = settings->buf, *end = at + settings->len; at < end; at += strlen(at) + 1) {
		const char *key_name = at + strlen(section), *newline = strchr(at, '\n');

		if (!newline || strncmp(at, section, strlen(section)) != 0 ||
		    (size_t)(newline - key_name) != name_len + 1 + strlen(what))
			continue;
		if (memcmp(key_name, name, name_len) == 0 && key_name[name_len] == '.' &&
		    strncmp(key_name + name_len + 1, what, strlen(what)) == 0)
			value = newline + 1;
	}
	return value;
}

/* Note the submodule whose path the setting at `record` names, if it is to be looked at. */
static int add_module(const struct abx_strbuf *settings, const char *record, struct git_modules *modules,
		      struct abx_err *err)
{
	const char *newline = strchr(record, '\n'), *name = record + strlen("submodule."), *ignore;
	size_t key_len = newline ? (size_t)(newline - record) : 0;
	struct git_module *grown;

	if (strncmp(record, "submodule.", 10) != 0 || key_len < 16 || strncmp(newline - 5, ".path", 5) != 0 ||
	    !newline[1])
		return 0;
	ignore = setting(settings, name, key_len - 15, "ignore");
	if (ignore && (strcmp(ignore, "all") == 0 || strcmp(ignore, "dirty") == 0))
		return 0;
	if (modules->n == MODULES_MAX)
		return abx_err_set(err, ABX_E_GIT, "more than %d submodules", MODULES_MAX);
	grown = realloc(modules->at, (modules->n + 1) * sizeof(*grown));
	if (!grown)
		return out_of_memory(err);
	modules->at = grown;
	grown[modules->n] = (struct git_module){
		.path = strdup(newline + 1),
		.ignore_untracked = ignore && strcmp(ignore, "untracked") == 0,
	};
	return grown[modules->n++].path ? 0 : out_of_memory(err);
}

static int find_modules(struct abx_request *req, const struct git_repo *repo, struct git_modules *modules,
			struct abx_err *err)
{
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	int there = git_read_config(req, repo, repo->work_tree, ".gitmodules", &result, err);

	if (there <= 0)
		return there;
	for (const char *at = result.out.buf, *end = at + result.out.len; at < end; at += strlen(at) + 1)
		if (add_module(&result.out, at, modules, err) < 0)
			return -1;
	return 0;
}

/* "160000 <id> 0\t<path>": a submodule of the index. */
static void know_module(const char *record, struct git_modules *modules)
{
	const char *tab = strchr(record, '\t');

	for (size_t i = 0; tab && strncmp(record, "160000 ", 7) == 0 && i < modules->n; i++)
		modules->at[i].known |= strcmp(modules->at[i].path, tab + 1) == 0;
}

static void free_list(char ***list)
{
	for (char **p = *list; p && *p; p++)
		free(*p);
	free(*list);
}

/* Which of them the index has: .gitmodules may name anything. */
static int know_modules(struct abx_request *req, const struct git_repo *repo, struct git_modules *modules,
			struct abx_err *err)
{
	__attribute__((cleanup(free_list))) char **names = calloc(modules->n + 1, sizeof(*names));
	abx_auto_free const char **args = calloc(modules->n + 6, sizeof(*args));
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;

	if (!names || !args)
		return out_of_memory(err);
	memcpy(args, (const char *const[]){ "ls-files", "--stage", "-z", "--full-name", "--" }, 5 * sizeof(*args));
	for (size_t i = 0; i < modules->n; i++) {
		if (asprintf(&names[i], ":(top,literal)%s", modules->at[i].path) < 0) {
			names[i] = NULL;
			return out_of_memory(err);
		}
		args[5 + i] = names[i];
	}
	if (git_run(req, repo, args, OUTPUT_MAX, &result, err) < 0)
		return -1;
	for (const char *at = result.out.buf, *end = at + result.out.len; at < end; at += strlen(at) + 1)
		know_module(at, modules);
	return 0;
}

static int look_into(struct abx_request *req, const char *dir, bool ignore_untracked, int depth, bool *ret_dirty,
		     struct abx_err *err);

static int look_at_all(struct abx_request *req, const struct git_repo *repo, int depth, struct git_modules *modules,
		       struct abx_err *err)
{
	if (find_modules(req, repo, modules, err) < 0 || (modules->n > 0 && know_modules(req, repo, modules, err) < 0))
		return -1;
	for (size_t i = 0; i < modules->n; i++) {
		struct git_module *module = &modules->at[i];
		struct git_text name = { module->path, strlen(module->path) };
		abx_auto_free char *dir = NULL, *git = NULL, *wanted = NULL;
		int there;

		if (!module->known || depth == DEPTH_MAX || git_repo_hides(req, repo, &name))
			continue;
		if (asprintf(&wanted, "%s/%s", repo->work_tree, module->path) < 0) {
			wanted = NULL;
			return out_of_memory(err);
		}
		/* Behind a link it is another directory; without .git it was not checked out. */
		if ((there = git_inside(req->roots, repo->work_tree, module->path, &dir, err)) < 0)
			return -1;
		if (!there || strcmp(dir, wanted) != 0)
			continue;
		if ((there = git_inside(req->roots, dir, ".git", &git, err)) < 0)
			return -1;
		if (there && look_into(req, dir, module->ignore_untracked, depth + 1, &module->dirty, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether the repository of a submodule has changes. */
static int look_into(struct abx_request *req, const char *dir, bool ignore_untracked, int depth, bool *ret_dirty,
		     struct abx_err *err)
{
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	git_auto_modules struct git_modules modules = GIT_MODULES_INIT;
	git_auto_repo struct git_repo repo = GIT_REPO_INIT;
	struct git_text rest;
	struct git_entry entry;
	enum git_record record;

	if (git_repo_open(req, dir, &repo, err) < 0 ||
	    git_run(req, &repo, git_status_args, OUTPUT_MAX, &result, err) < 0)
		return -1;
	rest = (struct git_text){ result.out.buf, result.out.len };
	while ((record = git_status_next(&rest, &entry)) == GIT_RECORD_ENTRY || record == GIT_RECORD_BRANCH)
		if (record == GIT_RECORD_ENTRY && !(ignore_untracked && entry.state == GIT_UNTRACKED))
			*ret_dirty = true;
	if (*ret_dirty)
		return 0;
	if (look_at_all(req, &repo, depth, &modules, err) < 0)
		return -1;
	for (size_t i = 0; i < modules.n; i++)
		*ret_dirty |= modules.at[i].dirty;
	return 0;
}

int git_modules_look(struct abx_request *req, const struct git_repo *repo, struct git_modules *ret_modules,
		     struct abx_err *err)
{
	git_auto_modules struct git_modules modules = GIT_MODULES_INIT;

	if (look_at_all(req, repo, 0, &modules, err) < 0)
		return -1;
	*ret_modules = modules;
	modules = (struct git_modules)GIT_MODULES_INIT;
	return 0;
}
