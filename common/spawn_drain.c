#include "common/spawn_internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/auto.h"

#define STACK_SIZE  ((size_t)256 << 10)
#define CHUNK       ((size_t)64 << 10)
#define READS_MAX   16 /* of one pipe before the others have their turn */
#define EVENTS_MAX  16

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static int epoll_fd = -1; /* written under start_lock, once */
static atomic_int n_pipes;

/* What epoll remembers with a descriptor: its number, and above it the slot of the child whose pidfd it is, counted from 1 (0: a pipe). */
static uint64_t note(int fd, const struct abx_board_child *slot)
{
	uint64_t number = slot ? (uint64_t)(slot - abx_spawn_door.board->children) + 1 : 0;

	return number << 32 | (uint32_t)fd;
}

static int note_fd(uint64_t noted)
{
	return (int)(uint32_t)noted;
}

static struct abx_board_child *note_slot(uint64_t noted)
{
	return noted >> 32 ? &abx_spawn_door.board->children[(noted >> 32) - 1] : NULL;
}

/* Whether the pipe is still open. */
static bool pipe_read(int fd, char *buf)
{
	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = read(fd, buf, CHUNK);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n < 0)
			return true;
	}
	return true;
}

static void *drain(void *arg ABX_UNUSED)
{
	static char buf[CHUNK]; /* there is one such thread */
	struct epoll_event events[EVENTS_MAX];

	for (;;) {
		int n = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);

		for (int i = 0; i < n; i++) {
			int fd = note_fd(events[i].data.u64);
			struct abx_board_child *slot = note_slot(events[i].data.u64);

			if (slot)
				abx_child_reap(fd, slot);
			else if (pipe_read(fd, buf))
				continue;
			else
				atomic_fetch_sub(&n_pipes, 1);
			/* A child that is just being started has a copy for a moment, so closing alone would not take it out of the set. */
			epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
			close(fd);
		}
	}
	return NULL;
}

static void thread_attributes_release(pthread_attr_t *attributes)
{
	pthread_attr_destroy(attributes);
}

/* Start the thread with all signals blocked: they are for others. */
static int thread_start(void)
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
	rc = pthread_create(&thread, &attributes, drain, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? -1 : 0;
}

/* The epoll descriptor, with the thread behind it, or -1. */
static int drainer(void)
{
	int fd;

	pthread_mutex_lock(&start_lock);
	if (epoll_fd < 0) {
		epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		if (epoll_fd >= 0 && thread_start() < 0) {
			close(epoll_fd);
			epoll_fd = -1;
		}
	}
	fd = epoll_fd;
	pthread_mutex_unlock(&start_lock);
	return fd;
}

/* Returns 0, or -1 with nothing taken over. */
static int adopt(int fd, const struct abx_board_child *slot)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = note(fd, slot) };
	int to = drainer();

	return to < 0 ? -1 : epoll_ctl(to, EPOLL_CTL_ADD, fd, &event);
}

void abx_drain_pipe(int fd)
{
	if (atomic_fetch_add(&n_pipes, 1) < abx_spawn_door.drained_max && adopt(fd, NULL) == 0)
		return;
	atomic_fetch_sub(&n_pipes, 1);
	close(fd);
}

void abx_drain_child(int pidfd, struct abx_board_child *slot)
{
	if (adopt(pidfd, slot) == 0)
		return;
	/* Nobody else could reap it: then it is waited for here. */
	abx_child_reap(pidfd, slot);
	close(pidfd);
}
