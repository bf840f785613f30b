#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handlers/abxctl/abxctl.h"

#define DEFAULT_DIR "/run/abx"

/* ---- which process holds the directory */

static int read_file(int dir_fd, const char *name, struct abx_strbuf *out)
{
	abx_auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char piece[4096];
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		abx_strbuf_add(out, piece, (size_t)n);
	return n < 0 || out->failed ? -1 : 0;
}

static pid_t read_pid(int dir_fd)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX(64);
	char *end;

	if (read_file(dir_fd, "abxd.pid", &text) < 0)
		return 0;
	long pid = strtol(text.buf, &end, 10);
	return end == text.buf || *end != '\n' || pid <= 0 || pid > INT32_MAX ? 0 : (pid_t)pid;
}

/* Whether a line of /proc/locks says that `pid` has locked the inode with flock. */
static bool is_lock(const char *line, pid_t pid, ino_t ino)
{
	unsigned long long inode;
	long holder;

	return sscanf(line, "%*u: FLOCK %*s WRITE %ld %*x:%*x:%llu", &holder, &inode) == 2 && holder == pid && inode == ino;
}

/*
 * Without /proc/locks: whether anybody has locked it, and the process calls itself abxd. It is the second choice because
 * for a moment we hold a lock ourselves, and an abxd that is just starting would take us for another.
 */
static bool is_likely(int dir_fd, pid_t pid)
{
	abx_auto_strbuf struct abx_strbuf name = ABX_STRBUF_INIT;
	char path[64];
	abx_auto_fd int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return false;
	return read_file(AT_FDCWD, path, &name) == 0 && strcmp(name.buf, "abxd\n") == 0;
}

/* Whether the process is the abxd of this directory: it holds the lock for as long as it lives. */
static bool holds(int dir_fd, pid_t pid)
{
	abx_auto_strbuf struct abx_strbuf locks = ABX_STRBUF_INIT;
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return false;
	if (read_file(AT_FDCWD, "/proc/locks", &locks) < 0)
		return is_likely(dir_fd, pid);
	for (const char *line = locks.buf; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (is_lock(line, pid, st.st_ino))
			return true;
	}
	return false;
}

/* ---- its URL, as it stands in the configuration that abxd has written for lighttpd */

/* The value in the line "<key> = value", without quotes, or NULL. */
static char *conf_value(const char *conf, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = conf; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) != 0 || strncmp(line + len, " = ", 3) != 0)
			continue;
		line += len + 3;
		line += *line == '"';
		return strndup(line, strcspn(line, "\"\n"));
	}
	return NULL;
}

/* What to connect to for a server that is bound to `bind`. */
static const char *host_of(const char *bind)
{
	if (strcmp(bind, "0.0.0.0") == 0)
		return "127.0.0.1";
	return strcmp(bind, "[::]") == 0 ? "[::1]" : bind;
}

static char *read_url(int dir_fd)
{
	abx_auto_strbuf struct abx_strbuf conf = ABX_STRBUF_INIT;
	char *url = NULL;

	if (read_file(dir_fd, "lighttpd.conf", &conf) < 0)
		return NULL;
	abx_auto_free char *bind = conf_value(conf.buf, "server.bind"), *port = conf_value(conf.buf, "server.port");
	abx_auto_free char *handler = conf_value(conf.buf, "server.error-handler");
	char *slash = handler ? strrchr(handler, '/') : NULL;

	if (!bind || !port || !slash)
		return NULL;
	*slash = '\0';
	return asprintf(&url, "http://%s:%s%s", host_of(bind), port, handler) < 0 ? NULL : url;
}

/* ---- finding it */

void ctl_server_release(struct ctl_server *server)
{
	free(server->dir);
	free(server->url);
	abx_cleanup_fd(&server->pidfd);
	*server = (struct ctl_server)CTL_SERVER_INIT;
}

/* The server of this run directory, if one is running there. */
static int look_into(const char *path, struct ctl_server *ret_server, struct abx_err *err)
{
	abx_auto_fd int dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	pid_t pid = dir_fd < 0 ? 0 : read_pid(dir_fd);
	/* First the descriptor, then the lock: whoever holds the lock now is whom the descriptor means. */
	abx_auto_fd int pidfd = pid ? pidfd_open(pid, 0) : -1;

	if (pid && pidfd < 0 && errno != ESRCH) {
		abx_err_errno(err, errno, "cannot watch process %d", (int)pid);
		return CTL_FAILED;
	}
	if (pidfd < 0 || !holds(dir_fd, pid)) {
		abx_err_set(err, ABX_E_NO_PROCESS, "no server is running in %s", path);
		return CTL_NOT_RUNNING;
	}
	*ret_server = (struct ctl_server){ .pid = pid, .pidfd = abx_steal_fd(&pidfd), .dir = strdup(path),
					   .url = read_url(dir_fd) };
	if (ret_server->dir)
		return CTL_OK;
	ctl_server_release(ret_server);
	abx_err_set(err, ABX_E_INTERNAL, "out of memory");
	return CTL_FAILED;
}

/* An ordinary user's server without ABX_RUN_DIR has a private directory, which has to be looked for. */
static int look_for_private(struct ctl_server *ret_server, struct abx_err *err)
{
	const char *tmp = getenv("TMPDIR") && *getenv("TMPDIR") == '/' ? getenv("TMPDIR") : "/tmp";
	abx_auto_dir DIR *names = opendir(tmp);
	int found = CTL_NOT_RUNNING;

	for (struct dirent *entry = names ? readdir(names) : NULL; entry; entry = readdir(names)) {
		struct ctl_server server = CTL_SERVER_INIT;
		abx_auto_free char *path = NULL;
		struct stat st;

		if (strncmp(entry->d_name, "abx-", 4) != 0 || asprintf(&path, "%s/%s", tmp, entry->d_name) < 0)
			continue;
		if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		    look_into(path, &server, err) != CTL_OK)
			continue;
		if (found == CTL_OK) {
			abx_err_set(err, ABX_E_CONFLICT, "several servers are running: set ABX_RUN_DIR to %s, %s or another",
				    ret_server->dir, server.dir);
			ctl_server_release(&server);
			ctl_server_release(ret_server);
			return CTL_FAILED;
		}
		*ret_server = server;
		found = CTL_OK;
	}
	return found;
}

int ctl_server_find(struct ctl_server *ret_server, struct abx_err *err)
{
	const char *path = getenv("ABX_RUN_DIR");
	int found = CTL_NOT_RUNNING;

	if (path && *path)
		return look_into(path, ret_server, err);
	if (geteuid() != 0)
		found = look_for_private(ret_server, err);
	return found == CTL_NOT_RUNNING ? look_into(DEFAULT_DIR, ret_server, err) : found;
}
