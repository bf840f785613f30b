/*
 * Directory trees: the paths door, further down. Everything goes by descriptors, one component at a time, and no link is followed, so whatever is swapped
 * meanwhile, nothing outside the tree is reached.
 */
#ifndef ABX_TREE_H
#define ABX_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/err.h"
#include "common/paths.h"

/* An entry, as a visitor sees it. */
struct abx_tree_entry {
	const char *path;     /* absolute */
	const char *relative; /* from the top of the walk: "a/b" */
	const char *name;     /* the last component */
	unsigned depth;       /* 1 for the entries of the top itself */
	int dir_fd;           /* the directory that holds it */
	bool is_dir;
	struct stat st;       /* of the entry itself, with ABX_TREE_STAT */
};

/* 0: go on; 1: enough, the walk ends well; -1: failed. */
typedef int abx_tree_visitor(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err);

enum abx_tree_flags {
	ABX_TREE_STAT = 1 << 0,   /* entries come with their stat */
	ABX_TREE_STRICT = 1 << 1, /* a directory that cannot be read is an error; otherwise it looks empty */
	ABX_TREE_DENIED = 1 << 2, /* an entry under a deny glob is ABX_E_PATH, and not left out */
};

struct abx_tree {
	const struct abx_path *top; /* a directory */
	const struct abx_roots *roots; /* entries under a deny glob are left out */
	unsigned max_depth; /* 0: no limit */
	unsigned flags;
	abx_tree_visitor *visit;
	void *ctx;
	/* Called with each directory before its names are read; may be NULL. */
	void (*opened)(void *ctx, int dir_fd);
	void *opened_ctx;
};

/*
 * Visit the entries below `top`, in the byte order of their relative paths ("a", "a-b", "a/x"). Memory is what the names of the directories on the way
 * need. What disappears meanwhile is left out. Returns 0 or 1 as the visitors did, or -1.
 */
int abx_tree_walk(const struct abx_tree *tree, struct abx_err *err);

/*
 * Delete what `path` (resolved with ABX_PATH_NOFOLLOW) stands for: a file, a link itself, or a tree. It is the place that counts: what somebody
 * else puts there meanwhile is deleted too, or left, but never followed. At a denied path it ends with ABX_E_PATH: ask abx_tree_check_denied first.
 */
int abx_tree_delete(const struct abx_path *path, const struct abx_roots *roots, struct abx_err *err);

/*
 * Move what a rename cannot: copy `from` (resolved with ABX_PATH_NOFOLLOW) beside `to` under another name, put it in place, and delete the source. Modes, times, links and, for
 * root, owners are kept. Until everything is copied nothing is changed, and nothing is left behind on failure. A directory only goes to where nothing is.
 */
int abx_tree_transfer(const struct abx_path *from, const struct abx_path *to, const struct abx_roots *roots, struct abx_err *err);

/* -1 with ABX_E_PATH when anything below `path` is under a deny glob. */
int abx_tree_check_denied(const struct abx_path *path, const struct abx_roots *roots, struct abx_err *err);

/*
 * Open an entry of a directory: a regular file or a directory, never through a link and never waiting (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC are
 * added). Returns a descriptor, or -1 with errno.
 */
int abx_open_entry(int dir_fd, const char *name, int open_flags);

#endif
