#include "common/spawn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/clock.h"
#include "common/utf8.h"

#define CHUNK         ((size_t)64 << 10)
#define GRACE_US      (40 * 1000)      /* for a descendant that still holds a pipe when the child has ended */
#define KILL_WAIT_MS  1000             /* until a killed child is reaped in the background instead */
#define PATIENCE_US   (60 * 1000000LL) /* with a client that takes nothing of what waits for it; as long as fcgi_io waits */
#define OOM_SCORE_MAX 1000
#define OOM_SCORE_UP  100
#define PEER_FIRST_US (10 * 1000)      /* until a client is looked at for the first time: a short command does not pay for it */
#define PEER_US       (250 * 1000)     /* and again */
#define DRAINED_MAX   1024             /* pipes of daemons, which live as long as they like */

struct abx_spawn_door abx_spawn_door = { .null_fd = -1, .stop_fd = -1 };

static atomic_bool stopping;

/* One of the child's two output pipes. */
struct output {
	int fd;
	enum abx_stream stream;
	struct abx_spawn_sink *sink; /* takes what is read, or NULL: it is kept */
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
	struct output out, err;
	size_t input_done;
	struct abx_peer peer;
	int64_t peer_us; /* when it is looked at */
	char *buf; /* CHUNK bytes: threads have small stacks */
	int64_t deadline_us;
	/* With a sink: */
	int64_t due_us;  /* when a client that takes nothing is given up, or, where nothing waits for it, when it is told that we live */
	int queued;      /* bytes in its socket, when that was last looked at */
	bool gone;       /* nothing can be sent any more */
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
	door.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
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

bool abx_spawn_is_stopping(void)
{
	return atomic_load(&stopping);
}

void abx_spawn_result_release(struct abx_spawn_result *result)
{
	abx_strbuf_release(&result->out);
	abx_strbuf_release(&result->err);
}

/* ---- the client of a sink */

static bool run_is_full(const struct run *run)
{
	return run->spawn->sink && run->spawn->sink->waiting;
}

static int run_queued(const struct run *run)
{
	int queued = 0;

	return ioctl(run->spawn->client_fd, SIOCOUTQ, &queued) == 0 ? queued : 0;
}

static void run_set_due(struct run *run)
{
	const struct abx_spawn_sink *sink = run->spawn->sink;

	run->due_us = sink ? abx_clock_us() + (sink->waiting ? PATIENCE_US : sink->idle_ms * 1000) : INT64_MAX;
	run->queued = run_is_full(run) ? run_queued(run) : 0;
}

/* The client can take something. -1: it has gone. */
static int run_send(struct run *run)
{
	if (run->spawn->sink->send(run->spawn->sink) < 0)
		run->gone = true;
	run_set_due(run);
	return run->gone ? -1 : 0;
}

/* The time of run->due_us has come. -1: the client is given up. */
static int run_due(struct run *run)
{
	if (!run->spawn->sink->waiting)
		run->spawn->sink->idle(run->spawn->sink);
	else if (run_queued(run) == run->queued)
		run->gone = true;
	run_set_due(run);
	return run->gone ? -1 : 0;
}

/* Poll until something happens or the moment has come. The moments of clients are longer than poll's milliseconds can say, and finer. */
static int wait_until(struct pollfd *watched, nfds_t n, int64_t moment_us)
{
	struct timespec left = { 0 };
	int64_t us = moment_us - abx_clock_us();

	if (us > 0)
		left = (struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
	return ppoll(watched, n, moment_us == INT64_MAX ? NULL : &left, NULL);
}

/* The child is not to be waited for any more: send all that waits, if the client takes it. */
static void run_flush(struct run *run)
{
	while (run_is_full(run) && !run->gone) {
		struct pollfd client = { .fd = run->spawn->client_fd, .events = POLLOUT | POLLRDHUP };

		if (wait_until(&client, 1, run->due_us) < 0)
			continue;
		if (client.revents & ~POLLOUT)
			run->gone = true;
		else if (client.revents)
			run_send(run);
		else
			run_due(run);
	}
}

/* ---- output */

static void output_keep(struct output *output, const char *data, size_t len)
{
	size_t kept = len < output->room ? len : output->room;

	if (output->sink) {
		output->sink->take(output->sink, output->stream, data, len);
		return;
	}
	output->room -= kept;
	if (output->raw)
		abx_strbuf_add(output->text, data, kept);
	else
		abx_utf8_feed(&output->decoder, data, kept, output->text);
	/* Out of memory is a cut as well. */
	if (kept < len || output->text->failed)
		output->cut = true;
}

static void output_close(struct output *output)
{
	abx_cleanup_fd(&output->fd);
	output->fd = -1;
}

/* Read once. Returns the bytes read, or 0: there is nothing (more). */
static size_t output_read(struct output *output, char *buf)
{
	ssize_t n;

	do {
		n = read(output->fd, buf, CHUNK);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		output_keep(output, buf, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		output_close(output);
	return n > 0 ? (size_t)n : 0;
}

/*
 * Read what the ended child has left. That is no more than a full pipe: a descendant that writes without end cannot keep us
 * here.
 */
static void output_drain(struct run *run, struct output *output)
{
	int size = output->fd < 0 ? 0 : fcntl(output->fd, F_GETPIPE_SZ);

	for (size_t left = size > 0 ? (size_t)size : CHUNK, n; output->fd >= 0 && left > 0; left -= n < left ? n : left) {
		run_flush(run);
		n = run->gone ? 0 : output_read(output, run->buf);
		if (n == 0)
			return;
	}
}

/* What was kept is whole; a character that the cap has cut in two is left out. */
static void output_finish(struct output *output)
{
	if (output->sink)
		output->sink->take(output->sink, output->stream, NULL, 0);
	else if (!output->cut)
		abx_utf8_finish(&output->decoder, output->text);
}

/* ---- the call */

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

/* Serve what has happened. -1: the client has gone. */
static int run_serve(struct run *run, const struct pollfd *watched, bool full)
{
	if (watched[WATCH_INPUT].revents)
		input_write(run);
	if (watched[WATCH_CLIENT].revents && run_send(run) < 0)
		return -1;
	if (watched[WATCH_OUT].revents)
		output_read(&run->out, run->buf);
	if (watched[WATCH_ERR].revents)
		output_read(&run->err, run->buf);
	if (abx_clock_us() >= run->due_us)
		return run_due(run);
	if (!full && run_is_full(run))
		run_set_due(run);
	return 0;
}

/* Whether the deadline has come before the child's own end, which is not looked for while its output waits. */
static bool run_timed_out(struct run *run)
{
	if (run->deadline_us == INT64_MAX || abx_clock_us() < run->deadline_us)
		return false;
	if (!abx_child_has_ended(&run->child))
		return true;
	run->deadline_us = INT64_MAX;
	return false;
}

/* Whether the client has left without a word of it from the web server. */
static bool run_peer_left(struct run *run)
{
	int64_t now_us;

	if (run->peer_us == INT64_MAX || (now_us = abx_clock_us()) < run->peer_us)
		return false;
	if (abx_peer_has_left(&run->peer))
		return true;
	run->peer_us = run->peer.family ? now_us + PEER_US : INT64_MAX;
	return false;
}

static int64_t run_next_us(const struct run *run)
{
	int64_t next_us = run->deadline_us < run->due_us ? run->deadline_us : run->due_us;

	return next_us < run->peer_us ? next_us : run->peer_us;
}

/* Serve the pipes until the child's end, or until it has to be ended. While output waits for the client no more is read. */
static enum abx_spawn_end run_watch(struct run *run)
{
	for (;;) {
		bool full = run_is_full(run);
		struct pollfd watched[WATCH__N] = {
			[WATCH_EXIT] = { .fd = full ? -1 : run->child.pidfd, .events = POLLIN },
			[WATCH_STOP] = { .fd = abx_spawn_door.stop_fd, .events = POLLIN },
			[WATCH_CLIENT] = { .fd = run->spawn->client_fd, .events = full ? POLLRDHUP | POLLOUT : POLLRDHUP },
			[WATCH_INPUT] = { .fd = run->child.input_fd, .events = POLLOUT },
			[WATCH_OUT] = { .fd = full ? -1 : run->out.fd, .events = POLLIN },
			[WATCH_ERR] = { .fd = full ? -1 : run->err.fd, .events = POLLIN },
		};

		if (wait_until(watched, WATCH__N, run_next_us(run)) < 0)
			continue;
		/* The real end comes first: what ended by itself was not ended by us. */
		if (watched[WATCH_EXIT].revents)
			return ABX_SPAWN_EXITED;
		if (watched[WATCH_STOP].revents)
			return ABX_SPAWN_STOPPED;
		if ((watched[WATCH_CLIENT].revents & ~POLLOUT) || run_peer_left(run))
			return ABX_SPAWN_CLIENT_GONE;
		if (run_timed_out(run))
			return ABX_SPAWN_TIMED_OUT;
		if (run_serve(run, watched, full) < 0)
			return ABX_SPAWN_CLIENT_GONE;
	}
}

/* Give descendants that are about to end the time to do so. Returns at once when no one holds the pipes, as is usual. */
static void run_grace(struct run *run)
{
	int64_t end_us = abx_clock_us() + GRACE_US;

	while ((run->out.fd >= 0 || run->err.fd >= 0) && abx_clock_us() < end_us && !run->gone) {
		struct pollfd watched[2] = {
			{ .fd = run->out.fd, .events = POLLIN },
			{ .fd = run->err.fd, .events = POLLIN },
		};

		if (wait_until(watched, 2, end_us) < 0)
			continue;
		if (watched[0].revents)
			output_read(&run->out, run->buf);
		if (watched[1].revents)
			output_read(&run->err, run->buf);
		run_flush(run);
	}
}

static void hand_over(struct output *output)
{
	if (output->fd >= 0)
		abx_drain_pipe(output->fd);
	output->fd = -1;
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
	if (run->spawn->sink && result->end == ABX_SPAWN_CLIENT_GONE)
		run->gone = true;
	if (result->end == ABX_SPAWN_EXITED) {
		/* What is still in the pipes was written before the end. */
		output_drain(run, &run->out);
		output_drain(run, &run->err);
		run_grace(run);
		result->exit_code = abx_child_reap(run->child.pidfd, run->child.slot);
		hand_over(&run->out);
		hand_over(&run->err);
	} else {
		abx_child_kill(&run->child);
		output_drain(run, &run->out);
		output_drain(run, &run->err);
		result->exit_code = run_reap_killed(run);
		output_close(&run->out);
		output_close(&run->err);
	}
	output_finish(&run->out);
	output_finish(&run->err);
	run_flush(run);
	result->truncated = run->out.cut || run->err.cut;
	abx_cleanup_fd(&run->child.pidfd);
}

/* Seconds from now, as a moment: "never" where there is none or it is too far to matter. */
int64_t abx_spawn_deadline_us(double timeout)
{
	return timeout > 0 && timeout < 1e12 ? abx_clock_us() + (int64_t)(timeout * 1e6) : INT64_MAX;
}

static struct abx_strbuf text_init(size_t max_output)
{
	/* Every byte may become a U+FFFD of three. */
	size_t max = max_output < SIZE_MAX / 4 ? max_output * 3 + 8 : SIZE_MAX / 2;

	return (struct abx_strbuf)ABX_STRBUF_INIT_MAX(max);
}

static struct output output_init(const struct abx_spawn *spawn, enum abx_stream stream, int fd, struct abx_strbuf *text)
{
	return (struct output){ .fd = fd, .stream = stream, .sink = spawn->sink, .text = text, .raw = spawn->raw, .room = spawn->max_output };
}

int abx_spawn_run(const struct abx_spawn *spawn, struct abx_spawn_result *ret_result, struct abx_err *err)
{
	struct abx_spawn_result result = { .out = text_init(spawn->max_output), .err = text_init(spawn->max_output) };
	struct abx_start start = { .argv = spawn->argv, .env = spawn->env, .cwd_fd = spawn->cwd_fd, .input = spawn->input, .output = true,
				   .confine = spawn->confine };
	struct run run = { .spawn = spawn, .peer = spawn->peer };
	abx_auto_free char *buf = malloc(CHUNK);

	if (!buf)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (abx_child_start(&start, &run.child, err) < 0)
		return -1;
	run.buf = buf;
	run.deadline_us = abx_spawn_deadline_us(spawn->timeout);
	run.peer_us = spawn->peer.family ? abx_clock_us() + PEER_FIRST_US : INT64_MAX;
	run.out = output_init(spawn, ABX_STDOUT, run.child.out_fd, &result.out);
	run.err = output_init(spawn, ABX_STDERR, run.child.err_fd, &result.err);
	if (spawn->sink && spawn->sink->begin(spawn->sink) < 0) {
		result.end = ABX_SPAWN_CLIENT_GONE;
	} else {
		run_set_due(&run);
		result.end = run_watch(&run);
	}
	run_finish(&run, &result);
	*ret_result = result;
	return 0;
}
