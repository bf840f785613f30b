#include "common/spawn_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/clock.h"

/* How often /proc is searched for a marker, how many of the killed are waited for between two searches, and for how long. */
#define ROUNDS       16
#define WAITED_FOR   64
#define ROUND_WAIT_MS 200
#define UNSEEN_WAIT_NS 5000000

#define ENVIRON_CHUNK ((size_t)64 << 10)
#define STAT_SIZE     1024
#define ENTRY_SIZE    64 /* of "INVOCATION_ID=" and an id */

enum { STAT_STATE = 3, STAT_PARENT = 4, STAT_START = 22, STAT_VSIZE = 23, STAT_ENV_END = 51 };

struct process {
	pid_t pid, parent;
	unsigned long long start; /* tells a process from a later one with the same pid */
	bool descendant;
};

struct process_list {
	struct process *at;
	size_t n, alloc;
};

static void process_list_release(struct process_list *list)
{
	free(list->at);
}

/* Read /proc/<pid>/stat from the state on: the name before it, in parentheses, may hold anything, parentheses included. */
static bool process_stat(pid_t pid, char text[STAT_SIZE])
{
	char path[32], *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	abx_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, STAT_SIZE - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	end = strrchr(text, ')');
	if (!end || end[1] != ' ')
		return false;
	memmove(text, end + 2, strlen(end + 2) + 1);
	return true;
}

/* A field of it, by its number in proc(5); 0 where there are not that many. */
static unsigned long long stat_field(const char *text, int number)
{
	for (int at = STAT_STATE; text && at < number; at++) {
		text = strchr(text, ' ');
		text = text ? text + 1 : NULL;
	}
	return text ? strtoull(text, NULL, 10) : 0;
}

/* Read a process's parent and time of start. Returns 0, or -1 when it is gone. */
static int process_read(pid_t pid, struct process *ret)
{
	char text[STAT_SIZE];

	if (!process_stat(pid, text))
		return -1;
	*ret = (struct process){ .pid = pid, .parent = (pid_t)stat_field(text, STAT_PARENT), .start = stat_field(text, STAT_START) };
	return 0;
}

