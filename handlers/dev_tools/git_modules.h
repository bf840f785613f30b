/*
 * Submodules. For what has changed in a submodule's own files git starts itself there, under that repository's
 * configuration; so git is told to leave this out, and we look, in the same way as at any other repository. /
 */
#ifndef ABX_GIT_MODULES_H
#define ABX_GIT_MODULES_H

#include "handlers/dev_tools/git_repo.h"

struct git_module {
	char *path; /* from the work tree */
	bool ignore_untracked;
	bool known; /* the index has it as a submodule */
	bool dirty;
};

struct git_modules {
	struct git_module *at;
	size_t n;
};

#define GIT_MODULES_INIT { .at = NULL }

/* Find the submodules of the repository, and look which of them have changes of their own. */
int git_modules_look(struct abx_request *req, const struct git_repo *repo, struct git_modules *ret_modules,
		     struct abx_err *err);
void git_modules_release(struct git_modules *modules);
#define git_auto_modules __attribute__((cleanup(git_modules_release)))

/* The arguments for git status, here and there. */
extern const char *const git_status_args[];

#endif
