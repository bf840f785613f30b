#include "common/paths_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/strbuf.h"

#define LINKS_MAX 40 /* as the kernel has it */

/* What was walked so far is a chain of places that are there: "/", then each component. */
struct level {
	dev_t dev;
	ino_t ino;
	size_t place_len; /* of its path in walk.place */
	bool root;        /* it is a root */
	bool inside;      /* it is a root, or below one */
};

/*
 * Behind the chain there may be components that could not be looked at: because they are missing, below a file, or behind a directory that may not be
 * searched. They count as directories without links, so that ".." takes them away again. Only what is left of
 * them in the end matters. So the answer for a place outside is the same whether or not it is there.
 */
struct walk {
	const struct abx_roots *roots;
	struct level *levels;
	size_t n, alloc;
	int fd;        /* of the last level */
	int parent_fd; /* of the level before, or -1 when it is not at hand */
	struct stat st; /* of the last level */
	size_t unseen;  /* components behind the chain */
	int why;        /* the errno of the first of them */
	struct abx_strbuf place; /* the path of all of it, without links; "" is "/" */
	char *rest;     /* what is still to be walked, in a buffer of our own */
	char *p;        /* where in it */
	int links;      /* followed so far */
	bool slash;     /* it ends as only a directory may */
	unsigned flags;
};

static void walk_release(struct walk *w)
{
	abx_cleanup_fd(&w->fd);
	abx_cleanup_fd(&w->parent_fd);
	free(w->levels);
	free(w->rest);
	abx_strbuf_release(&w->place);
}

static bool is_root(const struct walk *w, const struct stat *st)
{
	for (size_t i = 0; S_ISDIR(st->st_mode) && i < w->roots->n; i++) {
		struct stat root;

		if (fstat(w->roots->roots[i].fd, &root) == 0 && root.st_dev == st->st_dev && root.st_ino == st->st_ino)
			return true;
	}
	return false;
}

/* Add a level, whose path is in w->place by now. Takes `fd` over. Returns 0 or an errno. */
static int push(struct walk *w, int fd, const struct stat *st)
{
	bool root = is_root(w, st);

	if (w->n == w->alloc) {
		size_t alloc = w->alloc ? w->alloc * 2 : 16;
		struct level *grown = realloc(w->levels, alloc * sizeof(*grown));

		if (!grown) {
			close(fd);
			return ENOMEM;
		}
		w->levels = grown;
		w->alloc = alloc;
	}
	w->levels[w->n] = (struct level){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.place_len = w->place.len,
		.root = root,
		.inside = root || (w->n > 0 && w->levels[w->n - 1].inside),
	};
	w->n++;
	abx_cleanup_fd(&w->parent_fd);
	w->parent_fd = w->fd;
	w->fd = fd;
	w->st = *st;
	return 0;
}

/* Begin (again) at "/". */
static int restart(struct walk *w)
{
	struct stat st;
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	abx_cleanup_fd(&w->fd);
	abx_cleanup_fd(&w->parent_fd);
	w->fd = w->parent_fd = -1;
	w->n = w->unseen = 0;
	abx_strbuf_truncate(&w->place, 0);
	if (fstat(fd, &st) < 0) {
		close(fd);
		return EIO;
	}
	return push(w, fd, &st);
}

/* Open the directory above the last level. It has to be the one that we came through: EAGAIN when the last one was moved. */
static int open_above(const struct walk *w, int *ret_fd, struct stat *ret_st)
{
	const struct level *above = &w->levels[w->n - 2];
	abx_auto_fd int fd = openat(w->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret_st) < 0)
		return errno;
	if (ret_st->st_dev != above->dev || ret_st->st_ino != above->ino)
		return EAGAIN;
	*ret_fd = abx_steal_fd(&fd);
	return 0;
}