/* The next process of /proc, or 0. */
static pid_t next_pid(DIR *proc)
{
	struct dirent *entry;

	while ((entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			return (pid_t)atoi(entry->d_name);
	}
	return 0;
}

static void processes_read(struct process_list *list)
{
	abx_auto_dir DIR *proc = opendir("/proc");
	pid_t pid;

	while (proc && (pid = next_pid(proc)) > 0) {
		if (list->n == list->alloc) {
			size_t alloc = list->alloc ? list->alloc * 2 : 256;
			struct process *grown = realloc(list->at, alloc * sizeof(*grown));

			if (!grown)
				return;
			list->at = grown;
			list->alloc = alloc;
		}
		if (process_read(pid, &list->at[list->n]) == 0)
			list->n++;
	}
}

static int by_pid(const void *a, const void *b)
{
	const struct process *one = a, *other = b;

	return (one->pid > other->pid) - (one->pid < other->pid);
}

static bool is_descendant(const struct process_list *list, pid_t pid)
{
	struct process key = { .pid = pid };
	const struct process *found = bsearch(&key, list->at, list->n, sizeof(key), by_pid);

	return found && found->descendant;
}

/* Find all processes that descend from `ancestor` now. Parents mostly come before their children, so few passes are needed. */
static void descendants_find(struct process_list *list, pid_t ancestor)
{
	bool more = true;

	processes_read(list);
	if (list->n)
		qsort(list->at, list->n, sizeof(*list->at), by_pid);
	while (more) {
		more = false;
		for (size_t i = 0; i < list->n; i++) {
			struct process *p = &list->at[i];

			if (!p->descendant && (p->parent == ancestor || is_descendant(list, p->parent)))
				p->descendant = more = true;
		}
	}
}

/* The pidfd makes sure that the process which was looked at is the one that is signalled. */
static void process_kill(const struct process *seen)
{
	abx_auto_fd int pidfd = pidfd_open(seen->pid, 0);
	struct process now;

	if (pidfd >= 0 && process_read(seen->pid, &now) == 0 && now.start == seen->start)
		pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

void abx_child_kill(const struct abx_child *child)
{
	__attribute__((cleanup(process_list_release))) struct process_list list = { 0 };

	/* First looked for, then killed: the orphans of a dead parent no longer say whose they were. */
	descendants_find(&list, child->pid);
	kill(-child->pid, SIGKILL);
	/* A leader may have moved itself to another group. */
	pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
	for (size_t i = 0; i < list.n; i++) {
		if (list.at[i].descendant)
			process_kill(&list.at[i]);
	}
	abx_kill_marked(child->slot->invocation);
}

int abx_child_reap(int pidfd, struct abx_board_child *slot)
{
	siginfo_t info = { 0 };

	/* Once it is reaped its pid may be anybody's: whoever reads the board must not see it any more by then. */
	atomic_store(&slot->pid, 0);
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	abx_board_child_end(slot);
	return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

enum marked { MARKED_NOT, MARKED, MARKED_EMPTY };

/* Look for an entry that begins with `entry` in what can be read from an environment now. */
static enum marked environ_search(pid_t pid, const char *entry, char *buf)
{
	size_t entry_len = strlen(entry), held = 1;
	bool empty = true;
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	abx_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return MARKED_NOT;
	/* Each entry follows a NUL, the first one ours. The end of a piece is kept, for an entry that goes on in the next. */
	for (buf[0] = '\0'; (n = read(fd, buf + held, ENVIRON_CHUNK)) > 0; empty = false) {
		size_t have = held + (size_t)n;

		for (const char *p = buf; (p = memchr(p, '\0', have - (size_t)(p - buf))) != NULL; p++) {
			if (have - (size_t)(p - buf) > entry_len && memcmp(p + 1, entry, entry_len) == 0)
				return MARKED;
		}
		held = have < entry_len + 1 ? have : entry_len + 1;
		memmove(buf, buf + have - held, held);
	}
	return empty ? MARKED_EMPTY : MARKED_NOT;
}

/*
 * Whether an entry of the environment of `pid` begins with `entry`. `buf` has room for ENVIRON_CHUNK bytes and more than `entry` before it.
 * A process on its way through execve(2) seems to have no environment (MARKED_EMPTY): it has to be looked at again. A kernel thread and a
 * zombie have no memory at all, and an environment that is really empty has a place.
 */
static enum marked is_marked(pid_t pid, const char *entry, char *buf)
{
	enum marked marked = environ_search(pid, entry, buf);
	char text[STAT_SIZE];

	if (marked != MARKED_EMPTY)
		return marked;
	if (!process_stat(pid, text) || stat_field(text, STAT_VSIZE) == 0)
		return MARKED_NOT;
	if (stat_field(text, STAT_ENV_END) == 0)
		return MARKED_EMPTY;
	/* It has a place by now, so what is read now is all of it. */
	return environ_search(pid, entry, buf) == MARKED ? MARKED : MARKED_NOT;
}

/* Wait until the killed are dead, so that the next search no longer finds them. Closes the pidfds. */
static void wait_for_dead(struct pollfd *dead, nfds_t n)
{
	int64_t end = abx_clock_ms() + ROUND_WAIT_MS, left;
	nfds_t alive = n;

	while (alive > 0 && (left = end - abx_clock_ms()) > 0) {
		if (poll(dead, n, (int)left) <= 0)
			continue;
		for (nfds_t i = 0; i < n; i++) {
			if (!dead[i].revents)
				continue;
			close(dead[i].fd);
			dead[i].fd = -1;
			dead[i].revents = 0;
			alive--;
		}
	}
	for (nfds_t i = 0; i < n; i++)
		abx_cleanup_fd(&dead[i].fd);
}

/* One search. Returns whether there has to be another: some were killed, or could not be looked at yet. */
static bool kill_marked_once(const char *entry, char *buf)
{
	abx_auto_dir DIR *proc = opendir("/proc");
	struct pollfd dead[WAITED_FOR];
	bool killed = false, unseen = false;
	nfds_t n = 0;
	pid_t pid;

	while (proc && (pid = next_pid(proc)) > 0) {
		enum marked marked = pid == getpid() ? MARKED_NOT : is_marked(pid, entry, buf);

		unseen = unseen || marked == MARKED_EMPTY;
		if (marked != MARKED)
			continue;
		/* Looked at again through the pid that the pidfd holds: a reused pid is not signalled. */
		abx_auto_fd int pidfd = pidfd_open(pid, 0);
		if (pidfd < 0 || is_marked(pid, entry, buf) != MARKED || pidfd_send_signal(pidfd, SIGKILL, NULL, 0) < 0)
			continue;
		killed = true;
		if (n < WAITED_FOR)
			dead[n++] = (struct pollfd){ .fd = abx_steal_fd(&pidfd), .events = POLLIN };
	}
	wait_for_dead(dead, n);
	/* A program takes its moment to start. */
	if (unseen && !killed)
		nanosleep(&(struct timespec){ .tv_nsec = UNSEEN_WAIT_NS }, NULL);
	return killed || unseen;
}

void abx_kill_marked(const char *prefix)
{
	char entry[ENTRY_SIZE];
	abx_auto_free char *buf = malloc(ENVIRON_CHUNK + ENTRY_SIZE + 1);

	/* An empty prefix would be every child of every server. */
	if (!buf || !*prefix)
		return;
	snprintf(entry, sizeof(entry), ABX_INVOCATION "%s", prefix);
	for (int round = 0; round < ROUNDS && kill_marked_once(entry, buf); round++)
		;
}

bool abx_process_is_server(pid_t pid)
{
	const struct abx_board *board = abx_spawn_door.board;
	abx_auto_free char *buf = malloc(ENVIRON_CHUNK + ENTRY_SIZE + 1);
	char entry[ENTRY_SIZE];
	struct process process;

	if (pid == 1 || pid == getpid() || pid == getppid())
		return true;
	for (size_t i = 0; pid > 0 && i < ABX_BOARD_PEERS; i++)
		if (atomic_load(&board->peers[i]) == pid)
			return true;
	/* abxd's other children are its programs, and orphans of ours. */
	if (pid <= 0 || process_read(pid, &process) < 0 || process.parent != getppid())
		return false;
	snprintf(entry, sizeof(entry), ABX_INVOCATION "%s", board->instance);
	return !buf || is_marked(pid, entry, buf) != MARKED;
}
