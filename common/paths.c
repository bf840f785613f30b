#include "common/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/paths_internal.h"
#include "common/strbuf.h"

#define WALKS_MAX 8 /* of one path, when directories are moved meanwhile */

static int open_how(int dir_fd, const char *path, int flags, unsigned long long resolve)
{
	struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC), .resolve = resolve };

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* Skip slashes and "." components. */
static const char *skip_nothing(const char *path)
{
	while (*path == '/' || (*path == '.' && (path[1] == '/' || !path[1])))
		path++;
	return path;
}

const char *abx_path_below(const char *tree, const char *path)
{
	for (;;) {
		tree = skip_nothing(tree);
		path = skip_nothing(path);
		size_t len = strcspn(tree, "/");

		if (len == 0)
			return path;
		if (strncmp(tree, path, len) != 0 || (path[len] && path[len] != '/'))
			return NULL;
		tree += len;
		path += len;
	}
}

char *abx_path_of_fd(int fd)
{
	static const char deleted[] = " (deleted)";
	char link[32], text[PATH_MAX];
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, text, sizeof(text));
	if (n <= 0 || (size_t)n >= sizeof(text) || text[0] != '/')
		return NULL;
	text[n] = '\0';
	/* The kernel marks a removed directory; a living one may have such a name. */
	if ((size_t)n >= sizeof(deleted) && strcmp(text + n - strlen(deleted), deleted) == 0 &&
	    (fstat(fd, &st) < 0 || st.st_nlink == 0))
		return NULL;
	return strdup(text);
}

/* `dir` without repeated slashes and ".", made absolute. To be freed. */
static char *absolute(const char *dir)
{
	abx_auto_strbuf struct abx_strbuf sb = ABX_STRBUF_INIT;
	abx_auto_free char *cwd = *dir == '/' ? NULL : getcwd(NULL, 0);

	if (cwd && strcmp(cwd, "/") != 0)
		abx_strbuf_adds(&sb, cwd);
	for (const char *p = skip_nothing(dir); *p; p = skip_nothing(p)) {
		size_t len = strcspn(p, "/");

		abx_strbuf_addc(&sb, '/');
		abx_strbuf_add(&sb, p, len);
		p += len;
	}
	if (sb.len == 0)
		abx_strbuf_addc(&sb, '/');
	return *dir == '/' || cwd ? abx_strbuf_detach(&sb) : NULL;
}

/* Open a directory, made with its parents where it is missing. Returns the descriptor, or -1 with errno. */
static int open_base(char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), why = 0;

	if (fd >= 0 || errno != ENOENT)
		return fd;
	for (char *slash = path; slash;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST && !why)
			why = errno;
		if (slash)
			*slash = '/';
	}
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && why)
		errno = why;
	return fd;
}

int abx_roots_open(const char *base_dir, struct abx_roots *ret_roots, struct abx_err *err)
{
	abx_auto_free char *alias = absolute(base_dir);
	abx_auto_fd int fd = alias ? open_base(alias) : -1;
	abx_auto_free char *path = fd < 0 ? NULL : abx_path_of_fd(fd);
	struct abx_root *root;

	if (!path)
		return abx_err_errno(err, errno ? errno : ENOENT, "%s", base_dir);
	root = malloc(sizeof(*root));
	if (!root)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	bool same = strcmp(path, alias) == 0;
	*root = (struct abx_root){ .path = ABX_STEAL(path), .alias = same ? NULL : ABX_STEAL(alias), .fd = abx_steal_fd(&fd) };
	*ret_roots = (struct abx_roots){ .roots = root, .n = 1 };
	return 0;
}

void abx_roots_release(struct abx_roots *roots)
{
	for (size_t i = 0; i < roots->n; i++) {
		free(roots->roots[i].path);
		free(roots->roots[i].alias);
		free(roots->roots[i].only);
		abx_cleanup_fd(&roots->roots[i].fd);
	}
	for (char **glob = roots->deny; glob && *glob; glob++)
		free(*glob);
	free(roots->deny);
	free(roots->start);
	free(roots->roots);
	*roots = (struct abx_roots){ 0 };
}

void abx_path_release(struct abx_path *path)
{
	abx_cleanup_fd(&path->fd);
	abx_cleanup_fd(&path->parent_fd);
	free(path->name);
	free(path->resolved);
	*path = (struct abx_path)ABX_PATH_INIT;
}