static int step_up(struct walk *w)
{
	int why;

	if (w->unseen > 0) {
		w->unseen--;
		abx_strbuf_truncate(&w->place, (size_t)(strrchr(w->place.buf, '/') - w->place.buf));
		return 0;
	}
	if (w->n == 1)
		return 0;
	if (w->parent_fd < 0) {
		why = open_above(w, &w->parent_fd, &w->st);
		if (why)
			return why;
	} else if (fstat(w->parent_fd, &w->st) < 0) {
		return errno;
	}
	close(w->fd);
	w->fd = abx_steal_fd(&w->parent_fd);
	w->n--;
	abx_strbuf_truncate(&w->place, w->levels[w->n - 1].place_len);
	return 0;
}

/* Note a component that could not be looked at because of `why`. */
static int step_unseen(struct walk *w, const char *name, int why)
{
	if (why == EMFILE || why == ENFILE || why == ENOMEM)
		return why;
	/* Directories are made only when all of them can be. */
	if (w->unseen == 0 || (w->why == ENOENT && strlen(name) > NAME_MAX))
		w->why = w->unseen == 0 ? why : ENAMETOOLONG;
	w->unseen++;
	abx_strbuf_addc(&w->place, '/');
	abx_strbuf_adds(&w->place, name);
	return 0;
}

/* The links of procfs show what a process has, this one above all, whatever their text says. The kernel calls them magic, and does not follow them beneath. */
static bool is_magic(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Put the text of the link `fd` in front of what is still to be walked. `more`: a slash came behind the link. */
static int follow(struct walk *w, const char *name, int fd, bool more)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(fd, "", text, sizeof(text));
	size_t rest_size = strlen(w->p) + 1;
	char *grown;

	if (is_magic(fd))
		return EXDEV;
	if (n <= 0 || (size_t)n >= sizeof(text))
		return step_unseen(w, name, n < 0 ? errno : ENAMETOOLONG);
	if (w->links++ == LINKS_MAX)
		return w->levels[w->n - 1].inside ? ELOOP : EXDEV;
	grown = malloc((size_t)n + 1 + rest_size);
	if (!grown)
		return ENOMEM;
	memcpy(grown, text, (size_t)n);
	grown[n] = '/';
	memcpy(grown + n + more, w->p, rest_size);
	free(w->rest);
	w->rest = w->p = grown;
	return *grown == '/' ? restart(w) : 0;
}

/* Whether the link `name` in the last level is off limits. */
static bool is_denied_link(struct walk *w, const char *name)
{
	size_t len = w->place.len;
	bool denied;

	if (!w->roots->deny)
		return false;
	abx_strbuf_addc(&w->place, '/');
	abx_strbuf_adds(&w->place, name);
	denied = abx_roots_deny_link(w->roots, w->place.buf);
	abx_strbuf_truncate(&w->place, len);
	return denied;
}

/* `more`: a slash comes behind the name; `last`: no further name does. The name may be gone with w->rest afterwards. */
static int step_down(struct walk *w, const char *name, bool more, bool last)
{
	abx_auto_fd int fd = -1;
	struct stat st;

	if (w->unseen > 0)
		return step_unseen(w, name, w->why);
	fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return step_unseen(w, name, errno);
	if (S_ISLNK(st.st_mode) && !(last && !more && (w->flags & ABX_PATH_NOFOLLOW)))
		return is_denied_link(w, name) ? ABX_PATH_DENIED : follow(w, name, fd, more);
	abx_strbuf_addc(&w->place, '/');
	abx_strbuf_adds(&w->place, name);
	return push(w, abx_steal_fd(&fd), &st);
}

/* Walk all components. Returns 0 or an errno. */
static int walk_all(struct walk *w)
{
	int why = restart(w);

	while (!why) {
		char *name = w->p + strspn(w->p, "/"), *end = name + strcspn(name, "/");
		bool more = *end == '/', dot, last;

		if (!*name)
			break;
		*end = '\0';
		w->p = end + more;
		w->p += strspn(w->p, "/");
		last = !*w->p;
		dot = strcmp(name, ".") == 0;
		w->slash = last && (more || dot);
		if (strcmp(name, "..") == 0)
			why = step_up(w);
		else if (!dot)
			why = step_down(w, name, more, last);
	}
	return !why && w->place.failed ? ENOMEM : why;
}

