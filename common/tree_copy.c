#include "common/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/ids.h"
#include "common/strbuf.h"

/* Two descriptors and a frame of the stack for each level. */
#define LEVELS_MAX 128

#define PIECE ((size_t)16 << 20)

struct copy {
	const char *shown; /* the path that messages name */
	unsigned depth;
	struct abx_err *err;
};

static int copy_entry(struct copy *copy, int from_fd, const char *name, int to_fd, const char *new_name);

static int failed(const struct copy *copy, int os_errno, const char *name)
{
	return abx_err_errno(copy->err, os_errno, "Cannot copy %s (in %s)", name, copy->shown);
}

/* Owner, mode and times of an open file or directory. */
static int copy_attributes(int fd, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	/* Only root can give files away; bits that run a program as its owner are not for another owner's copy. */
	bool owned = fchown(fd, st->st_uid, st->st_gid) == 0;
	if (fchmod(fd, st->st_mode & (owned ? 07777 : 0777)) < 0)
		return -1;
	return futimens(fd, times);
}

static int copy_bytes(int from, int to)
{
	ssize_t n;

	do
		n = sendfile(to, from, NULL, PIECE);
	while (n > 0);
	return (int)n;
}

static int copy_file(struct copy *copy, int from_fd, const char *name, int to_fd, const char *new_name)
{
	abx_auto_fd int from = abx_open_entry(from_fd, name, O_RDONLY);
	abx_auto_fd int to = -1;
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0)
		return failed(copy, errno, name);
	if (!S_ISREG(st.st_mode))
		return failed(copy, EBUSY, name);
	to = openat(to_fd, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0 || copy_bytes(from, to) < 0 || copy_attributes(to, &st) < 0)
		return failed(copy, errno, name);
	return 0;
}

static int copy_link(struct copy *copy, int from_fd, const char *name, int to_fd, const char *new_name, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	char text[PATH_MAX];
	ssize_t n = readlinkat(from_fd, name, text, sizeof(text) - 1);

	if (n < 0)
		return failed(copy, errno, name);
	text[n] = '\0';
	if (symlinkat(text, to_fd, new_name) < 0)
		return failed(copy, errno, name);
	/* What cannot be kept of a link changes nothing of what it does. */
	if (fchownat(to_fd, new_name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != EPERM)
		return failed(copy, errno, name);
	utimensat(to_fd, new_name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static int copy_contents(struct copy *copy, DIR *dir, int to)
{
	const struct dirent *entry;

	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (copy_entry(copy, dirfd(dir), name, to, name) < 0)
			return -1;
	}
	return errno ? failed(copy, errno, copy->shown) : 0;
}

static int copy_directory(struct copy *copy, int from_fd, const char *name, int to_fd, const char *new_name)
{
	abx_auto_fd int from = abx_open_entry(from_fd, name, O_RDONLY | O_DIRECTORY);
	abx_auto_fd int to = -1;
	abx_auto_dir DIR *dir = NULL;
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0)
		return failed(copy, errno, name);
	if (copy->depth == LEVELS_MAX)
		return abx_err_set(copy->err, ABX_E_VALUE, "A tree of more than %d levels cannot be moved to another file system: %s",
				   LEVELS_MAX, copy->shown);
	dir = fdopendir(from);
	if (!dir)
		return failed(copy, errno, name);
	abx_steal_fd(&from);
	if (mkdirat(to_fd, new_name, 0700) < 0 || (to = abx_open_entry(to_fd, new_name, O_RDONLY | O_DIRECTORY)) < 0)
		return failed(copy, errno, name);
	copy->depth++;
	if (copy_contents(copy, dir, to) < 0)
		return -1;
	copy->depth--;
	return copy_attributes(to, &st) < 0 ? failed(copy, errno, name) : 0;
}

static int copy_entry(struct copy *copy, int from_fd, const char *name, int to_fd, const char *new_name)
{
	struct stat st;

	if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return failed(copy, errno, name);
	if (S_ISDIR(st.st_mode))
		return copy_directory(copy, from_fd, name, to_fd, new_name);
	if (S_ISREG(st.st_mode))
		return copy_file(copy, from_fd, name, to_fd, new_name);
	if (S_ISLNK(st.st_mode))
		return copy_link(copy, from_fd, name, to_fd, new_name, &st);
	if (mknodat(to_fd, new_name, st.st_mode, st.st_rdev) < 0)
		return failed(copy, errno, name);
	return 0;
}

/* The half of a transfer that may not remain. */
static void discard(const struct abx_path *to, const char *temporary)
{
	const struct abx_roots none = { 0 };
	struct abx_path path = { .fd = -1, .parent_fd = to->parent_fd };
	struct abx_err unused = ABX_ERR_INIT;

	if (fstatat(to->parent_fd, temporary, &path.st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (asprintf(&path.name, "%s", temporary) < 0)
		return;
	path.resolved = path.name;
	abx_tree_delete(&path, &none, &unused);
	free(path.name);
}

static int put_in_place(const struct abx_path *to, const char *temporary, bool dir)
{
	int fd = to->parent_fd;

	if (dir) {
		if (renameat2(fd, temporary, fd, to->name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EINVAL && errno != ENOSYS)
			return -1;
	}
	return renameat(fd, temporary, fd, to->name);
}

int abx_tree_transfer(const struct abx_path *from, const struct abx_path *to, const struct abx_roots *roots, struct abx_err *err)
{
	struct copy copy = { .shown = from->resolved, .err = err };
	char temporary[32], digits[17];

	abx_id_hex(digits, 16);
	snprintf(temporary, sizeof(temporary), ".abx-%s.tmp", digits);
	if (copy_entry(&copy, from->parent_fd, from->name, to->parent_fd, temporary) < 0) {
		discard(to, temporary);
		return -1;
	}
	if (put_in_place(to, temporary, S_ISDIR(from->st.st_mode)) < 0) {
		abx_err_errno(err, errno, "%s", to->resolved);
		discard(to, temporary);
		return -1;
	}
	return abx_tree_delete(from, roots, err);
}