void (*abx_roots_renewed)(void);

/*
 * Where a root's directory was removed and made again, take the new one, under the same descriptor number: other threads are
 * using it. Returns whether anything changed. Links on the way are not followed: the root's path had none.
 */
static bool roots_renew(const struct abx_roots *roots)
{
	bool renewed = false;

	for (size_t i = 0; i < roots->n; i++) {
		const struct abx_root *root = &roots->roots[i];
		abx_auto_fd int fd = open_how(AT_FDCWD, root->path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
		struct stat here, held;

		if (fd < 0 && (errno == ENOSYS || errno == EPERM))
			fd = open(root->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &here) < 0 || fstat(root->fd, &held) < 0)
			continue;
		if (here.st_dev != held.st_dev || here.st_ino != held.st_ino)
			renewed |= dup3(fd, root->fd, O_CLOEXEC) >= 0;
	}
	if (renewed && abx_roots_renewed)
		abx_roots_renewed();
	return renewed;
}

/* Cut the last component off the relative path `rest`. Returns it; *ret_dir is what is before it; *ret_slash: something like "x/". */
static char *split(char *rest, const char **ret_dir, bool *ret_slash)
{
	size_t len = strlen(rest);
	char *slash;

	while (len > 0 && rest[len - 1] == '/')
		len--;
	*ret_slash = rest[len] == '/';
	rest[len] = '\0';
	slash = strrchr(rest, '/');
	*ret_dir = slash ? rest : ".";
	if (!slash)
		return rest;
	*slash = '\0';
	return slash + 1;
}

