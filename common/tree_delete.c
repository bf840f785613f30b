#include "common/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/strbuf.h"

#define DENTS_SIZE ((size_t)32 << 10)

/* As in a walk: further down only the last directory has a descriptor. */
#define KEPT_LEVELS 40

/* How often a directory is read again from its start because somebody else keeps putting things into it. */
#define PASSES_MAX 100

/* A directory that is being emptied. */
struct level {
	int fd; /* -1: not kept */
	dev_t dev;
	ino_t ino;
	char *batch; /* entries that were read, of which those before `pos` are done */
	size_t pos, len;
	size_t path_len;
	unsigned passes;
	bool found; /* something, since it was last read from its start */
};

struct deletion {
	const struct abx_roots *roots;
	struct level *levels;
	size_t n, alloc;
	struct abx_strbuf path;
	char *dents;
};

static void deletion_release(struct deletion *d)
{
	for (size_t i = 0; i < d->n; i++) {
		abx_cleanup_fd(&d->levels[i].fd);
		free(d->levels[i].batch);
	}
	free(d->levels);
	free(d->dents);
	abx_strbuf_release(&d->path);
}

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

static int failed(const struct deletion *d, int os_errno, struct abx_err *err)
{
	return abx_err_errno(err, os_errno, "%s", d->path.buf);
}

static struct level *add_level(struct deletion *d)
{
	if (d->n == d->alloc) {
		size_t alloc = d->alloc ? d->alloc * 2 : 8;
		struct level *grown = realloc(d->levels, alloc * sizeof(*grown));

		if (!grown)
			return NULL;
		d->levels = grown;
		d->alloc = alloc;
	}
	d->levels[d->n] = (struct level){ .fd = -1, .path_len = d->path.len };
	return &d->levels[d->n++];
}

/* Go into the directory whose path stands in d->path. What is no directory any more has been dealt with by somebody else. */
static int enter(struct deletion *d, int dir_fd, const char *name, struct abx_err *err)
{
	abx_auto_fd int fd = abx_open_entry(dir_fd, name, O_RDONLY | O_DIRECTORY);
	struct level *level;
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(d, errno, err);
	level = add_level(d);
	if (!level)
		return out_of_memory(err);
	level->fd = abx_steal_fd(&fd);
	level->dev = st.st_dev;
	level->ino = st.st_ino;
	if (d->n > KEPT_LEVELS + 1)
		close(abx_steal_fd(&d->levels[d->n - 2].fd));
	return 0;
}

/* A directory that somebody else has removed has none, whatever the kernel calls it. */
static ssize_t read_entries(const struct deletion *d, int fd)
{
	ssize_t n = getdents64(fd, d->dents, DENTS_SIZE);

	return n < 0 && errno == ENOENT ? 0 : n;
}

