/* What the files of the paths door share. */
#ifndef ABX_PATHS_INTERNAL_H
#define ABX_PATHS_INTERNAL_H

#include "common/paths.h"

/* Beside the errnos: the place is off limits, or a link that leads to it. */
#define ABX_PATH_DENIED (-1)

/*
 * Resolve by walking from "/". `path` is absolute. Returns 0 with *ret_path, or an errno: EXDEV for a place outside the roots and
 * ABX_PATH_DENIED for one that is off limits (whatever else may be wrong with it), EAGAIN when directories were moved while they were walked.
 */
int abx_path_walk(const struct abx_roots *roots, const char *path, unsigned flags, struct abx_path *ret_path);

/*
 * What follows in the absolute `path` behind `tree`, when it begins with the components of `tree`; else NULL. Compares strings only,
 * "." and repeated slashes aside.
 */
const char *abx_path_below(const char *tree, const char *path);

/* The absolute path of a directory's descriptor as the kernel knows it (to be freed), or NULL when it was removed. */
char *abx_path_of_fd(int fd);

#endif
