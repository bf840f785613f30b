/*
 * The paths door: the only way from a request's string to a file.
 *
 * A string is resolved once, to descriptors; all work is done on these (`*at` calls). The quick way is openat2(2) with RESOLVE_BENEATH |
 * RESOLVE_NO_MAGICLINKS from the root's descriptor. Where it refuses (an absolute symlink that may well stay inside, "..") or does not exist, the path is walked
 * one component at a time with O_PATH | O_NOFOLLOW, symlinks expanded by hand, and the place is inside exactly when the chain of descriptors
 * that was walked contains the root's inode. Nothing is decided by comparing strings and opened later.
 */
#ifndef ABX_PATHS_H
#define ABX_PATHS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "common/err.h"

/* The allowed trees of an endpoint. Plain descriptors, opened once and shared by all threads. */
struct abx_root {
	char *path; /* absolute, canonical */
	char *alias; /* as configured, when that differs (a symlink on the way), else NULL */
	char *only; /* a glob (abx_glob_path) that what is used below has to match; NULL: the whole tree */
	int fd;     /* O_PATH directory */
};

struct abx_roots {
	struct abx_root *roots;
	size_t n;
	char *start;       /* where relative paths begin; NULL: in roots[0] */
	char **deny;       /* globs of paths that are off limits all the same (abx_glob_path), NULL-terminated; or NULL */
	const char *rule;  /* the policy rule that made them, which a refusal names (borrowed); NULL: they are the base directory */
	bool replaced;     /* the trees come from that rule as well, and not only `deny` */
	bool picky;        /* there are `deny`s or `only`s: being below a root is not enough */
};

/*
 * Whether an absolute path without links is off limits: a deny glob covers it or a directory above it, or the trees are globs and none matches. abx_path_resolve
 * asks by itself, for the place and for each link on the way there; handlers that walk a tree ask for each entry.
 */
bool abx_roots_deny(const struct abx_roots *roots, const char *path);

/* Whether a deny glob covers what a link is called: an absolute path whose last component is the link. */
bool abx_roots_deny_link(const struct abx_roots *roots, const char *path);

/* Whether a place may be taken away, which a root may not, nor what holds one: ABX_E_PATH. */
struct abx_path;
int abx_path_check_removal(const struct abx_path *path, const struct abx_roots *roots, struct abx_err *err);

/*
 * Open the base directory (created with its parents, mode 0755, if missing) as the one root. ABX_E_ERRNO when it cannot be made or is not a directory.
 */
int abx_roots_open(const char *base_dir, struct abx_roots *ret_roots, struct abx_err *err);

/* Called, by any thread, when a root turned out to be another directory by now, and was opened anew. NULL: nobody needs to know. Set before the first thread. */
extern void (*abx_roots_renewed)(void);

/*
 * The trees of an endpoint whose policy has lists of paths: `allow` (NULL: the base directory) less `deny` (or NULL). Where an allowed tree is missing, or is a file or a
 * glob, the nearest directory above it is opened. The base directory, if it lies in an allowed tree, stays where relative paths begin; else they begin in
 * the first tree. `rule` is borrowed.
 */
int abx_roots_open_lists(const char *base_dir, char *const *allow, char *const *deny, const char *rule, struct abx_roots *ret_roots,
			 struct abx_err *err);
void abx_roots_release(struct abx_roots *roots);

enum abx_path_flags {
	ABX_PATH_NOFOLLOW = 1 << 0, /* act on a link that is the last component, not on what it points to */
	ABX_PATH_MISSING = 1 << 1,  /* nothing there is not an error: fd is -1 */
	ABX_PATH_PARENTS = 1 << 2,  /* make missing parent directories; implies ABX_PATH_MISSING */
};

/* A resolved path. */
struct abx_path {
	int fd;         /* O_PATH | O_CLOEXEC descriptor of what is there, or -1 */
	int parent_fd;  /* O_PATH descriptor of the directory that holds it; -1 for a root itself, and where the parent is missing */
	char *name;     /* the last component, inside parent_fd (after links were followed) */
	char *resolved; /* the absolute path without links, for answers */
	struct stat st; /* of fd, when it is not -1 */
};

#define ABX_PATH_INIT { .fd = -1, .parent_fd = -1 }

/*
 * Resolve `path` (not empty, no NUL). Failures: ABX_E_PATH for a place outside the roots, whether or not something is there; ABX_E_NO_FILE when something is
 * missing and ABX_PATH_MISSING was not given; a parent that is a file counts as something missing, but with ABX_PATH_PARENTS it is ABX_E_VALUE
 * (message "Not a directory: …"), like a name or path that is too long and too many links; ABX_E_ERRNO otherwise. The caller releases *ret_path.
 */
int abx_path_resolve(const struct abx_roots *roots, const char *path, unsigned flags, struct abx_path *ret_path,
		     struct abx_err *err);
void abx_path_release(struct abx_path *path);
#define abx_auto_path __attribute__((cleanup(abx_path_release)))

/*
 * Open what an abx_path stands for, through its descriptor, with `open_flags` (O_CLOEXEC | O_NOCTTY | O_NONBLOCK are added: a FIFO never blocks the call). Returns a
 * descriptor, or -1 with ABX_E_ERRNO.
 */
int abx_path_open(const struct abx_path *path, int open_flags, struct abx_err *err);

/*
 * An atomic write: a nameless or randomly named temporary file in the target's directory, renamed over the target at commit. On any failure, and when
 * released before the commit, the old file is intact and nothing is left behind.
 */
struct abx_replacement {
	int fd;              /* write here */
	const struct abx_path *target;
	char temporary[32];  /* name in target->parent_fd, or "" while the file is nameless (O_TMPFILE) */
};

#define ABX_REPLACEMENT_INIT { .fd = -1 }

/* Begin to replace (or make) `target`, which was resolved with ABX_PATH_MISSING and is no directory. The new file gets the old one's mode, else `mode` less the umask. */
int abx_replacement_begin(const struct abx_path *target, mode_t mode, struct abx_replacement *ret, struct abx_err *err);

/* Put it in place. With `overwrite` false and something there by now: ABX_E_FILE_EXISTS. */
int abx_replacement_commit(struct abx_replacement *rep, bool overwrite, struct abx_err *err);
void abx_replacement_release(struct abx_replacement *rep);
#define abx_auto_replacement __attribute__((cleanup(abx_replacement_release)))

/* write(2) until all is written. Returns 0 or -1 with errno. */
int abx_write_all(int fd, const void *data, size_t len);

#endif
