/*
 * A repository that a request names, opened so that nothing in it is run and nothing outside the allowed trees is
 * read.
 *
 * Whoever can write files can write a repository: its configuration, hooks, attributes and links are not to be
 * believed. So git is not left to find the repository and is not shown its configuration. We find it by the paths
 * door; what it is made of has to be inside the allowed trees, links followed; and git works with a common directory
 * of our own, which has a configuration of our own and links to the real objects and references. From the real
 * configuration come a few plain settings (numbers and words) that change what status and diff say. All that names a
 * program there (filters, diff drivers, textconv, fsmonitor, pagers, ssh, credential helpers, includes of further
 * files), core.worktree, hooks and remotes do not exist for git. /
 */
#ifndef ABX_GIT_REPO_H
#define ABX_GIT_REPO_H

#include "common/paths.h"
#include "common/request.h"
#include "common/spawn.h"
#include "common/tool.h"
#include "common/workdir.h"
#include "handlers/dev_tools/git_parse.h"

struct git_repo {
	struct abx_path start;    /* the directory that the request names */
	char *work_tree;          /* absolute, without links, as the following */
	char *git_dir;            /* HEAD and index: of this work tree */
	char *common_dir;         /* objects and references: of all work trees */
	struct abx_workdir ours;  /* what git takes for the common directory */
	struct abx_env env;       /* for git in this repository */
	struct abx_env plain_env; /* for git in none */
};

#define GIT_REPO_INIT { .start = ABX_PATH_INIT, .ours = ABX_WORKDIR_INIT }

/*
 * Find the repository that holds the directory `path`, and prepare it. ABX_E_GIT: there is none within the allowed
 * trees, or it is broken. ABX_E_PATH: `path`, or something that the repository is made of, is outside. Other failures
 * as abx_path_resolve and abx_tool_run have them. /
 */
int git_repo_open(struct abx_request *req, const char *path, struct git_repo *ret_repo, struct abx_err *err);
void git_repo_release(struct git_repo *repo);
#define git_auto_repo __attribute__((cleanup(git_repo_release)))

/* Whether the policy denies the file of this name, taken from the work tree: then nothing is told of it. */
bool git_repo_hides(const struct abx_request *req, const struct git_repo *repo, const struct git_text *name);

/*
 * Have git read the file <dir>/<name> of its syntax, not what it includes, from a place where no repository is. 1:
 * the settings are in the output, each "key\nvalue" with a NUL; 0: there is no such file. /
 */
int git_read_config(struct abx_request *req, const struct git_repo *repo, const char *dir, const char *name,
		    struct abx_spawn_result *ret_result, struct abx_err *err);

/*
 * Run git with these arguments (NULL-terminated, after "git" and its options) in the request's directory of the
 * repository. A status that is not 0 is ABX_E_GIT with git's message; too long a run is ABX_E_DEADLINE; no git is
 * ABX_E_ERRNO. /
 */
int git_run(struct abx_request *req, const struct git_repo *repo, const char *const *args, size_t max_output,
	    struct abx_spawn_result *ret_result, struct abx_err *err);

#endif
