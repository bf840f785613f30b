#include "common/spawn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/clock.h"
#include "common/utf8.h"

#define CHUNK         ((size_t)64 << 10)
#define GRACE_US      (40 * 1000)   /* for a descendant that still holds a pipe when the child has ended */
#define KILL_WAIT_MS  1000          /* until a killed child is reaped in the background instead */
#define OOM_SCORE_MAX 1000
#define OOM_SCORE_UP  100
#define DRAINED_MAX   1024          /* pipes of daemons, which live as long as they like */

struct abx_spawn_door abx_spawn_door = { .null_fd = -1, .stop_fd = -1 };

static atomic_bool stopping;

/* One of the child's two output pipes. */
struct stream {
	int fd;
	struct abx_utf8 decoder;
	struct abx_strbuf *text;
	bool raw;
	size_t room; /* bytes that are still kept */
	bool cut;
};

/* A running call. */
struct run {
	const struct abx_spawn *spawn;
	struct abx_child child;
	struct stream out, err;
	size_t input_done;
	char *buf; /* CHUNK bytes: threads have small stacks */
};

enum { WATCH_EXIT, WATCH_STOP, WATCH_CLIENT, WATCH_INPUT, WATCH_OUT, WATCH_ERR, WATCH__N };

static int own_oom_score(void)
{
	abx_auto_fd int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	char text[16] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? atoi(text) : 0;
}

/* A quarter of our descriptors is the most that daemons may hold: the rest is for the callers to come. */
static int drained_max(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < DRAINED_MAX ? (int)(limit.rlim_cur / 4) : DRAINED_MAX;
}

/* A pipe of ours that became descriptor 0, 1 or 2 would be in the way of the child's own. */
static int fill_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

int abx_spawn_init(struct abx_board *board, char *const *env, struct abx_err *err)
{
	struct abx_spawn_door door = { .board = board, .env = env };
	abx_auto_fd int pidfd = pidfd_open(getpid(), 0);
	int score = own_oom_score() + OOM_SCORE_UP;

	if (pidfd < 0)
		return abx_err_errno(err, errno, "The kernel has no pidfd_open");
	if (fill_standard_fds() < 0)
		return abx_err_errno(err, errno, "/dev/null");
	door.null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	door.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (door.null_fd < 0 || door.stop_fd < 0)
		return abx_err_errno(err, errno, "Cannot prepare for children");
	door.drained_max = drained_max();
	door.oom_score_adj = score < OOM_SCORE_MAX ? score : OOM_SCORE_MAX;
	/* A child that does not read its input must not end us; and were SIGCHLD ignored, as a parent of ours may have left it, no exit code would reach us. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	abx_spawn_door = door;
	return 0;
}

int abx_spawn_stop_fd(void)
{
	return abx_spawn_door.stop_fd;
}

void abx_spawn_stop_all(void)
{
	static const uint64_t one = 1;
	int before = errno;

	atomic_store(&stopping, true);
	/* The counter is never read, so it stays readable for every loop. It cannot be full of calls of this. */
	if (write(abx_spawn_door.stop_fd, &one, sizeof(one)) < 0)
		errno = before;
}

void abx_spawn_result_release(struct abx_spawn_result *result)
{
	abx_strbuf_release(&result->out);
	abx_strbuf_release(&result->err);
}

/* The ends of the pipes that the child gets. Ours are in struct abx_child. */
struct child_ends {
	int in, out, err;
};

static void child_ends_release(struct child_ends *ends)
{
	abx_cleanup_fd(&ends->in);
	abx_cleanup_fd(&ends->out);
	abx_cleanup_fd(&ends->err);
}

static void child_discard(struct abx_child *child)
{
	abx_cleanup_fd(&child->pidfd);
	abx_cleanup_fd(&child->input_fd);
	abx_cleanup_fd(&child->out_fd);
	abx_cleanup_fd(&child->err_fd);
	if (child->slot)
		abx_board_child_end(child->slot);
}

/* Append `text` as Python's repr() shows a string. */
static void add_repr(struct abx_strbuf *sb, const char *text)
{
	char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';

	abx_strbuf_addc(sb, quote);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n')
			abx_strbuf_adds(sb, "\\n");
		else if (c == '\t')
			abx_strbuf_adds(sb, "\\t");
		else if (c == '\r')
			abx_strbuf_adds(sb, "\\r");
		else if (c < 0x20 || c == 0x7f)
			abx_strbuf_addf(sb, "\\x%02x", c);
		else if (*text == quote || c == '\\')
			abx_strbuf_addf(sb, "\\%c", c);
		else
			abx_strbuf_addc(sb, *text);
	}
	abx_strbuf_addc(sb, quote);
}

