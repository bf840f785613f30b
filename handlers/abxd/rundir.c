#include "handlers/abxd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/paths.h"

#define BACKLOG 4096

#define PID_NAME "abxd.pid"

/* The log of a daemon; it is begun anew when it has grown to its limit. */
#define LOG_NAME  "abxd.log"
#define LOG_LIMIT (16 << 20)

/* Longest path of a run directory: the longest socket name still fits into a socket address behind it. */
#define PATH_LIMIT 88

/* Make a directory and what leads to it. 1: it was made, 0: it was there, -1: failure. */
static int make_directories(const char *path, mode_t mode)
{
	abx_auto_free char *copy = strdup(path);

	if (!copy)
		return -1;
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	if (mkdir(copy, mode) == 0)
		return 1;
	return errno == EEXIST ? 0 : -1;
}

/* A copy without slashes at the end: O_NOFOLLOW would follow a link before one. NULL when out of memory. */
static char *copy_path(const char *path)
{
	char *out = strdup(path);

	for (size_t len = out ? strlen(out) : 0; len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
	return out;
}

static pid_t read_pid(const char *path)
{
	abx_auto_free char *name = NULL;
	char text[32] = "";

	if (asprintf(&name, "%s/" PID_NAME, path) < 0) {
		name = NULL;
		return 0;
	}
	abx_auto_fd int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	return (pid_t)strtol(text, NULL, 10);
}

static int write_pid(struct abx_rundir *dir, struct abx_err *err)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	return abx_rundir_write(dir, PID_NAME, pid, err);
}

