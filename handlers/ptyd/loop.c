#include "handlers/ptyd/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"

static int epoll_fd = -1;
static int64_t armed_ms = INT64_MAX;

static void timer_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	uint64_t count;

	if (read(source->fd, &count, sizeof(count)) != sizeof(count))
		return;
	armed_ms = INT64_MAX;
	pty_loop_deadline(pty_tick(abx_clock_ms()));
}

static struct pty_source timer = { .fd = -1, .events = EPOLLIN, .ready = timer_ready };

int pty_loop_open(struct abx_err *err)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (epoll_fd < 0 || timer.fd < 0 || pty_loop_add(&timer) < 0) {
		abx_err_errno(err, errno, "Cannot make the event loop");
		return -1;
	}
	return 0;
}

/* One at a time: what an event does may free the source of the next one. */
void pty_loop_serve(void)
{
	struct epoll_event event;

	if (epoll_wait(epoll_fd, &event, 1, -1) == 1) {
		struct pty_source *source = event.data.ptr;

		source->ready(source, event.events);
	}
}

int pty_loop_add(struct pty_source *source)
{
	struct epoll_event event = { .events = source->events, .data.ptr = source };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, source->fd, &event);
}

void pty_loop_change(struct pty_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };
	int op = !events ? EPOLL_CTL_DEL : source->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (source->fd < 0 || source->events == events)
		return;
	source->events = events;
	epoll_ctl(epoll_fd, op, source->fd, &event);
}

void pty_loop_close(struct pty_source *source)
{
	if (source->fd < 0)
		return;
	/* Some other process may have a copy of it, and then closing it would not end the watch. */
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	close(source->fd);
	source->fd = -1;
}

void pty_loop_deadline(int64_t moment_ms)
{
	struct itimerspec when = { 0 };

	if (moment_ms >= armed_ms)
		return;
	armed_ms = moment_ms;
	/* A moment of 0 would turn the timer off. */
	if (moment_ms < 1)
		moment_ms = 1;
	when.it_value.tv_sec = moment_ms / 1000;
	when.it_value.tv_nsec = moment_ms % 1000 * 1000000;
	timerfd_settime(timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}
