#include "common/workdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/ids.h"
#include "common/paths.h"
#include "common/tree.h"

/* The name says whose it is: "work-<pid>-<random digits>". */
#define PREFIX "work-"
#define DIGITS 16

/* Best effort: what cannot be removed stays, and nobody is hurt. */
static void remove_tree(int parent_fd, const char *name)
{
	static const struct abx_roots nothing_denied;
	struct abx_err unused = ABX_ERR_INIT;
	struct abx_path path = ABX_PATH_INIT;

	path.fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	path.parent_fd = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
	path.name = strdup(name);
	path.resolved = strdup(name);
	if (path.fd >= 0 && path.parent_fd >= 0 && path.name && path.resolved && fstat(path.fd, &path.st) == 0)
		abx_tree_delete(&path, &nothing_denied, &unused);
	abx_path_release(&path);
}

int abx_workdir_make(const char *run_dir, struct abx_workdir *ret_dir, struct abx_err *err)
{
	abx_auto_workdir struct abx_workdir dir = ABX_WORKDIR_INIT;
	char digits[DIGITS + 1];

	abx_id_hex(digits, DIGITS);
	if (asprintf(&dir.path, "%s/" PREFIX "%d-%s", run_dir, (int)getpid(), digits) < 0) {
		dir.path = NULL;
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	if (mkdir(dir.path, 0700) < 0)
		return abx_err_errno(err, errno, "Cannot make a working directory");
	dir.fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir.fd < 0)
		return abx_err_errno(err, errno, "Cannot make a working directory");
	*ret_dir = dir;
	dir = (struct abx_workdir)ABX_WORKDIR_INIT;
	return 0;
}

int abx_workdir_write(const struct abx_workdir *dir, const char *name, const char *text, size_t len,
		      struct abx_err *err)
{
	abx_auto_fd int fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || abx_write_all(fd, text, len) < 0)
		return abx_err_errno(err, errno, "Cannot write to the working directory");
	return 0;
}

int abx_workdir_link(const struct abx_workdir *dir, const char *name, const char *target, struct abx_err *err)
{
	if (symlinkat(target, dir->fd, name) < 0)
		return abx_err_errno(err, errno, "Cannot write to the working directory");
	return 0;
}

void abx_workdir_release(struct abx_workdir *dir)
{
	char *slash = dir->path ? strrchr(dir->path, '/') : NULL;

	abx_cleanup_fd(&dir->fd);
	if (slash) {
		*slash = '\0';
		abx_auto_fd int parent_fd = open(dir->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (parent_fd >= 0)
			remove_tree(parent_fd, slash + 1);
	}
	free(dir->path);
	*dir = (struct abx_workdir)ABX_WORKDIR_INIT;
}

void abx_workdir_sweep(const char *run_dir)
{
	int fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	abx_auto_dir DIR *names = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!names && fd >= 0)
		close(fd);
	while (names && (entry = readdir(names))) {
		char proc[32];
		int pid;

		if (sscanf(entry->d_name, PREFIX "%d-", &pid) != 1)
			continue;
		snprintf(proc, sizeof(proc), "/proc/%d", pid);
		if (access(proc, F_OK) == 0)
			continue;
		remove_tree(fd, entry->d_name);
	}
}