/* The message that Python's OSError has: a client may look at it. */
static int fail_program(struct abx_err *err, int os_errno, const char *program)
{
	abx_auto_strbuf struct abx_strbuf shown = ABX_STRBUF_INIT_MAX(1024);
	char reason[128];

	add_repr(&shown, program);
	abx_err_set(err, ABX_E_ERRNO, "[Errno %d] %s: %s", os_errno, strerror_r(os_errno, reason, sizeof(reason)), shown.buf);
	err->os_errno = os_errno;
	return -1;
}

static int pipe_make(int *ret_ours, int *ret_theirs, bool child_reads)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	*ret_ours = fds[child_reads ? 1 : 0];
	*ret_theirs = fds[child_reads ? 0 : 1];
	/* Only our end: the child expects a blocking one. */
	return fcntl(*ret_ours, F_SETFL, O_NONBLOCK);
}

static int pipes_make(const struct abx_spawn *spawn, struct abx_child *child, struct child_ends *ends, struct abx_err *err)
{
	if (pipe_make(&child->out_fd, &ends->out, false) < 0 || pipe_make(&child->err_fd, &ends->err, false) < 0 ||
	    (spawn->input && pipe_make(&child->input_fd, &ends->in, true) < 0))
		return abx_err_errno(err, errno, "Cannot make a pipe");
	return 0;
}

static void actions_release(posix_spawn_file_actions_t *actions)
{
	posix_spawn_file_actions_destroy(actions);
}

static void attributes_release(posix_spawnattr_t *attributes)
{
	posix_spawnattr_destroy(attributes);
}

/* posix_spawn with the habits of the door. Returns 0 or an errno. */
static int child_exec(const struct abx_spawn *spawn, const char *program, char *const *vars, const struct child_ends *ends, pid_t *ret_pid)
{
	__attribute__((cleanup(actions_release))) posix_spawn_file_actions_t actions;
	__attribute__((cleanup(attributes_release))) posix_spawnattr_t attributes;
	sigset_t all, none;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	rc = posix_spawn_file_actions_addfchdir_np(&actions, spawn->cwd_fd);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&actions, ends->in >= 0 ? ends->in : abx_spawn_door.null_fd, 0);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&actions, ends->out, 1);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&actions, ends->err, 2);
	if (!rc)
		rc = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	return rc ? rc : posix_spawn(ret_pid, program, &actions, &attributes, spawn->argv, vars);
}

/* Tell the failure of a start: the fault may be the directory's, the program's, or the system's. */
static int fail_start(const struct abx_spawn *spawn, int os_errno, struct abx_err *err)
{
	if (os_errno == EAGAIN || os_errno == ENOMEM)
		return abx_err_errno(err, os_errno, "Cannot start a process");
	if (faccessat(spawn->cwd_fd, ".", X_OK, AT_EACCESS) < 0)
		return abx_err_errno(err, errno, "Cannot enter the working directory");
	return fail_program(err, os_errno, spawn->argv[0]);
}

void abx_child_raise_oom_score(pid_t pid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	abx_auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		dprintf(fd, "%d", abx_spawn_door.oom_score_adj);
}

/* From here on the child runs. */
static int child_adopt(struct abx_child *child, struct abx_err *err)
{
	atomic_store(&child->slot->pid, child->pid);
	child->pidfd = pidfd_open(child->pid, 0);
	if (child->pidfd < 0) {
		int why = errno;

		/* Without a pidfd it cannot be watched. It is not reaped yet, so its pid is still its own. */
		kill(-child->pid, SIGKILL);
		kill(child->pid, SIGKILL);
		atomic_store(&child->slot->pid, 0);
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
		return abx_err_errno(err, why, "Cannot watch the child");
	}
	abx_child_raise_oom_score(child->pid);
	return 0;
}

