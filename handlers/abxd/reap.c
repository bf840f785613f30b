#include "handlers/abxd/server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/spawn.h"

/* The parent of a process, from /proc/<pid>/stat; 0 when it has gone. */
static pid_t parent_of(const char *pid)
{
	char path[32], text[512];
	int parent;

	snprintf(path, sizeof(path), "/proc/%.10s/stat", pid);
	abx_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t len = read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		return 0;
	text[len] = '\0';
	/* The name may hold anything, blanks and parentheses too: it ends at the last parenthesis. */
	const char *end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static void kill_children(void)
{
	abx_auto_dir DIR *proc = opendir("/proc");
	pid_t self = getpid();

	if (!proc)
		return;
	for (struct dirent *entry = readdir(proc); entry; entry = readdir(proc))
		if (*entry->d_name >= '1' && *entry->d_name <= '9' && parent_of(entry->d_name) == self)
			kill((pid_t)atoi(entry->d_name), SIGKILL);
}

/* Whether there was a child left, dead or alive. */
static bool reap_all(void)
{
	pid_t pid;

	do
		pid = waitpid(-1, NULL, WNOHANG);
	while (pid > 0 || (pid < 0 && errno == EINTR));
	return pid == 0;
}

void abx_kill_descendants(const struct abx_server *server, int64_t deadline)
{
	if (server->board)
		abx_kill_marked(server->board->instance);
	/* What we kill leaves its own children to us, as their subreaper: so until there is none. */
	while (reap_all() && abx_clock_ms() < deadline) {
		kill_children();
		poll(NULL, 0, 1);
	}
}

void abx_describe_death(int code, int status, char *out, size_t size)
{
	if (code == CLD_EXITED)
		snprintf(out, size, "exited with status %d", status);
	else
		snprintf(out, size, "was killed by signal %d (%s)", status, strsignal(status));
}