static bool is_inside(const struct walk *w)
{
	if (w->levels[w->n - 1].inside)
		return true;
	/* A root may be missing itself. */
	for (size_t i = 0; w->unseen > 0 && i < w->roots->n; i++) {
		if (abx_path_below(w->roots->roots[i].path, w->place.buf))
			return true;
	}
	return false;
}

/* Make the missing directories, all but the last component. Only ever below a root. */
static int make_parents(struct walk *w)
{
	abx_auto_free char *names = strdup(w->place.buf + w->levels[w->n - 1].place_len + 1);
	size_t place_len = w->place.len;
	char *name = names, *slash;

	if (!names)
		return ENOMEM;
	for (; (slash = strchr(name, '/')); name = slash + 1) {
		abx_auto_fd int fd = -1;
		struct stat st;
		int why;

		*slash = '\0';
		if (mkdirat(w->fd, name, 0777) < 0 && errno != EEXIST)
			return errno;
		fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return errno == ENOENT ? EAGAIN : errno;
		/* Another was quicker, with something else. */
		if (!S_ISDIR(st.st_mode))
			return EAGAIN;
		w->place.len = w->levels[w->n - 1].place_len + 1 + strlen(name);
		why = push(w, abx_steal_fd(&fd), &st);
		if (why)
			return why;
		w->unseen--;
	}
	w->place.len = place_len;
	return 0;
}

/* Fill in what does not depend on what is there. */
static int fill(const struct walk *w, struct abx_path *path)
{
	const char *name = strrchr(w->place.buf, '/');

	path->name = strdup(name ? name + 1 : "/");
	path->resolved = strdup(w->place.len ? w->place.buf : "/");
	return path->name && path->resolved ? 0 : ENOMEM;
}

/* Whether what is not there, or cannot be there since a file is above it, is no error. */
static bool may_be_missing(const struct walk *w, int why)
{
	if (why == ENOTDIR)
		return (w->flags & ABX_PATH_MISSING) && !(w->flags & ABX_PATH_PARENTS);
	return why == ENOENT && (w->flags & ABX_PATH_MISSING);
}

static int finish_missing(struct walk *w, struct abx_path *path)
{
	bool inside = w->levels[w->n - 1].inside;
	int why;

	if (!may_be_missing(w, w->why))
		return w->why;
	if (w->flags & ABX_PATH_PARENTS) {
		why = inside ? make_parents(w) : ENOENT;
		if (why)
			return why;
	}
	if (inside && w->unseen == 1 && S_ISDIR(w->st.st_mode))
		path->parent_fd = abx_steal_fd(&w->fd);
	return fill(w, path);
}

static int finish_found(struct walk *w, struct abx_path *path)
{
	struct stat above;
	int why;

	if (w->slash && !S_ISDIR(w->st.st_mode) && !may_be_missing(w, ENOTDIR))
		return ENOTDIR;
	if (!w->levels[w->n - 1].root && w->parent_fd < 0) {
		why = open_above(w, &w->parent_fd, &above);
		if (why)
			return why;
	}
	path->st = w->st;
	path->fd = abx_steal_fd(&w->fd);
	if (!w->levels[w->n - 1].root)
		path->parent_fd = abx_steal_fd(&w->parent_fd);
	return fill(w, path);
}

int abx_path_walk(const struct abx_roots *roots, const char *path, unsigned flags, struct abx_path *ret_path)
{
	__attribute__((cleanup(walk_release))) struct walk w = {
		.roots = roots, .fd = -1, .parent_fd = -1, .place = ABX_STRBUF_INIT, .flags = flags,
	};
	abx_auto_path struct abx_path found = ABX_PATH_INIT;
	int why;

	w.rest = w.p = strdup(path);
	if (!w.rest)
		return ENOMEM;
	why = walk_all(&w);
	if (why)
		return why;
	if (!is_inside(&w))
		return EXDEV;
	if (roots->picky && abx_roots_deny(roots, w.place.len ? w.place.buf : "/"))
		return ABX_PATH_DENIED;
	why = w.unseen ? finish_missing(&w, &found) : finish_found(&w, &found);
	if (why)
		return why;
	*ret_path = found;
	found = (struct abx_path)ABX_PATH_INIT;
	return 0;
}