static int child_start(const struct abx_spawn *spawn, struct abx_child *ret_child, struct abx_err *err)
{
	__attribute__((cleanup(child_discard))) struct abx_child child = ABX_CHILD_INIT;
	__attribute__((cleanup(child_ends_release))) struct child_ends ends = { -1, -1, -1 };
	char marker[sizeof(ABX_INVOCATION) + sizeof(child.slot->invocation)];
	abx_auto_free char *program = NULL;
	abx_auto_free char **vars = NULL;
	int rc;

	child.slot = abx_board_child_begin(abx_spawn_door.board);
	if (!child.slot)
		return abx_err_set(err, ABX_E_TABLE_FULL, "Too many running processes (%d)", ABX_BOARD_CHILDREN);
	if (pipes_make(spawn, &child, &ends, err) < 0)
		return -1;
	snprintf(marker, sizeof(marker), ABX_INVOCATION "%s", child.slot->invocation);
	vars = abx_env_finish(spawn->env, marker);
	if (!vars)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	rc = abx_env_find_program(spawn->env, spawn->cwd_fd, spawn->argv[0], &program);
	if (!rc)
		rc = child_exec(spawn, program, vars, &ends, &child.pid);
	if (rc)
		return fail_start(spawn, rc, err);
	if (child_adopt(&child, err) < 0)
		return -1;
	*ret_child = child;
	child = (struct abx_child)ABX_CHILD_INIT;
	return 0;
}

static void stream_keep(struct stream *stream, const char *data, size_t len)
{
	size_t kept = len < stream->room ? len : stream->room;

	stream->room -= kept;
	if (stream->raw)
		abx_strbuf_add(stream->text, data, kept);
	else
		abx_utf8_feed(&stream->decoder, data, kept, stream->text);
	/* Out of memory is a cut as well. */
	if (kept < len || stream->text->failed)
		stream->cut = true;
}

static void stream_close(struct stream *stream)
{
	abx_cleanup_fd(&stream->fd);
	stream->fd = -1;
}