static int open_run(struct abx_rundir *dir, struct abx_err *err)
{
	struct stat st;
	int made = make_directories(dir->path, 0711);

	if (made < 0)
		return abx_err_errno(err, errno, "cannot make the run directory %s", dir->path);
	if (made)
		dir->made = true;
	abx_auto_fd int fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return abx_err_errno(err, errno, "the run directory %s", dir->path);
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return abx_err_set(err, ABX_E_FORBIDDEN, "the run directory %s belongs to another user", dir->path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return abx_err_set(err, ABX_E_CONFLICT, "already running (pid %d) in %s",
				   (int)read_pid(dir->path), dir->path);
	if (fchmod(fd, 0711) < 0)
		return abx_err_errno(err, errno, "the run directory %s", dir->path);
	if (dir->fd >= 0)
		close(dir->fd);
	dir->fd = abx_steal_fd(&fd);

	return write_pid(dir, err);
}

/* Remove what a lighttpd that was killed has left. */
static void empty_spool(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	abx_auto_dir DIR *names = copy < 0 ? NULL : fdopendir(copy);

	if (!names)
		return;
	for (struct dirent *entry = readdir(names); entry; entry = readdir(names))
		if (strncmp(entry->d_name, "lighttpd-upload-", 16) == 0)
			unlinkat(fd, entry->d_name, 0);
}

/*
 * A directory of the user's choice may be shared: with a sticky world-writable one nothing is changed, and names are removed only when no other
 * server has it open, which the lock tells.
 */
static int open_spool(struct abx_rundir *dir, struct abx_err *err)
{
	struct stat st;
	int made = make_directories(dir->spool, 0700);

	if (made < 0)
		return abx_err_errno(err, errno, "cannot make the spool directory %s", dir->spool);
	if (made)
		dir->spool_made = true;
	abx_auto_fd int fd = open(dir->spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "the spool directory %s", dir->spool);
	if (dir->web_uid != (uid_t)-1 && st.st_uid != dir->web_uid && (st.st_mode & 01777) != 01777 &&
	    fchown(fd, dir->web_uid, dir->web_gid) < 0)
		return abx_err_errno(err, errno, "cannot give the spool directory %s to the web server's user", dir->spool);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		empty_spool(fd);
	flock(fd, LOCK_SH | LOCK_NB);
	if (dir->spool_fd >= 0)
		close(dir->spool_fd);
	dir->spool_fd = abx_steal_fd(&fd);
	return 0;
}

static char *private_directory(struct abx_err *err)
{
	const char *tmp = getenv("TMPDIR");
	abx_auto_free char *path = NULL;

	/* It goes into lighttpd's configuration between quotes. */
	if (!tmp || *tmp != '/' || strpbrk(tmp, "\"\\\n\r"))
		tmp = "/tmp";
	if (asprintf(&path, "%s/abx-XXXXXX", tmp) < 0)
		path = NULL;
	if (!path || !mkdtemp(path)) {
		abx_err_errno(err, errno, "cannot make a private run directory");
		return NULL;
	}
	return ABX_STEAL(path);
}

int abx_rundir_open(struct abx_rundir *dir, struct abx_settings *settings, struct abx_err *err)
{
	if (settings->run_dir) {
		dir->path = copy_path(settings->run_dir);
	} else if (geteuid() == 0) {
		dir->path = strdup("/run/abx");
	} else {
		dir->path = private_directory(err);
		if (!dir->path)
			return -1;
		dir->made = true;
	}
	if (!dir->path)
		return abx_err_errno(err, ENOMEM, "run directory");
	if (strlen(dir->path) > PATH_LIMIT)
		return abx_err_set(err, ABX_E_VALUE, "ABX_RUN_DIR: the path is longer than %d characters", PATH_LIMIT);
	if (open_run(dir, err) < 0)
		return -1;

	if (settings->spool_dir) {
		dir->spool = copy_path(settings->spool_dir);
	} else {
		dir->spool_made = true;
		if (asprintf(&dir->spool, "%s/spool", dir->path) < 0)
			dir->spool = NULL;
	}
	free(settings->run_dir);
	free(settings->spool_dir);
	settings->run_dir = strdup(dir->path);
	settings->spool_dir = dir->spool ? strdup(dir->spool) : NULL;
	if (!settings->run_dir || !settings->spool_dir)
		return abx_err_errno(err, ENOMEM, "run directory");
	return open_spool(dir, err);
}

/* Whether `path` leads to the open directory. */
static bool leads_to(const char *path, int fd)
{
	struct stat name, open_one;

	return lstat(path, &name) == 0 && fstat(fd, &open_one) == 0 && name.st_ino == open_one.st_ino &&
	       name.st_dev == open_one.st_dev;
}

bool abx_rundir_check(struct abx_rundir *dir)
{
	struct abx_err err = ABX_ERR_INIT;
	bool there = leads_to(dir->path, dir->fd);

	if (!there) {
		abx_log(ABX_LOG_WARNING, "the run directory %s was removed; making it again", dir->path);
		if (open_run(dir, &err) < 0)
			abx_log(ABX_LOG_ERROR, "%s", err.message);
	} else if (faccessat(dir->fd, PID_NAME, F_OK, 0) < 0 && write_pid(dir, &err) < 0) {
		abx_log(ABX_LOG_ERROR, "%s", err.message);
	}
	if (access(dir->spool, F_OK) < 0 && open_spool(dir, &err) < 0)
		abx_log(ABX_LOG_ERROR, "%s", err.message);
	return there;
}

int abx_rundir_write(struct abx_rundir *dir, const char *name, const char *text, struct abx_err *err)
{
	const char *slash = strchr(name, '/');

	if (slash) {
		abx_auto_free char *parent = strndup(name, (size_t)(slash - name));
		if (!parent || (mkdirat(dir->fd, parent, 0711) < 0 && errno != EEXIST) ||
		    fchmodat(dir->fd, parent, 0711, 0) < 0)
			return abx_err_errno(err, errno, "cannot write %s/%s", dir->path, name);
	}
	if (unlinkat(dir->fd, name, 0) < 0 && errno != ENOENT)
		return abx_err_errno(err, errno, "cannot write %s/%s", dir->path, name);
	abx_auto_fd int fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0 || abx_write_all(fd, text, strlen(text)) < 0)
		return abx_err_errno(err, errno, "cannot write %s/%s", dir->path, name);
	return 0;
}

