/* Where a repository is, and whether all of it is inside the allowed trees. */
#ifndef ABX_GIT_FIND_H
#define ABX_GIT_FIND_H

#include "common/paths.h"
#include "common/err.h"

/*
 * Go up from the directory `start` until there is a repository, as git does, but never out of the allowed trees.
 * Fills in what holds `.git`, and the directories of HEAD and index and of objects and references; all are absolute
 * and without links, and to be freed. /
 */
int git_find(const struct abx_roots *roots, const char *start, char **ret_work_tree, char **ret_git_dir,
	     char **ret_common_dir, struct abx_err *err);

/* Whether everything that git reads of the repository is inside, links followed. ABX_E_PATH when it is not. */
int git_check_inside(const struct abx_roots *roots, const char *git_dir, const char *common_dir, struct abx_err *err);

/*
 * Resolve <dir>/<name>, which has to be inside. 1: *ret_path is the absolute path (to be freed); 0: there is nothing.
 */
int git_inside(const struct abx_roots *roots, const char *dir, const char *name, char **ret_path, struct abx_err *err);

#endif
