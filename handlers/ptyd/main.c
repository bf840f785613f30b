/*
 * abx-ptyd: owns the terminal sessions, and serves their WebSockets. It is started by abxd, like a responder, with the pty port as ABX_FD_LISTEN, and is asked by
 * abx-terminal (control.h).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/cage.h"
#include "common/clock.h"
#include "common/log.h"
#include "handlers/ptyd/client.h"
#include "handlers/ptyd/control.h"
#include "handlers/ptyd/door.h"

/* How long clients are waited for that are told that the server stops. */
#define FAREWELL_MS 150

extern char **environ;

static struct abx_board *board;
static bool stopping, abandoned;

int64_t pty_tick(int64_t now_ms)
{
	int64_t next = pty_sessions_tick(now_ms), moment = pty_clients_tick(now_ms);

	next = moment < next ? moment : next;
	moment = pty_door_tick(now_ms);
	return moment < next ? moment : next;
}

static void signal_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	struct signalfd_siginfo info;

	stopping |= read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

/* A new policy, as a descriptor; or abxd is gone. */
static void abxd_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_fd int fd = -1;
	size_t n;

	if (pty_receive(source->fd, &fd, 1, &n) == 0)
		stopping = abandoned = true;
	if (n > 0 && pty_door_follow(fd, &err) < 0)
		abx_log(ABX_LOG_ERROR, "the new policy is not taken: %s", err.message);
}

static struct pty_source signals = { .fd = -1, .events = EPOLLIN, .ready = signal_ready };
static struct pty_source abxd = { .fd = ABX_FD_CONTROL, .events = EPOLLIN, .ready = abxd_ready };

static int open_signals(struct abx_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return abx_err_errno(err, errno, "signals");
	signals.fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals.fd < 0 || pty_loop_add(&signals) < 0 || pty_loop_add(&abxd) < 0)
		return abx_err_errno(err, errno, "signals");
	return 0;
}

static int open_all(struct abx_err *err)
{
	struct abx_policy *policy = abx_policy_load(ABX_FD_POLICY, err);

	if (!policy)
		return -1;
	abx_log_init("abx-ptyd", policy->log_level, policy->log_json);
	abx_workdir_sweep(policy->spool_dir);
	board = abx_board_map(ABX_FD_BOARD, err);
	/* Nothing that a child would inherit: it may be sudo, gdb or a browser that somebody starts in a terminal. */
	if (!board || abx_spawn_init(board, environ, err) < 0 || abx_cage_enter(0, err) < 0)
		return -1;
	if (pty_loop_open(err) < 0 || open_signals(err) < 0 || pty_end_open(err) < 0 || pty_control_open(err) < 0)
		return -1;
	return pty_door_open(policy, err);
}

static void farewell(void)
{
	int64_t end = abx_clock_ms() + FAREWELL_MS;

	pty_clients_stop();
	while (pty_clients_any() && abx_clock_ms() < end) {
		/* So that the wait ends. */
		pty_loop_deadline(end);
		pty_loop_serve();
	}
}

int main(void)
{
	struct abx_err err = ABX_ERR_INIT;

	if (open_all(&err) < 0) {
		abx_log(ABX_LOG_ERROR, "abx-ptyd: cannot start: %s", err.message);
		return 1;
	}
	if (write(ABX_FD_CONTROL, "R", 1) != 1)
		return 1;
	while (!stopping)
		pty_loop_serve();
	farewell();
	pty_end_all();
	/* abxd was killed: nobody else would end what the server has started. */
	if (abandoned)
		abx_kill_marked(board->instance);
	_exit(0);
}
