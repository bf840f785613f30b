#include "common/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/strbuf.h"

/* Names of one directory, in bytes. */
#define NAMES_MAX ((size_t)256 << 20)

/* Directories on the way down whose descriptors are kept. Further down only the last one is, and the way up goes by "..". */
#define KEPT_LEVELS 40

#define DENTS_SIZE ((size_t)32 << 10)

/* An entry to visit, or, where its text ends in '/', a directory to go into: sorted as text they come in the right order. */
struct item {
	uint32_t text; /* offset in level.names */
	unsigned char type;
};

struct level {
	int fd; /* -1: not kept */
	dev_t dev;
	ino_t ino;
	struct abx_strbuf names;
	struct item *items;
	size_t n, next;
	size_t path_len; /* of its own path in walk.path */
};

struct walk {
	const struct abx_tree *tree;
	struct level *levels;
	size_t n, alloc;
	struct abx_strbuf path;
	size_t top_len;
	char *dents;
};

int abx_open_entry(int dir_fd, const char *name, int open_flags)
{
	return openat(dir_fd, name, open_flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void level_release(struct level *level)
{
	abx_cleanup_fd(&level->fd);
	abx_strbuf_release(&level->names);
	free(level->items);
}

static void walk_release(struct walk *w)
{
	while (w->n > 0)
		level_release(&w->levels[--w->n]);
	free(w->levels);
	free(w->dents);
	abx_strbuf_release(&w->path);
}

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

/* ---- reading one directory */

static int add_item(struct level *level, size_t *alloc, const char *name, unsigned char type, bool below)
{
	if (level->n == *alloc) {
		size_t more = *alloc ? *alloc * 2 : 64;
		struct item *grown = realloc(level->items, more * sizeof(*grown));

		if (!grown)
			return -1;
		level->items = grown;
		*alloc = more;
	}
	level->items[level->n++] = (struct item){ .text = (uint32_t)level->names.len, .type = type };
	abx_strbuf_adds(&level->names, name);
	if (below)
		abx_strbuf_addc(&level->names, '/');
	abx_strbuf_addc(&level->names, '\0');
	return level->names.failed ? -1 : 0;
}

static int compare_items(const void *a, const void *b, void *names)
{
	return strcmp((const char *)names + ((const struct item *)a)->text, (const char *)names + ((const struct item *)b)->text);
}

/* Not every file system says what an entry is. */
static unsigned char find_type(int fd, const struct dirent64 *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	return fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (unsigned char)IFTODT(st.st_mode) : DT_UNKNOWN;
}

/* Read all names of level->fd. Returns 0 or an errno. */
static int read_names(struct walk *w, struct level *level, bool enter)
{
	size_t alloc = 0;
	ssize_t len;

	while ((len = getdents64(level->fd, w->dents, DENTS_SIZE)) > 0) {
		for (char *p = w->dents; p < w->dents + len;) {
			const struct dirent64 *entry = (const void *)p;
			const char *name = entry->d_name;

			p += entry->d_reclen;
			if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
				continue;
			unsigned char type = find_type(level->fd, entry);
			if (add_item(level, &alloc, name, type, false) < 0 ||
			    (type == DT_DIR && enter && add_item(level, &alloc, name, type, true) < 0))
				return ENOMEM;
		}
	}
	if (len < 0)
		return errno;
	if (level->n)
		qsort_r(level->items, level->n, sizeof(*level->items), compare_items, level->names.buf);
	return 0;
}

/* ---- going down and up */

/* Add the directory `fd`, which is taken over, and whose path stands in w->path. Returns 0 or an errno. */
static int push(struct walk *w, int fd)
{
	struct level level = { .fd = fd, .names = ABX_STRBUF_INIT_MAX(NAMES_MAX), .path_len = w->path.len };
	unsigned max_depth = w->tree->max_depth;
	struct stat st;
	int why = 0;

	if (w->n == w->alloc) {
		size_t alloc = w->alloc ? w->alloc * 2 : 8;
		struct level *grown = realloc(w->levels, alloc * sizeof(*grown));

		if (grown) {
			w->levels = grown;
			w->alloc = alloc;
		} else {
			why = ENOMEM;
		}
	}
	if (!why && fstat(fd, &st) < 0)
		why = errno;
	if (!why && w->tree->opened)
		w->tree->opened(w->tree->opened_ctx, fd);
	if (!why)
		why = read_names(w, &level, max_depth == 0 || w->n + 1 < max_depth);
	if (why) {
		level_release(&level);
		return why;
	}
	level.dev = st.st_dev;
	level.ino = st.st_ino;
	w->levels[w->n++] = level;
	if (w->n > KEPT_LEVELS + 1)
		close(abx_steal_fd(&w->levels[w->n - 2].fd));
	return 0;
}

/* Leave the last level. Where the one above has no descriptor any more, it has to be the directory that we came through. */
static int pop(struct walk *w, struct abx_err *err)
{
	struct level *last = &w->levels[w->n - 1], *above = last - 1;
	struct stat st;

	if (w->n > 1 && above->fd < 0) {
		above->fd = abx_open_entry(last->fd, "..", O_RDONLY | O_DIRECTORY);
		if (above->fd < 0 || fstat(above->fd, &st) < 0)
			return abx_err_errno(err, errno, "%s", w->path.buf);
		if (st.st_dev != above->dev || st.st_ino != above->ino)
			return abx_err_set(err, ABX_E_INTERNAL, "A directory was moved while it was read: %s", w->path.buf);
	}
	level_release(last);
	w->n--;
	if (w->n > 0)
		abx_strbuf_truncate(&w->path, above->path_len);
	return 0;
}

/* Whether a directory that could not be opened is simply not there any more. */
static bool is_gone(int os_errno)
{
	return os_errno == ENOENT || os_errno == ENOTDIR || os_errno == ELOOP;
}

/* Go into the directory whose path stands in w->path. */
static int enter(struct walk *w, struct abx_err *err)
{
	const char *name = strrchr(w->path.buf, '/') + 1;
	int fd = abx_open_entry(w->levels[w->n - 1].fd, name, O_RDONLY | O_DIRECTORY);
	int why = fd < 0 ? errno : push(w, fd);

	if (!why)
		return 0;
	if (why == ENOMEM)
		return abx_err_set(err, ABX_E_INTERNAL, "A directory has too many entries for memory");
	if (is_gone(why) || (!(w->tree->flags & ABX_TREE_STRICT) && why != EMFILE && why != ENFILE))
		return 0;
	return abx_err_errno(err, why, "%s", w->path.buf);
}

/* ---- visiting */

static int visit(struct walk *w, const char *name, unsigned char type, struct abx_err *err)
{
	const struct level *level = &w->levels[w->n - 1];
	struct abx_tree_entry entry = {
		.path = w->path.buf,
		.relative = w->path.buf + w->top_len + 1,
		.name = name,
		.depth = (unsigned)w->n,
		.dir_fd = level->fd,
		.is_dir = type == DT_DIR,
	};

	if (w->tree->flags & ABX_TREE_STAT) {
		if (fstatat(level->fd, name, &entry.st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		entry.is_dir = S_ISDIR(entry.st.st_mode);
	}
	return w->tree->visit(w->tree->ctx, &entry, err);
}

/* The next item of the last level. */
static int step(struct walk *w, struct abx_err *err)
{
	struct level *level = &w->levels[w->n - 1];
	const struct item *item = &level->items[level->next++];
	const char *text = level->names.buf + item->text;
	size_t len = strlen(text);
	bool below = text[len - 1] == '/';

	abx_strbuf_truncate(&w->path, level->path_len);
	abx_strbuf_addc(&w->path, '/');
	abx_strbuf_add(&w->path, text, below ? len - 1 : len);
	if (w->path.failed)
		return out_of_memory(err);
	if (!abx_roots_deny(w->tree->roots, w->path.buf))
		return below ? enter(w, err) : visit(w, text, item->type, err);
	if (w->tree->flags & ABX_TREE_DENIED)
		return abx_err_set(err, ABX_E_PATH, "Path is not allowed: the tree holds something that is off limits");
	return 0;
}

int abx_tree_walk(const struct abx_tree *tree, struct abx_err *err)
{
	__attribute__((cleanup(walk_release))) struct walk w = {
		.tree = tree, .path = ABX_STRBUF_INIT, .dents = malloc(DENTS_SIZE),
	};
	const char *top = tree->top->resolved;
	int fd, why, result = 0;

	if (!w.dents)
		return out_of_memory(err);
	fd = abx_path_open(tree->top, O_RDONLY | O_DIRECTORY, err);
	if (fd < 0)
		return -1;
	abx_strbuf_adds(&w.path, strcmp(top, "/") == 0 ? "" : top);
	w.top_len = w.path.len;
	why = push(&w, fd);
	if (why == ENOMEM)
		return abx_err_set(err, ABX_E_INTERNAL, "The directory has too many entries for memory");
	if (why)
		return abx_err_errno(err, why, "%s", top);
	while (result == 0 && w.n > 0)
		result = w.levels[w.n - 1].next < w.levels[w.n - 1].n ? step(&w, err) : pop(&w, err);
	return result;
}
