/*
 * The pty daemon: the sessions live in it and not in abx-terminal, so that they outlive each other's restarts.
 *
 * What joins the two is a pair of sockets that is made here once and whose ends each of their processes is given: abx-terminal sends one message per request, which
 * carries the request's own connection (handlers/ptyd/control.h). So nothing in it belongs to a process that can die: a message that was sent while the daemon is being restarted
 * waits for the next one, and a request that was taken ends with the daemon's death. It has no name that somebody could remove, or connect to.
 */
#include "handlers/abxd/server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "policy/policy.h"

#define PROGRAM "abx-ptyd"

int abx_ptyd_open(struct abx_server *server, struct abx_err *err)
{
	struct abx_ptyd *ptyd = &server->ptyd;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return abx_err_errno(err, errno, "socketpair");
	ptyd->fd = ends[0];
	ptyd->terminal_fd = ends[1];
	ptyd->program = abx_find_program(PROGRAM);
	if (!ptyd->program) {
		/* abx-terminal sees that nobody is there. */
		close(abx_steal_fd(&ptyd->fd));
		abx_log(ABX_LOG_WARNING, "the program " PROGRAM " is not installed; there are no terminals");
		return 0;
	}
	if (!ptyd->wanted)
		return 0;
	ptyd->listen_fd = abx_listen(server->settings.host, server->settings.pty_port, err);
	if (ptyd->listen_fd < 0)
		return abx_err_prefix(err, "ABX_PTY_PORT");
	ptyd->backoff.retry_ms = abx_clock_ms();
	return 0;
}

void abx_ptyd_follow(struct abx_server *server, const struct abx_policy *policy)
{
	const struct abx_group_info *group = &abx_groups[ABX_GROUP_TERMINAL];

	server->ptyd.wanted = false;
	for (size_t i = 0; i < *group->n_rows; i++)
		server->ptyd.wanted |= abx_policy_rule(policy, &group->rows[i])->enabled;
}

/* Hand the running daemon the new policy: it cannot be replaced without ending the sessions. */
static void send_policy(const struct abx_server *server)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} rights = { .room = "" };
	char byte = 'P';
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = rights.room, .msg_controllen = sizeof(rights.room) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &server->policy_fd, sizeof(int));
	if (sendmsg(server->ptyd.control_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		abx_log(ABX_LOG_ERROR, "cannot tell " PROGRAM " of the new policy: %s", strerror(errno));
}

static void start(struct abx_server *server)
{
	struct abx_ptyd *ptyd = &server->ptyd;
	int ends[2];

	ptyd->backoff.started_ms = abx_clock_ms();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		abx_log(ABX_LOG_ERROR, "cannot start " PROGRAM ": %s", strerror(errno));
		abx_backoff_died(&ptyd->backoff);
		return;
	}
	pid_t pid = abx_spawn_program(server, ptyd->program, ptyd->listen_fd, ends[1], ptyd->fd);
	close(ends[1]);
	if (pid < 0) {
		abx_log(ABX_LOG_ERROR, "cannot start %s: %s", ptyd->program, strerror(errno));
		close(ends[0]);
		abx_backoff_died(&ptyd->backoff);
		return;
	}
	ptyd->pid = pid;
	ptyd->control_fd = ends[0];
	abx_log(ABX_LOG_DEBUG, PROGRAM " started (pid %d)", (int)pid);
}

/* The port is closed while all of terminal is off. */
static void switch_off(struct abx_ptyd *ptyd)
{
	if (ptyd->pid)
		kill(ptyd->pid, SIGTERM);
	close(abx_steal_fd(&ptyd->listen_fd));
	ptyd->backoff.retry_ms = 0;
	abx_log(ABX_LOG_INFO, "terminals are off; the pty port is closed");
}

static void switch_on(struct abx_server *server)
{
	struct abx_ptyd *ptyd = &server->ptyd;
	struct abx_err err = ABX_ERR_INIT;

	ptyd->listen_fd = abx_listen(server->settings.host, server->settings.pty_port, &err);
	if (ptyd->listen_fd < 0)
		abx_log(ABX_LOG_ERROR, "ABX_PTY_PORT: %s", err.message);
	else if (!ptyd->pid)
		ptyd->backoff.retry_ms = abx_clock_ms();
}

void abx_ptyd_reload(struct abx_server *server)
{
	struct abx_ptyd *ptyd = &server->ptyd;

	if (!ptyd->program)
		return;
	if (!ptyd->wanted && ptyd->listen_fd >= 0)
		switch_off(ptyd);
	else if (ptyd->wanted && ptyd->listen_fd < 0)
		switch_on(server);
	else if (ptyd->pid)
		send_policy(server);
}

bool abx_ptyd_died(struct abx_server *server, pid_t pid, int code, int status)
{
	struct abx_ptyd *ptyd = &server->ptyd;
	bool expected = server->stop_step > 0 || ptyd->listen_fd < 0;
	char how[96];

	if (pid != ptyd->pid)
		return false;
	abx_describe_death(code, status, how, sizeof(how));
	abx_log(expected ? ABX_LOG_DEBUG : ABX_LOG_ERROR, PROGRAM " (pid %d) %s", (int)pid, how);
	abx_groups_end_leftovers(server, pid);
	abx_rates_forget(&server->board->rates, pid);
	close(abx_steal_fd(&ptyd->control_fd));
	ptyd->pid = 0;
	if (server->stop_step == 0 && ptyd->listen_fd >= 0)
		abx_backoff_died(&ptyd->backoff);
	return true;
}

void abx_ptyd_tick(struct abx_server *server, int64_t *deadline)
{
	struct abx_ptyd *ptyd = &server->ptyd;

	if (server->stop_step > 0)
		return;
	if (abx_backoff_due(&ptyd->backoff))
		start(server);
	abx_deadline_add(deadline, ptyd->backoff.retry_ms);
}

bool abx_ptyd_kill(const struct abx_server *server, int sig)
{
	if (server->ptyd.pid && sig)
		kill(server->ptyd.pid, sig);
	return server->ptyd.pid != 0;
}