int abx_rundir_open_log(struct abx_rundir *dir, struct abx_err *err)
{
	if (abx_rundir_write(dir, LOG_NAME, "", err) < 0)
		return -1;
	abx_auto_fd int fd = openat(dir->fd, LOG_NAME, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0600) < 0 || dup2(fd, STDERR_FILENO) < 0)
		return abx_err_errno(err, errno, "cannot write %s/" LOG_NAME, dir->path);
	return 0;
}

void abx_rundir_trim_log(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > LOG_LIMIT &&
	    ftruncate(STDERR_FILENO, 0) < 0)
		abx_log(ABX_LOG_ERROR, "cannot begin the log anew");
}

static int remove_entry(const char *path, const struct stat *st ABX_UNUSED, int flag ABX_UNUSED, struct FTW *ftw ABX_UNUSED)
{
	remove(path);
	return 0;
}

static void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void abx_rundir_remove(struct abx_rundir *dir)
{
	if (dir->spool_fd >= 0 && leads_to(dir->spool, dir->spool_fd)) {
		if (flock(dir->spool_fd, LOCK_EX | LOCK_NB) == 0)
			empty_spool(dir->spool_fd);
		if (dir->spool_made)
			rmdir(dir->spool);
		close(abx_steal_fd(&dir->spool_fd));
	}
	if (dir->fd >= 0 && leads_to(dir->path, dir->fd)) {
		static const char *const names[] = { PID_NAME, LOG_NAME, "lighttpd.conf" };
		abx_auto_free char *includes = NULL;

		for (size_t g = 0; g < ABX_GROUP__COUNT; g++) {
			char name[64];
			snprintf(name, sizeof(name), "%s.sock", abx_groups[g].name);
			unlinkat(dir->fd, name, 0);
		}
		for (size_t i = 0; i < ABX_N(names); i++)
			unlinkat(dir->fd, names[i], 0);
		if (asprintf(&includes, "%s/lighttpd", dir->path) < 0)
			includes = NULL;
		else
			remove_tree(includes);
		if (dir->made)
			remove_tree(dir->path);
		close(abx_steal_fd(&dir->fd));
	}
	free(dir->path);
	free(dir->spool);
	dir->path = dir->spool = NULL;
}

static int socket_address(const struct abx_rundir *dir, const char *group, struct sockaddr_un *ret_address)
{
	int len = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%s/%s.sock", dir->path, group);

	ret_address->sun_family = AF_UNIX;
	return len < 0 || (size_t)len >= sizeof(ret_address->sun_path) ? -1 : 0;
}

int abx_rundir_socket(struct abx_rundir *dir, const char *group, ino_t *ret_ino, struct abx_err *err)
{
	struct sockaddr_un address;
	struct stat st;

	if (socket_address(dir, group, &address) < 0)
		return abx_err_set(err, ABX_E_VALUE, "%s/%s.sock is too long for a socket", dir->path, group);
	abx_auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* Nobody can connect before listen(2), so owner and mode are right from the first connection on. */
	if (fd < 0 || (unlink(address.sun_path) < 0 && errno != ENOENT) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(address.sun_path, 0600) < 0 ||
	    (dir->web_uid != (uid_t)-1 && lchown(address.sun_path, dir->web_uid, (gid_t)-1) < 0) ||
	    lstat(address.sun_path, &st) < 0 || listen(fd, BACKLOG) < 0)
		return abx_err_errno(err, errno, "the socket %s", address.sun_path);
	*ret_ino = st.st_ino;
	return abx_steal_fd(&fd);
}

bool abx_rundir_has_socket(const struct abx_rundir *dir, const char *group, ino_t ino)
{
	struct sockaddr_un address;
	struct stat st;

	return socket_address(dir, group, &address) == 0 && lstat(address.sun_path, &st) == 0 && st.st_ino == ino &&
	       S_ISSOCK(st.st_mode);
}