/* The root itself. */
static int quick_root(const struct abx_root *root, struct abx_path *ret_path)
{
	const char *slash = strrchr(root->path, '/');
	abx_auto_path struct abx_path path = ABX_PATH_INIT;

	path.fd = open_how(root->fd, ".", O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
	if (path.fd < 0)
		return errno;
	path.resolved = abx_path_of_fd(path.fd);
	path.name = strdup(slash && slash[1] ? slash + 1 : "/");
	if (!path.resolved || !path.name || fstat(path.fd, &path.st) < 0)
		return ENOENT;
	*ret_path = path;
	path = (struct abx_path)ABX_PATH_INIT;
	return 0;
}

/*
 * The quick way to `rest` below `root`: the kernel finds the directory, and the last component is taken as it is. Returns 0,
 * ENOENT (only the last component is missing), or another errno: the walk has to tell.
 */
static int quick(const struct abx_root *root, const char *rest, unsigned flags, struct abx_path *ret_path)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	abx_auto_free char *copy = strdup(rest), *dir_path = NULL;
	const char *dir, *name;
	bool slash;

	if (!copy)
		return ENOMEM;
	name = split(copy, &dir, &slash);
	if (!*name)
		return quick_root(root, ret_path);
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return EXDEV;
	path.parent_fd = open_how(root->fd, dir, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
	if (path.parent_fd < 0)
		return EXDEV;
	path.fd = openat(path.parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path.fd < 0 && (errno != ENOENT || !(flags & ABX_PATH_MISSING)))
		return errno;
	if (path.fd >= 0 && fstat(path.fd, &path.st) < 0)
		return errno;
	if (path.fd >= 0 && S_ISLNK(path.st.st_mode) && !(flags & ABX_PATH_NOFOLLOW))
		return EXDEV;
	/* Behind "link/" there may be a directory. */
	if (path.fd >= 0 && slash && !S_ISDIR(path.st.st_mode))
		return EXDEV;
	dir_path = abx_path_of_fd(path.parent_fd);
	path.name = strdup(name);
	if (!dir_path || !path.name || asprintf(&path.resolved, "%s/%s", strcmp(dir_path, "/") ? dir_path : "", name) < 0) {
		path.resolved = NULL;
		return EXDEV;
	}
	*ret_path = path;
	path = (struct abx_path)ABX_PATH_INIT;
	return 0;
}

/* What remains of `path` below a root of which it speaks letter for letter, or NULL. */
static const char *match(const struct abx_roots *roots, const char *path, const struct abx_root **ret_root)
{
	if (*path != '/' && roots->start)
		return NULL;
	if (*path != '/') {
		*ret_root = &roots->roots[0];
		return skip_nothing(path);
	}
	for (size_t i = 0; i < roots->n; i++) {
		const struct abx_root *root = &roots->roots[i];
		const char *rest = abx_path_below(root->path, path);

		if (!rest && root->alias)
			rest = abx_path_below(root->alias, path);
		if (rest) {
			*ret_root = root;
			return rest;
		}
	}
	return NULL;
}

/* Walk to `path`. */
static int walk(const struct abx_roots *roots, const char *path, unsigned flags, struct abx_path *ret_path)
{
	const char *start = roots->start ? roots->start : roots->roots[0].path;
	abx_auto_free char *full = NULL;
	int why = EAGAIN;

	if ((*path == '/' ? asprintf(&full, "%s", path) : asprintf(&full, "%s/%s", start, path)) < 0) {
		full = NULL;
		return ENOMEM;
	}
	for (int i = 0; why == EAGAIN && i < WALKS_MAX; i++)
		why = abx_path_walk(roots, full, flags, ret_path);
	return why;
}

/* Whether `rest` below the root is this place letter for letter, so that no link was on the way, and is not off limits. */
static bool is_plainly(const struct abx_roots *roots, const struct abx_root *root, const char *rest, const char *resolved)
{
	const char *place = abx_path_below(root->path, resolved);
	size_t len = strlen(rest);

	while (len > 0 && rest[len - 1] == '/')
		len--;
	return place && strlen(place) == len && memcmp(place, rest, len) == 0 && !abx_roots_deny(roots, resolved);
}

static int resolve(const struct abx_roots *roots, const char *path, unsigned flags, struct abx_path *ret_path)
{
	const struct abx_root *root;
	const char *rest = match(roots, path, &root);
	int why = rest ? quick(root, rest, flags, ret_path) : EXDEV;

	if (why == 0 && roots->picky && !is_plainly(roots, root, rest, ret_path->resolved)) {
		abx_path_release(ret_path);
		why = EXDEV;
	}
	if (why == 0 && ret_path->fd >= 0)
		return 0;
	/* Something is missing, or the kernel could not say: it may be that the root is another directory by now. */
	bool renewed = roots_renew(roots);
	if (why == 0 && !renewed)
		return 0;
	if (why == 0)
		abx_path_release(ret_path);
	if (why == ENOENT && !renewed && !roots->picky)
		return why;
	return walk(roots, path, flags, ret_path);
}

int abx_path_resolve(const struct abx_roots *roots, const char *path, unsigned flags, struct abx_path *ret_path, struct abx_err *err)
{
	struct abx_path found = ABX_PATH_INIT;
	int why;

	if (flags & ABX_PATH_PARENTS)
		flags |= ABX_PATH_MISSING;
	why = strlen(path) < PATH_MAX ? resolve(roots, path, flags, &found) : ENAMETOOLONG;
	switch (why) {
	case 0:
		*ret_path = found;
		return 0;
	case ABX_PATH_DENIED:
		return abx_err_rule(err, ABX_E_PATH, roots->rule ? roots->rule : "", "Path is off limits: %s", path);
	case EXDEV:
		return abx_err_rule(err, ABX_E_PATH, roots->replaced ? roots->rule : "", "Path is outside the allowed directories: %s", path);
	case ENOENT:
		return abx_err_set(err, ABX_E_NO_FILE, "No such file or directory: %s", path);
	case ENOTDIR:
		/* To somebody who reads, what would be below a file is missing. */
		return abx_err_set(err, flags & ABX_PATH_PARENTS ? ABX_E_VALUE : ABX_E_NO_FILE, "Not a directory: %s", path);
	case ENAMETOOLONG:
		return abx_err_set(err, ABX_E_VALUE, "File name too long: %s", path);
	case ELOOP:
		return abx_err_set(err, ABX_E_VALUE, "Too many levels of symbolic links: %s", path);
	default:
		return abx_err_errno(err, why, "%s", path);
	}
}

int abx_path_open(const struct abx_path *path, int open_flags, struct abx_err *err)
{
	char link[32];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path->fd);
	fd = path->fd < 0 ? -1 : open(link, open_flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		abx_err_errno(err, path->fd < 0 ? ENOENT : errno, "%s", path->resolved);
	return fd;
}

int abx_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}
