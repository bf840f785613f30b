#include "common/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/ids.h"

/* A link for a nameless file is made by its descriptor. */
#define FD_LINK_SIZE 32

static void fd_link(char out[FD_LINK_SIZE], int fd)
{
	snprintf(out, FD_LINK_SIZE, "/proc/self/fd/%d", fd);
}

static void random_name(char *out, size_t size)
{
	char digits[17];

	abx_id_hex(digits, 16);
	snprintf(out, size, ".abx-%s.tmp", digits);
}

/*
 * Make the new file look as the replaced one did to its users. Bits that run a program as somebody else do not outlive a change of what it
 * does, as with any write(2).
 */
static int copy_access(int fd, const struct stat *old)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	/* Only root can give a file away; anybody else's copy is their own. */
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) && fchown(fd, old->st_uid, old->st_gid) < 0 && errno != EPERM &&
	    errno != EINVAL)
		return -1;
	return fchmod(fd, old->st_mode & 0777);
}

static int fail(const struct abx_path *target, int os_errno, struct abx_err *err)
{
	switch (os_errno) {
	case EISDIR:
		return abx_err_set(err, ABX_E_VALUE, "Is a directory: %s", target->resolved);
	case EEXIST:
		return abx_err_set(err, ABX_E_FILE_EXISTS, "File exists: %s", target->resolved);
	case ENOENT:
		/* The directory went away while it was written to. */
		return abx_err_set(err, ABX_E_NO_FILE, "No such file or directory: %s", target->resolved);
	default:
		return abx_err_errno(err, os_errno, "%s", target->resolved);
	}
}

/* A file without a name leaves nothing behind however we end, but it can only be put where nothing is. Returns the descriptor or -1. */
static int begin_nameless(const struct abx_path *target, mode_t mode)
{
	return target->fd >= 0 ? -1 : openat(target->parent_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

static int begin_named(const struct abx_path *target, mode_t mode, struct abx_replacement *rep)
{
	random_name(rep->temporary, sizeof(rep->temporary));
	rep->fd = openat(target->parent_fd, rep->temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, mode);
	if (rep->fd < 0) {
		rep->temporary[0] = '\0';
		return -1;
	}
	return target->fd >= 0 ? copy_access(rep->fd, &target->st) : 0;
}

int abx_replacement_begin(const struct abx_path *target, mode_t mode, struct abx_replacement *ret, struct abx_err *err)
{
	abx_auto_replacement struct abx_replacement rep = { .fd = -1, .target = target };

	if (target->fd >= 0 && S_ISDIR(target->st.st_mode))
		return fail(target, EISDIR, err);
	if (target->parent_fd < 0)
		return abx_err_set(err, ABX_E_NO_FILE, "No such file or directory: %s", target->resolved);
	rep.fd = begin_nameless(target, mode);
	/* A file that takes the place of another begins closed to everyone else. */
	if (rep.fd < 0 && begin_named(target, target->fd >= 0 ? 0600 : mode, &rep) < 0)
		return fail(target, errno, err);
	*ret = rep;
	rep = (struct abx_replacement)ABX_REPLACEMENT_INIT;
	return 0;
}

/* Give the nameless file a name. Returns 0 or -1 with errno. */
static int give_name(const struct abx_replacement *rep, const char *name)
{
	char link[FD_LINK_SIZE];

	fd_link(link, rep->fd);
	return linkat(AT_FDCWD, link, rep->target->parent_fd, name, AT_SYMLINK_FOLLOW);
}

/* Something appeared where the nameless file was to go: it gets a name, to be renamed. */
static int give_random_name(struct abx_replacement *rep)
{
	char name[sizeof(rep->temporary)];

	random_name(name, sizeof(name));
	if (give_name(rep, name) < 0)
		return -1;
	memcpy(rep->temporary, name, sizeof(name));
	return 0;
}

/* Move the named file to a free place. */
static int move_to_free(const struct abx_replacement *rep)
{
	int dir = rep->target->parent_fd;

	if (renameat2(dir, rep->temporary, dir, rep->target->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* A file system without that flag: a link is refused where something is, too. */
	if (linkat(dir, rep->temporary, dir, rep->target->name, 0) < 0)
		return -1;
	return unlinkat(dir, rep->temporary, 0);
}

static int commit(struct abx_replacement *rep, bool overwrite)
{
	int dir = rep->target->parent_fd;

	if (!rep->temporary[0]) {
		if (give_name(rep, rep->target->name) == 0)
			return 0;
		if (errno != EEXIST || !overwrite || give_random_name(rep) < 0)
			return -1;
	}
	if (!overwrite)
		return move_to_free(rep);
	return renameat(dir, rep->temporary, dir, rep->target->name);
}

int abx_replacement_commit(struct abx_replacement *rep, bool overwrite, struct abx_err *err)
{
	if (commit(rep, overwrite) < 0)
		return fail(rep->target, errno, err);
	rep->temporary[0] = '\0';
	return 0;
}

void abx_replacement_release(struct abx_replacement *rep)
{
	if (rep->temporary[0])
		unlinkat(rep->target->parent_fd, rep->temporary, 0);
	abx_cleanup_fd(&rep->fd);
	*rep = (struct abx_replacement)ABX_REPLACEMENT_INIT;
}