/* Read the next entries of the last level. 1: there are some; 0: it is empty, as far as we can make it so. */
static int read_batch(struct deletion *d, struct abx_err *err)
{
	struct level *level = &d->levels[d->n - 1];
	ssize_t n = read_entries(d, level->fd);

	if (n == 0 && level->found && level->passes++ < PASSES_MAX) {
		level->found = false;
		lseek(level->fd, 0, SEEK_SET);
		n = read_entries(d, level->fd);
	}
	free(level->batch);
	level->batch = NULL;
	level->pos = level->len = 0;
	if (n < 0)
		return failed(d, errno, err);
	if (n == 0)
		return 0;
	level->batch = malloc((size_t)n);
	if (!level->batch)
		return out_of_memory(err);
	memcpy(level->batch, d->dents, (size_t)n);
	level->len = (size_t)n;
	return 1;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Delete the next entry of the last level's batch, or go into it. */
static int step(struct deletion *d, struct abx_err *err)
{
	struct level *level = &d->levels[d->n - 1];
	const struct dirent64 *entry = (const void *)(level->batch + level->pos);

	level->pos += entry->d_reclen;
	if (is_dot(entry->d_name))
		return 0;
	level->found = true;
	abx_strbuf_truncate(&d->path, level->path_len);
	abx_strbuf_addc(&d->path, '/');
	abx_strbuf_adds(&d->path, entry->d_name);
	if (d->path.failed)
		return out_of_memory(err);
	if (abx_roots_deny(d->roots, d->path.buf))
		return abx_err_set(err, ABX_E_PATH, "Path is not allowed: the tree holds something that is off limits");
	if (entry->d_type == DT_DIR)
		return enter(d, level->fd, entry->d_name, err);
	if (unlinkat(level->fd, entry->d_name, 0) == 0 || errno == ENOENT)
		return 0;
	/* A directory whose type was not told, or that was put there just now. */
	if (errno == EISDIR || errno == EPERM) {
		struct stat st;
		int why = errno;

		if (fstatat(level->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
			return enter(d, level->fd, entry->d_name, err);
		errno = why;
	}
	return failed(d, errno, err);
}

/* The last level is empty: go up, and remove it from there. Not for the first level. */
static int leave(struct deletion *d, struct abx_err *err)
{
	struct level *last = &d->levels[d->n - 1], *above = last - 1;
	struct stat st;
	const char *name;

	abx_strbuf_truncate(&d->path, last->path_len);
	if (above->fd < 0) {
		above->fd = abx_open_entry(last->fd, "..", O_RDONLY | O_DIRECTORY);
		if (above->fd < 0 || fstat(above->fd, &st) < 0)
			return failed(d, errno, err);
		if (st.st_dev != above->dev || st.st_ino != above->ino)
			return abx_err_set(err, ABX_E_INTERNAL, "A directory was moved while it was deleted: %s", d->path.buf);
		/* Its place in the directory is lost: it is read again from the start when the batch is done. */
	}
	abx_cleanup_fd(&last->fd);
	last->fd = -1;
	free(last->batch);
	d->n--;
	name = strrchr(d->path.buf, '/') + 1;
	if (unlinkat(above->fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return failed(d, errno, err);
	return 0;
}

static int empty(struct deletion *d, struct abx_err *err)
{
	int result = 0;

	while (result == 0) {
		const struct level *level = &d->levels[d->n - 1];

		if (level->pos < level->len) {
			result = step(d, err);
			continue;
		}
		result = read_batch(d, err);
		if (result < 0)
			break;
		if (result == 0 && d->n == 1)
			break;
		result = result == 0 ? leave(d, err) : 0;
	}
	return result;
}

static int delete_tree(const struct abx_path *path, const struct abx_roots *roots, struct abx_err *err)
{
	__attribute__((cleanup(deletion_release))) struct deletion d = {
		.roots = roots, .path = ABX_STRBUF_INIT, .dents = malloc(DENTS_SIZE),
	};

	if (!d.dents)
		return out_of_memory(err);
	abx_strbuf_adds(&d.path, path->resolved);
	if (enter(&d, path->parent_fd, path->name, err) < 0 || (d.n > 0 && empty(&d, err) < 0))
		return -1;
	if (unlinkat(path->parent_fd, path->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return abx_err_errno(err, errno, "%s", path->resolved);
	return 0;
}

static int visit_nothing(void *ctx ABX_UNUSED, const struct abx_tree_entry *entry ABX_UNUSED, struct abx_err *err ABX_UNUSED)
{
	return 0;
}

int abx_tree_check_denied(const struct abx_path *path, const struct abx_roots *roots, struct abx_err *err)
{
	const struct abx_tree tree = {
		.top = path, .roots = roots, .flags = ABX_TREE_DENIED | ABX_TREE_STRICT, .visit = visit_nothing,
	};

	if (!roots->picky || path->fd < 0 || !S_ISDIR(path->st.st_mode))
		return 0;
	return abx_tree_walk(&tree, err);
}

int abx_tree_delete(const struct abx_path *path, const struct abx_roots *roots, struct abx_err *err)
{
	if (S_ISDIR(path->st.st_mode))
		return delete_tree(path, roots, err);
	if (unlinkat(path->parent_fd, path->name, 0) < 0 && errno != ENOENT)
		return abx_err_errno(err, errno, "%s", path->resolved);
	return 0;
}
