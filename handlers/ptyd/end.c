/*
 * Ending what runs in a session: first it is hung up, as when a terminal is closed; what does not go by itself is killed, with every process that carries the session's mark. That
 * looks through all of /proc and waits, so it has a thread of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <termios.h>
#include <unistd.h>

#include "common/clock.h"
#include "handlers/ptyd/session.h"

/* How long a shell that was hung up may take to end. */
#define HANGUP_MS 300

static int done_fd = -1;

static void done_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	struct pty_session *session;

	if (read(source->fd, &session, sizeof(session)) == (ssize_t)sizeof(session))
		pty_session_killed(session);
}

static struct pty_source done = { .fd = -1, .events = EPOLLIN, .ready = done_ready };

int pty_end_open(struct abx_err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return abx_err_errno(err, errno, "Cannot make a pipe");
	done.fd = ends[0];
	done_fd = ends[1];
	return pty_loop_add(&done) < 0 ? abx_err_errno(err, errno, "epoll") : 0;
}

/* A stopped process has to go on to see that it was hung up. */
static void hang_up(const struct pty_session *session)
{
	pid_t foreground = session->tty.fd < 0 ? -1 : tcgetpgrp(session->tty.fd);

	if (foreground > 1 && foreground != session->child.pid) {
		kill(-foreground, SIGHUP);
		kill(-foreground, SIGCONT);
	}
	kill(-session->child.pid, SIGHUP);
	kill(-session->child.pid, SIGCONT);
}

static void wait_for_shell(const struct pty_session *session, int64_t deadline_ms)
{
	struct pollfd ended = { .fd = session->child.pidfd, .events = POLLIN };
	int64_t left = deadline_ms - abx_clock_ms();

	poll(&ended, 1, left > 0 ? (int)left : 0);
}

static void *end_session(void *arg)
{
	struct pty_session *session = arg;

	wait_for_shell(session, abx_clock_ms() + HANGUP_MS);
	abx_child_kill(&session->child);
	/* The pipe is never full of the few sessions there are. */
	return write(done_fd, &session, sizeof(session)) < 0 ? arg : NULL;
}

/* Run it in the background. 0 or -1. */
static int in_thread(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	if (pthread_attr_init(&attr) != 0)
		return -1;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return rc == 0 ? 0 : -1;
}

int pty_end_session(struct pty_session *session)
{
	hang_up(session);
	return in_thread(end_session, session);
}

static void *remove_temp(void *arg)
{
	struct abx_workdir *temp = arg;

	abx_workdir_release(temp);
	free(temp);
	return NULL;
}

/* There may be a million files in it. */
void pty_end_temp(struct pty_session *session)
{
	struct abx_workdir *temp = malloc(sizeof(*temp));

	if (session->temp.fd < 0 || !temp) {
		free(temp);
		abx_workdir_release(&session->temp);
		return;
	}
	*temp = session->temp;
	session->temp = (struct abx_workdir)ABX_WORKDIR_INIT;
	if (in_thread(remove_temp, temp) < 0)
		remove_temp(temp);
}

void pty_end_all(void)
{
	int64_t deadline = abx_clock_ms() + HANGUP_MS;

	for (struct pty_session *s = pty_session_first(); s; s = s->next)
		if (s->child.pidfd >= 0)
			hang_up(s);
	for (struct pty_session *s = pty_session_first(); s; s = s->next) {
		if (s->child.pidfd < 0)
			continue;
		wait_for_shell(s, deadline);
		abx_child_kill(&s->child);
		abx_workdir_release(&s->temp);
	}
}