/* Read once. Returns the bytes read, or 0: there is nothing (more). */
static size_t stream_read(struct stream *stream, char *buf)
{
	ssize_t n;

	do {
		n = read(stream->fd, buf, CHUNK);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		stream_keep(stream, buf, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		stream_close(stream);
	return n > 0 ? (size_t)n : 0;
}

/*
 * Read what the ended child has left. That is no more than a full pipe: a descendant that writes without end cannot keep us
 * here.
 */
static void stream_drain(struct stream *stream, char *buf)
{
	int size = stream->fd < 0 ? 0 : fcntl(stream->fd, F_GETPIPE_SZ);

	for (size_t left = size > 0 ? (size_t)size : CHUNK, n; stream->fd >= 0 && left > 0; left -= n < left ? n : left) {
		n = stream_read(stream, buf);
		if (n == 0)
			return;
	}
}

/* What was kept is whole; a character that the cap has cut in two is left out. */
static void stream_finish(struct stream *stream)
{
	if (!stream->cut)
		abx_utf8_finish(&stream->decoder, stream->text);
}

static void input_close(struct run *run)
{
	abx_cleanup_fd(&run->child.input_fd);
	run->child.input_fd = -1;
}

static void input_write(struct run *run)
{
	const char *data = run->spawn->input;
	size_t left = run->spawn->input_len - run->input_done;
	ssize_t n = left ? write(run->child.input_fd, data + run->input_done, left) : 0;

	if (n > 0)
		run->input_done += (size_t)n;
	/* A child that reads no more has closed it (EPIPE); that is its own business. */
	if (run->input_done == run->spawn->input_len || (n < 0 && errno != EAGAIN && errno != EINTR))
		input_close(run);
}

/* Poll until something happens or `deadline_us` has come. The moments of clients are longer than poll's milliseconds can say, and finer. */
static int wait_until(struct pollfd *watched, nfds_t n, int64_t deadline_us)
{
	struct timespec left = { 0 };
	int64_t us = deadline_us - abx_clock_us();

	if (us > 0)
		left = (struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
	return ppoll(watched, n, deadline_us == INT64_MAX ? NULL : &left, NULL);
}

/* Serve the pipes until the child's end, or until it has to be ended. */
static enum abx_spawn_end run_watch(struct run *run, int64_t deadline_us)
{
	for (;;) {
		struct pollfd watched[WATCH__N] = {
			[WATCH_EXIT] = { .fd = run->child.pidfd, .events = POLLIN },
			[WATCH_STOP] = { .fd = abx_spawn_door.stop_fd, .events = POLLIN },
			[WATCH_CLIENT] = { .fd = run->spawn->client_fd, .events = POLLRDHUP },
			[WATCH_INPUT] = { .fd = run->child.input_fd, .events = POLLOUT },
			[WATCH_OUT] = { .fd = run->out.fd, .events = POLLIN },
			[WATCH_ERR] = { .fd = run->err.fd, .events = POLLIN },
		};

		if (wait_until(watched, WATCH__N, deadline_us) < 0)
			continue;
		/* The real end comes first: what ended by itself was not ended by us. */
		if (watched[WATCH_EXIT].revents)
			return ABX_SPAWN_EXITED;
		if (watched[WATCH_STOP].revents)
			return ABX_SPAWN_STOPPED;
		if (watched[WATCH_CLIENT].revents)
			return ABX_SPAWN_CLIENT_GONE;
		if (deadline_us != INT64_MAX && abx_clock_us() >= deadline_us)
			return ABX_SPAWN_TIMED_OUT;
		if (watched[WATCH_INPUT].revents)
			input_write(run);
		if (watched[WATCH_OUT].revents)
			stream_read(&run->out, run->buf);
		if (watched[WATCH_ERR].revents)
			stream_read(&run->err, run->buf);
	}
}

/* Give descendants that are about to end the time to do so. Returns at once when no one holds the pipes, as is usual. */
static void run_grace(struct run *run)
{
	int64_t end_us = abx_clock_us() + GRACE_US;

	while ((run->out.fd >= 0 || run->err.fd >= 0) && abx_clock_us() < end_us) {
		struct pollfd watched[2] = {
			{ .fd = run->out.fd, .events = POLLIN },
			{ .fd = run->err.fd, .events = POLLIN },
		};

		if (wait_until(watched, 2, end_us) < 0)
			continue;
		if (watched[0].revents)
			stream_read(&run->out, run->buf);
		if (watched[1].revents)
			stream_read(&run->err, run->buf);
	}
}

static void hand_over(struct stream *stream)
{
	if (stream->fd >= 0)
		abx_drain_pipe(stream->fd);
	stream->fd = -1;
}

/* Wait for a killed child. One that does not die (it sits in the kernel, or is another user's) is reaped in the background. */
static int run_reap_killed(struct run *run)
{
	struct pollfd watched = { .fd = run->child.pidfd, .events = POLLIN };
	int64_t end_ms = abx_clock_ms() + KILL_WAIT_MS, left;
	int exit_code = -SIGKILL;

	while (!watched.revents && (left = end_ms - abx_clock_ms()) > 0)
		poll(&watched, 1, (int)left);
	if (watched.revents)
		exit_code = abx_child_reap(run->child.pidfd, run->child.slot);
	else
		abx_drain_child(abx_steal_fd(&run->child.pidfd), run->child.slot);
	return exit_code;
}

static void run_finish(struct run *run, struct abx_spawn_result *result)
{
	input_close(run);
	if (result->end == ABX_SPAWN_EXITED) {
		/* What is still in the pipes was written before the end. */
		stream_drain(&run->out, run->buf);
		stream_drain(&run->err, run->buf);
		run_grace(run);
		result->exit_code = abx_child_reap(run->child.pidfd, run->child.slot);
		hand_over(&run->out);
		hand_over(&run->err);
	} else {
		abx_child_kill(&run->child);
		stream_drain(&run->out, run->buf);
		stream_drain(&run->err, run->buf);
		result->exit_code = run_reap_killed(run);
		stream_close(&run->out);
		stream_close(&run->err);
	}
	stream_finish(&run->out);
	stream_finish(&run->err);
	result->truncated = run->out.cut || run->err.cut;
	abx_cleanup_fd(&run->child.pidfd);
}

/* Seconds from now, as a moment: "never" where there is none or it is too far to matter. */
static int64_t deadline_us(double timeout)
{
	return timeout > 0 && timeout < 1e12 ? abx_clock_us() + (int64_t)(timeout * 1e6) : INT64_MAX;
}

static struct abx_strbuf text_init(size_t max_output)
{
	/* Every byte may become a U+FFFD of three. */
	size_t max = max_output < SIZE_MAX / 4 ? max_output * 3 + 8 : SIZE_MAX / 2;

	return (struct abx_strbuf)ABX_STRBUF_INIT_MAX(max);
}

int abx_spawn_run(const struct abx_spawn *spawn, struct abx_spawn_result *ret_result, struct abx_err *err)
{
	struct abx_spawn_result result = { .out = text_init(spawn->max_output), .err = text_init(spawn->max_output) };
	struct run run = { .spawn = spawn };
	abx_auto_free char *buf = malloc(CHUNK);

	if (!buf)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (atomic_load(&stopping))
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The server is stopping");
	if (child_start(spawn, &run.child, err) < 0)
		return -1;
	run.buf = buf;
	run.out = (struct stream){ .fd = run.child.out_fd, .text = &result.out, .raw = spawn->raw, .room = spawn->max_output };
	run.err = (struct stream){ .fd = run.child.err_fd, .text = &result.err, .raw = spawn->raw, .room = spawn->max_output };
	result.end = run_watch(&run, deadline_us(spawn->timeout));
	run_finish(&run, &result);
	*ret_result = result;
	return 0;
}
