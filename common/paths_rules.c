#include "common/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/glob.h"
#include "common/paths_internal.h"

/* ---- asking */

static bool is_covered(char *const *globs, const char *path)
{
	for (; *globs; globs++)
		if (abx_glob_path(*globs, path))
			return true;
	return false;
}

/* What lies in a directory that is off limits is so too, though the glob names the directory alone. */
bool abx_roots_deny_link(const struct abx_roots *roots, const char *path)
{
	char above[PATH_MAX];
	size_t len = strlen(path);

	if (!roots->deny || !*roots->deny)
		return false;
	/* No name that the kernel takes is so long. */
	if (len >= sizeof(above))
		return true;
	memcpy(above, path, len + 1);
	for (char *slash = above + len; slash && slash > above; slash = strrchr(above, '/')) {
		*slash = '\0';
		if (is_covered(roots->deny, above))
			return true;
	}
	return is_covered(roots->deny, "/");
}

/* Whether one of the trees, in the form that the policy gives them, holds the path. */
static bool is_allowed(const struct abx_roots *roots, const char *path)
{
	for (size_t i = 0; i < roots->n; i++) {
		const struct abx_root *root = &roots->roots[i];

		if (root->only ? abx_glob_path(root->only, path) : abx_path_below(root->path, path) != NULL)
			return true;
	}
	return false;
}

bool abx_roots_deny(const struct abx_roots *roots, const char *path)
{
	return roots->picky && (abx_roots_deny_link(roots, path) || !is_allowed(roots, path));
}

int abx_path_check_removal(const struct abx_path *path, const struct abx_roots *roots, struct abx_err *err)
{
	for (size_t i = 0; i < roots->n; i++)
		if (abx_path_below(path->resolved, roots->roots[i].path))
			return abx_err_set(err, ABX_E_PATH, "Path is not allowed: it is the base directory, or holds it: %s", path->resolved);
	return 0;
}

/* ---- opening */

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

/* Split a glob: the length of the directory part in which all that it matches lies. Without a special character that is all of it. */
static size_t literal_part(const char *glob)
{
	size_t len = strcspn(glob, "*?[");

	if (glob[len])
		while (len > 0 && glob[len] != '/')
			len--;
	return len;
}

/* Open the longest part of the directory path that is there. Cuts `path` to it. Returns the descriptor, or -1. */
static int open_nearest(char *path)
{
	for (;;) {
		int fd = open(*path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		char *slash = strrchr(path, '/');

		if (fd >= 0 || !slash)
			return fd;
		*slash = '\0';
	}
}

/*
 * A glob with its directory part as the kernel knows it: where a link is on the way, what it matches is found under another name. NULL with errno. `*ret_fd` gets the
 * directory, `*ret_dir` its path.
 */
static char *canonical_glob(const char *glob, int *ret_fd, char **ret_dir)
{
	abx_auto_free char *near = strndup(glob, literal_part(glob));
	abx_auto_fd int fd = near ? open_nearest(near) : -1;
	abx_auto_free char *dir = fd < 0 ? NULL : abx_path_of_fd(fd);
	char *text;

	if (!dir || asprintf(&text, "%s%s", strcmp(dir, "/") ? dir : "", glob + strlen(near)) < 0)
		return NULL;
	*ret_fd = abx_steal_fd(&fd);
	*ret_dir = ABX_STEAL(dir);
	return text;
}

static int add_text(char ***list, size_t *n, char *text)
{
	char **grown = realloc(*list, (*n + 2) * sizeof(*grown));

	if (!grown)
		return -1;
	*list = grown;
	grown[(*n)++] = text;
	grown[*n] = NULL;
	return 0;
}

/* Each deny glob as it was written, and as the kernel will spell what it covers. */
static int add_denied(struct abx_roots *roots, char *const *deny)
{
	size_t n = 0;

	for (; deny && *deny; deny++) {
		abx_auto_free char *text = strdup(*deny), *dir = NULL, *canonical = NULL;
		abx_auto_fd int fd = -1;

		if (**deny == '/')
			canonical = canonical_glob(*deny, &fd, &dir);
		if (!text || add_text(&roots->deny, &n, text) < 0)
			return -1;
		text = NULL;
		if (canonical && strcmp(canonical, *deny) != 0) {
			if (add_text(&roots->deny, &n, canonical) < 0)
				return -1;
			canonical = NULL;
		}
	}
	roots->picky |= n > 0;
	return 0;
}

/* One allowed tree, or what a glob matches. */
static int add_allowed(struct abx_roots *roots, const char *glob)
{
	struct abx_root *root = &roots->roots[roots->n];
	abx_auto_free char *dir = NULL, *canonical = NULL, *from_root = NULL;
	abx_auto_fd int fd = -1;
	bool whole;

	/* "**" and what follows it begin at the root. */
	if (*glob != '/' && asprintf(&from_root, "/%s", glob) < 0) {
		from_root = NULL;
		return -1;
	}
	glob = from_root ? from_root : glob;
	canonical = canonical_glob(glob, &fd, &dir);
	if (!canonical)
		return -1;
	whole = strcmp(canonical, dir) == 0 && !glob[strcspn(glob, "*?[")];
	*root = (struct abx_root){ .fd = abx_steal_fd(&fd) };
	if (whole && strcmp(glob, dir) != 0) {
		root->alias = strdup(glob);
		if (!root->alias)
			return -1;
	}
	root->path = ABX_STEAL(dir);
	if (!whole) {
		root->only = ABX_STEAL(canonical);
		roots->picky = true;
	}
	roots->n++;
	return 0;
}

static int add_all_allowed(struct abx_roots *roots, struct abx_root *base, char *const *allow)
{
	size_t n = 1;

	while (allow[n - 1])
		n++;
	roots->roots = calloc(n, sizeof(*roots->roots));
	if (!roots->roots)
		return -1;
	for (; *allow; allow++)
		if (add_allowed(roots, *allow) < 0)
			return -1;
	/* Being inside anyway, the base directory gives nothing away when it comes first, and relative paths begin there. */
	if (is_allowed(roots, base->path)) {
		memmove(&roots->roots[1], &roots->roots[0], roots->n * sizeof(*roots->roots));
		roots->roots[0] = *base;
		roots->n++;
		*base = (struct abx_root){ .fd = -1 };
	} else if (roots->roots[0].only) {
		/* It may be made later. */
		roots->start = strndup(roots->roots[0].only, literal_part(roots->roots[0].only));
		if (!roots->start)
			return -1;
	}
	roots->replaced = true;
	return 0;
}

int abx_roots_open_lists(const char *base_dir, char *const *allow, char *const *deny, const char *rule, struct abx_roots *ret_roots,
			 struct abx_err *err)
{
	struct abx_roots base, roots = { .rule = rule };
	int result = 0;

	if (abx_roots_open(base_dir, &base, err) < 0)
		return -1;
	if (allow) {
		result = add_all_allowed(&roots, &base.roots[0], allow);
		abx_roots_release(&base);
	} else {
		roots.roots = base.roots;
		roots.n = base.n;
	}
	if (result < 0 || add_denied(&roots, deny) < 0) {
		abx_roots_release(&roots);
		return out_of_memory(err);
	}
	*ret_roots = roots;
	return 0;
}
