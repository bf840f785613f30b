#include "handlers/process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define CHUNK      ((size_t)64 << 10)
#define EVENTS_MAX 32
#define GRACE_US   (40 * 1000) /* for a descendant that still holds a pipe when the process has ended */
#define STACK_SIZE ((size_t)256 << 10)

static void thread_attributes_release(pthread_attr_t *attributes)
{
	pthread_attr_destroy(attributes);
}

/* A detached thread with all signals blocked: they are for others. */
static int thread_start(void *(*body)(void *), void *arg)
{
	__attribute__((cleanup(thread_attributes_release))) pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attributes, body, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* ---- sources */

static int source_open(struct proc_source *source, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	if (fd < 0)
		return 0;
	source->fd = fd;
	return epoll_ctl(procs.epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Watch it no more. Returns the descriptor, which is the caller's, or -1. It may have copies, in a child that is just being started, so closing it is not enough. */
static int source_take(struct proc_source *source)
{
	if (source->fd >= 0)
		epoll_ctl(procs.epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	return abx_steal_fd(&source->fd);
}

static void source_close(struct proc_source *source)
{
	abx_auto_fd int fd ABX_UNUSED = source_take(source);
}

/* ---- output */

static void keep(struct proc *proc, enum abx_stream stream, const struct abx_strbuf *text)
{
	if (text->len == 0)
		return;
	ring_add(&proc->ring, stream, text->buf, text->len);
	proc_wake(proc);
}

/* Read once. Returns the bytes read, or 0: there is nothing (more). */
static size_t output_read(struct proc_source *source)
{
	static char buf[CHUNK]; /* there is one manager */
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct proc *proc = source->proc;
	enum abx_stream stream = source->kind == PROC_ERR ? ABX_STDERR : ABX_STDOUT;
	ssize_t n;

	do {
		n = read(source->fd, buf, proc->ring.max < CHUNK ? proc->ring.max : CHUNK);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		abx_utf8_feed(&proc->decoders[stream], buf, (size_t)n, &text);
	} else if (n == 0 || errno != EAGAIN) {
		abx_utf8_finish(&proc->decoders[stream], &text);
		source_close(source);
	}
	keep(proc, stream, &text);
	return n > 0 ? (size_t)n : 0;
}

/* What the ended process has left: no more than a full pipe. */
static void output_drain(struct proc_source *source)
{
	int size = source->fd < 0 ? 0 : fcntl(source->fd, F_GETPIPE_SZ);

	for (size_t left = size > 0 ? (size_t)size : CHUNK, n; source->fd >= 0 && left > 0; left -= n < left ? n : left) {
		n = output_read(source);
		if (n == 0)
			return;
	}
}

/* A descendant still holds it, and is not to die of that. */
static void output_let_go(struct proc_source *source)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	enum abx_stream stream = source->kind == PROC_ERR ? ABX_STDERR : ABX_STDOUT;
	int fd = source_take(source);

	if (fd < 0)
		return;
	abx_utf8_finish(&source->proc->decoders[stream], &text);
	keep(source->proc, stream, &text);
	abx_drain_pipe(fd);
}

/* ---- ends */

static void *remove_temp(void *arg)
{
	abx_auto_free struct abx_workdir *temp = arg;

	abx_workdir_release(temp);
	return NULL;
}

/* There may be a lot in it, and the others are not to wait for that. Where no thread can be had, they do. */
static void remove_in_background(struct abx_workdir *dir)
{
	struct abx_workdir *temp = malloc(sizeof(*temp));

	if (temp) {
		*temp = *dir;
		*dir = (struct abx_workdir)ABX_WORKDIR_INIT;
		if (thread_start(remove_temp, temp) != 0)
			remove_temp(temp);
	}
}

static void on_exit_seen(struct proc *proc)
{
	/* The descriptor stays, for those who kill; it is watched no more, since it would be readable for ever. */
	source_take(&proc->sources[PROC_EXIT]);
	output_drain(&proc->sources[PROC_OUT]);
	output_drain(&proc->sources[PROC_ERR]);
	proc->state = PROC_ENDING;
	proc->due_us = abx_clock_us() + GRACE_US;
}

/* An ended process whose output is read, and whom nobody is killing, is reaped. */
static void settle(struct proc *proc, int64_t now_us)
{
	bool open = proc->sources[PROC_OUT].fd >= 0 || proc->sources[PROC_ERR].fd >= 0;

	if (proc->state != PROC_ENDING || proc->kills > 0 || (open && now_us < proc->due_us))
		return;
	output_let_go(&proc->sources[PROC_OUT]);
	output_let_go(&proc->sources[PROC_ERR]);
	proc->exit_code = abx_child_reap(proc->child.pidfd, proc->child.slot);
	close(abx_steal_fd(&proc->child.pidfd));
	if (!proc->writing && proc->child.input_fd >= 0)
		close(abx_steal_fd(&proc->child.input_fd));
	if (proc->temp.path)
		remove_in_background(&proc->temp);
	proc->state = PROC_ENDED;
	proc->due_us = now_us + PROCS_ENDED_US;
	proc_wake(proc);
}

static void *kill_one(void *arg)
{
	auto_proc struct proc *proc = arg;

	proc_kill(proc);
	return NULL;
}

/* The search for all descendants takes a while, and there may be many to be killed: so it has a thread of its own. */
static void kill_in_background(struct proc *proc)
{
	proc->doomed = true;
	proc->due_us = INT64_MAX;
	proc->users++;
	if (thread_start(kill_one, proc) == 0)
		return;
	proc->users--;
	/* Better than nothing. It is not reaped yet. */
	kill(-proc->pid, SIGKILL);
	kill(proc->pid, SIGKILL);
}

/* Do what is due. Returns the moment of the next thing to do. */
static int64_t look_after_all(bool stopping)
{
	int64_t now_us = abx_clock_us(), next_us = INT64_MAX;

	for (struct proc *proc = procs.first; proc; proc = proc->next) {
		if (proc->state == PROC_RUNNING && !proc->doomed && (stopping || proc->due_us <= now_us))
			kill_in_background(proc);
		settle(proc, now_us);
		if ((proc->state != PROC_ENDING || proc->kills == 0) && proc->due_us < next_us)
			next_us = proc->due_us;
	}
	procs_expire(now_us);
	return next_us;
}

/* ---- the thread */

static int milliseconds_until(int64_t moment_us)
{
	int64_t left_us = moment_us - abx_clock_us();

	if (moment_us == INT64_MAX)
		return -1;
	if (left_us > 60 * 1000000LL)
		left_us = 60 * 1000000LL;
	return left_us > 0 ? (int)((left_us + 999) / 1000) : 0;
}

static void on_event(struct proc_source *source)
{
	eventfd_t count;

	if (!source)
		eventfd_read(procs.wake_fd, &count);
	else if (source->fd < 0)
		return; /* closed by what came before it */
	else if (source->kind == PROC_EXIT)
		on_exit_seen(source->proc);
	else
		output_read(source);
}

static void *manage(void *arg ABX_UNUSED)
{
	struct epoll_event events[EVENTS_MAX];
	int64_t next_us = INT64_MAX;

	for (;;) {
		int n = epoll_wait(procs.epoll_fd, events, EVENTS_MAX, milliseconds_until(next_us));

		procs_lock();
		for (int i = 0; i < n; i++)
			on_event(events[i].data.ptr);
		next_us = look_after_all(abx_spawn_is_stopping());
		procs_unlock();
	}
	return NULL;
}

int manager_start(struct abx_err *err)
{
	struct epoll_event wake = { .events = EPOLLIN }, stop = { .events = EPOLLIN | EPOLLET };
	abx_auto_fd int epoll_fd = -1, wake_fd = -1;

	if (procs.epoll_fd >= 0)
		return 0;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (epoll_fd < 0 || wake_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &wake) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, abx_spawn_stop_fd(), &stop) < 0)
		return abx_err_errno(err, errno, "Cannot watch processes");
	procs.epoll_fd = abx_steal_fd(&epoll_fd);
	procs.wake_fd = abx_steal_fd(&wake_fd);
	int rc = thread_start(manage, NULL);
	if (rc == 0)
		return 0;
	close(abx_steal_fd(&procs.epoll_fd));
	close(abx_steal_fd(&procs.wake_fd));
	return abx_err_errno(err, rc, "Cannot watch processes");
}

int manager_watch(struct proc *proc, struct abx_err *err)
{
	if (source_open(&proc->sources[PROC_EXIT], proc->child.pidfd) == 0 &&
	    source_open(&proc->sources[PROC_OUT], proc->child.out_fd) == 0 &&
	    source_open(&proc->sources[PROC_ERR], proc->child.err_fd) == 0) {
		/* These are the manager's now. */
		proc->child.out_fd = proc->child.err_fd = -1;
		return 0;
	}
	abx_err_errno(err, errno, "Cannot watch the process");
	for (int i = 0; i < PROC_SOURCE__N; i++)
		source_take(&proc->sources[i]);
	return -1;
}

void manager_wake(void)
{
	eventfd_write(procs.wake_fd, 1);
}
