#include "handlers/abxd/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/spawn.h"
#include "policy/policy.h"

/* How long a responder may take to finish the calls that it has when a new generation has taken over. */
#define DRAIN_MS 60000

/* And how long, after that, to tell the callers of its streams that they end. */
#define END_MS 2000

/* How long a connection that is refused may take to send its request: lighttpd does so at once. */
#define REQUEST_MS 20

/* So many deaths in a row mean that waiting callers get an error. */
#define GIVE_UP_AFTER 4

/* Groups whose processes, sessions or connections live in their responder: a new policy does not replace it. */
static const bool stateful[ABX_GROUP__COUNT] = {
	[ABX_GROUP_PROCESS] = true,
	[ABX_GROUP_TERMINAL] = true,
	[ABX_GROUP_BROWSER] = true,
	[ABX_GROUP_AGENTS] = true,
};

/* ---- the board's list of peers: whose connections responders take besides lighttpd's (slot 0) */

static void forget_peer(struct abx_board *board, pid_t pid)
{
	for (size_t i = 1; i < ABX_BOARD_PEERS; i++)
		if (board->peers[i] == pid)
			board->peers[i] = 0;
}

/* Core relays to other groups. Should every slot be taken, by cores that drain, the oldest of them loses its own. */
static void note_peer(struct abx_board *board, pid_t pid)
{
	size_t slot = 1;

	while (slot < ABX_BOARD_PEERS && board->peers[slot] != 0)
		slot++;
	if (slot == ABX_BOARD_PEERS) {
		for (slot = 1; slot + 1 < ABX_BOARD_PEERS; slot++)
			board->peers[slot] = board->peers[slot + 1];
	}
	board->peers[slot] = pid;
}

/* ---- starting */

static struct abx_responder *free_responder(struct abx_server *server)
{
	for (size_t i = 0; i < ABX_RESPONDERS; i++)
		if (server->responders[i].state == ABX_RESPONDER_NONE)
			return &server->responders[i];
	return NULL;
}

/* What some groups get besides. */
static int more_fd_of(const struct abx_server *server, enum abx_group group)
{
	if (group == ABX_GROUP_TERMINAL)
		return server->ptyd.terminal_fd;
	return group == ABX_GROUP_COMMANDS && server->worker.code ? server->worker.calls_fd : -1;
}

static struct abx_responder *start_responder(struct abx_server *server, enum abx_group group)
{
	struct abx_responder *responder = free_responder(server);
	struct abx_err err = ABX_ERR_INIT;
	int ends[2];

	if (!responder || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		abx_log(ABX_LOG_ERROR, "cannot start %s: no free slot or descriptor", abx_groups[group].name);
		return NULL;
	}
	abx_auto_fd int ours = ends[0];
	abx_auto_fd int theirs = ends[1];
	pid_t pid = abx_spawn_program(server, server->groups[group].program, server->groups[group].listen_fd, theirs,
				      more_fd_of(server, group));
	if (pid < 0) {
		abx_log(ABX_LOG_ERROR, "cannot start %s: %s", server->groups[group].program, strerror(errno));
		return NULL;
	}
	if (group == ABX_GROUP_CORE)
		note_peer(server->board, pid);
	*responder = (struct abx_responder){ .state = ABX_RESPONDER_STARTING, .group = group, .pid = pid,
					     .control_fd = abx_steal_fd(&ours) };
	if (abx_server_watch(server, responder->control_fd, ABX_SOURCE_CONTROL,
			     (unsigned)(responder - server->responders), &err) < 0)
		abx_log(ABX_LOG_ERROR, "%s", err.message);
	abx_log(ABX_LOG_DEBUG, "%s started (pid %d)", abx_groups[group].name, (int)pid);
	return responder;
}

static void watch_listen(struct abx_server *server, enum abx_group group, enum abx_listen_watch watch)
{
	struct abx_group_state *state = &server->groups[group];
	struct abx_err err = ABX_ERR_INIT;

	if (state->watch == watch)
		return;
	if (state->watch != ABX_LISTEN_NONE)
		abx_server_unwatch(server, state->listen_fd);
	state->watch = watch;
	if (watch != ABX_LISTEN_NONE &&
	    abx_server_watch(server, state->listen_fd, ABX_SOURCE_LISTEN, group, &err) < 0)
		abx_log(ABX_LOG_ERROR, "%s", err.message);
}

static void plan_next(struct abx_server *server, enum abx_group group, const char *how)
{
	struct abx_group_state *state = &server->groups[group];
	char text[256];

	abx_backoff_died(&state->backoff);
	state->tried = true;
	if (group == ABX_GROUP_CORE && !server->reported && state->backoff.failures == GIVE_UP_AFTER) {
		snprintf(text, sizeof(text), "%s %s", state->program, how);
		abx_server_fail(server, EXIT_FAILURE, text);
		return;
	}
	if (state->backoff.failures == GIVE_UP_AFTER)
		abx_log(ABX_LOG_ERROR, "%s does not come up; its callers get errors until it does", abx_groups[group].name);
	if (state->backoff.failures >= GIVE_UP_AFTER)
		watch_listen(server, group, ABX_LISTEN_REFUSE);
}

static void start_current(struct abx_server *server, enum abx_group group)
{
	struct abx_group_state *state = &server->groups[group];

	watch_listen(server, group, ABX_LISTEN_NONE);
	state->backoff.started_ms = abx_clock_ms();
	state->current = start_responder(server, group);
	if (!state->current)
		plan_next(server, group, "could not be started");
}

/* ---- draining */

static void drain(struct abx_responder *responder)
{
	kill(responder->pid, SIGTERM);
	responder->accepts = responder->state == ABX_RESPONDER_READY;
	responder->state = ABX_RESPONDER_DRAINING;
	responder->kill_ms = abx_clock_ms() + DRAIN_MS;
}

/* ---- a new policy */

/* It has taken the policy that it was sent, or has kept the one before. */
static void take_answer(struct abx_server *server, struct abx_responder *responder, bool taken)
{
	abx_auto_free char *text = NULL;

	responder->asked = false;
	if (taken) {
		abx_log(ABX_LOG_INFO, "%s follows the new policy", abx_groups[responder->group].name);
		return;
	}
	if (asprintf(&text, "%s keeps the policy that it has; the log tells why", abx_groups[responder->group].name) < 0)
		text = NULL;
	abx_server_reload_failed(server, text ? text : "Out of memory");
}

/* Send the published policy to a responder. */
static int send_policy(const struct abx_server *server, const struct abx_responder *responder)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	char byte = 'P';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &server->policy_fd, sizeof(int));
	return sendmsg(responder->control_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* A new generation, which follows what there is now. */
static void renew(struct abx_server *server, enum abx_group group)
{
	struct abx_group_state *state = &server->groups[group];

	if (state->incoming)
		drain(state->incoming);
	state->incoming = start_responder(server, group);
}

void abx_group_reload(struct abx_server *server, enum abx_group group)
{
	struct abx_group_state *state = &server->groups[group];

	if (!state->current)
		return;
	if (stateful[group]) {
		state->current->asked = send_policy(server, state->current) == 0;
		if (!state->current->asked)
			take_answer(server, state->current, false);
		return;
	}
	renew(server, group);
	if (!state->incoming)
		abx_server_reload_failed(server, "a new responder could not be started; the log tells why");
}

bool abx_groups_settled(const struct abx_server *server)
{
	for (size_t i = 0; i < ABX_RESPONDERS; i++)
		if (server->responders[i].state == ABX_RESPONDER_DRAINING && server->responders[i].accepts)
			return false;
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++) {
		const struct abx_group_state *state = &server->groups[g];

		if (state->incoming || (state->current && state->current->asked))
			return false;
	}
	return true;
}

void abx_groups_control(struct abx_server *server, unsigned index)
{
	struct abx_responder *responder = &server->responders[index];
	struct abx_group_state *group = &server->groups[responder->group];
	char byte;
	ssize_t n = recv(responder->control_fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	/* An event of a responder that died a moment ago and had the slot before. */
	if (n < 0 && (errno == EAGAIN || errno == EBADF))
		return;
	if (n != 1 || byte == 'C') {
		/* It has closed its end, or is about to; what follows is told by its death. */
		abx_server_unwatch(server, responder->control_fd);
		return;
	}
	recv(responder->control_fd, &byte, 1, MSG_DONTWAIT);
	if (byte == 'D')
		responder->accepts = false;
	if (byte == 'N')
		abx_groups_check_base(server);
	if (byte == 'P' || byte == 'E')
		take_answer(server, responder, byte == 'P');
	if (byte != 'R' || responder->state != ABX_RESPONDER_STARTING)
		return;
	responder->state = ABX_RESPONDER_READY;
	group->tried = true;
	abx_log(ABX_LOG_DEBUG, "%s is ready (pid %d)", abx_groups[responder->group].name, (int)responder->pid);
	if (group->incoming == responder) {
		if (group->current)
			drain(group->current);
		group->current = responder;
		group->incoming = NULL;
		abx_log(ABX_LOG_INFO, "%s follows the new policy", abx_groups[responder->group].name);
	}
}

/* Close a connection so that lighttpd answers 500: it would try again, without end, had it not sent its request yet. */
static void refuse_connection(int listen_fd)
{
	struct pollfd ready = { .fd = listen_fd, .events = POLLIN };
	char rest[4096];

	/* The socket is a blocking one, for the responders' sake. */
	if (poll(&ready, 1, 0) <= 0)
		return;
	abx_auto_fd int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	ready.fd = fd;
	if (fd < 0 || poll(&ready, 1, REQUEST_MS) <= 0)
		return;
	while (read(fd, rest, sizeof(rest)) > 0)
		;
}

void abx_groups_connection(struct abx_server *server, enum abx_group group)
{
	struct abx_group_state *state = &server->groups[group];

	if (state->watch == ABX_LISTEN_FIRST)
		start_current(server, group);
	else if (state->watch == ABX_LISTEN_REFUSE)
		refuse_connection(state->listen_fd);
}

/* ---- deaths */

/*
 * They are ours now (we are their subreaper), so a pid on the board is still theirs exactly if
 * it is a child of ours: nobody else reaps.
 */
void abx_groups_end_leftovers(struct abx_server *server, pid_t owner)
{
	for (size_t i = 0; i < ABX_BOARD_CHILDREN; i++) {
		struct abx_board_child *child = &server->board->children[i];
		siginfo_t info;

		if (child->owner != owner)
			continue;
		pid_t pid = child->pid;
		if (pid > 1 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
			kill(-pid, SIGKILL);
		abx_kill_marked(child->invocation);
		abx_board_child_end(child);
	}
}

static struct abx_responder *find_responder(struct abx_server *server, pid_t pid)
{
	for (size_t i = 0; i < ABX_RESPONDERS; i++)
		if (server->responders[i].state != ABX_RESPONDER_NONE && server->responders[i].pid == pid)
			return &server->responders[i];
	return NULL;
}

/* Why it refused to start, or "": it did not. */
static void read_refusal(const struct abx_responder *responder, int code, int status, char *out, size_t size)
{
	ssize_t n = 0;

	if (code == CLD_EXITED && status == EX_CONFIG && responder->state == ABX_RESPONDER_STARTING)
		n = recv(responder->control_fd, out, size - 1, MSG_DONTWAIT);
	/* Without the C. */
	n = n > 1 && *out == 'C' ? n - 1 : 0;
	memmove(out, out + 1, (size_t)n);
	out[n] = '\0';
}

bool abx_groups_died(struct abx_server *server, pid_t pid, int code, int status)
{
	struct abx_responder *responder = find_responder(server, pid);
	char how[96], refusal[1024];

	if (!responder)
		return false;
	const char *name = abx_groups[responder->group].name;
	struct abx_group_state *group = &server->groups[responder->group];
	bool expected = responder->state == ABX_RESPONDER_DRAINING || server->stop_step > 0;

	abx_describe_death(code, status, how, sizeof(how));
	read_refusal(responder, code, status, refusal, sizeof(refusal));
	if (*refusal && !server->reported)
		abx_server_fail(server, EX_CONFIG, refusal);
	else
		abx_log(expected ? ABX_LOG_DEBUG : ABX_LOG_ERROR, "%s (pid %d) %s%s%s", name, (int)pid, how, *refusal ? ": " : "", refusal);
	abx_groups_end_leftovers(server, pid);
	forget_peer(server->board, pid);
	abx_rates_forget(&server->board->rates, pid);
	abx_server_unwatch(server, responder->control_fd);
	close(responder->control_fd);
	*responder = (struct abx_responder){ .control_fd = -1 };

	if (group->incoming == responder) {
		group->incoming = NULL;
		abx_log(ABX_LOG_ERROR, "the new %s did not come up; the one that runs keeps the policy that it has", name);
		abx_server_reload_failed(server, *refusal ? refusal : "a new responder did not come up; the log tells why");
	} else if (group->current == responder) {
		group->current = group->incoming;
		group->incoming = NULL;
		if (!group->current && server->stop_step == 0)
			plan_next(server, (enum abx_group)(group - server->groups), how);
	}
	return true;
}

void abx_groups_tick(struct abx_server *server, int64_t *deadline)
{
	int64_t now = abx_clock_ms();

	for (size_t i = 0; i < ABX_RESPONDERS; i++) {
		struct abx_responder *responder = &server->responders[i];

		if (responder->kill_ms && responder->kill_ms <= now) {
			kill(responder->pid, responder->ended ? SIGKILL : SIGINT);
			responder->kill_ms = responder->ended ? 0 : now + END_MS;
			responder->ended = true;
		}
		abx_deadline_add(deadline, responder->kill_ms);
	}
	for (enum abx_group g = 0; g < ABX_GROUP__COUNT && server->stop_step == 0; g++) {
		if (abx_backoff_due(&server->groups[g].backoff))
			start_current(server, g);
		abx_deadline_add(deadline, server->groups[g].backoff.retry_ms);
	}
}

/* ---- names and generations */

void abx_groups_check_names(struct abx_server *server)
{
	for (enum abx_group g = 0; g < ABX_GROUP__COUNT; g++) {
		struct abx_group_state *state = &server->groups[g];
		struct abx_err err = ABX_ERR_INIT;
		enum abx_listen_watch watch = state->watch;

		if (!state->program || abx_rundir_has_socket(&server->dir, abx_groups[g].name, state->ino))
			continue;
		abx_log(ABX_LOG_WARNING, "the socket of %s was removed; making it again", abx_groups[g].name);
		int fd = abx_rundir_socket(&server->dir, abx_groups[g].name, &state->ino, &err);
		if (fd < 0) {
			abx_log(ABX_LOG_ERROR, "%s", err.message);
			continue;
		}
		watch_listen(server, g, ABX_LISTEN_NONE);
		close(state->listen_fd);
		state->listen_fd = fd;
		/* A socket without a name cannot be given one, so those who listen on it finish what they have and go. */
		if (state->incoming)
			drain(state->incoming);
		if (state->current)
			drain(state->current);
		state->incoming = NULL;
		if (state->current)
			start_current(server, g);
		else
			watch_listen(server, g, watch);
	}
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3; /* as FNV-1a does it with bytes */
}

/* A number that changes when one of file_ops' directories is another than it was; 0: the base directory is not there. */
static uint64_t sum_trees(const struct abx_policy *policy)
{
	uint64_t sum = 0xcbf29ce484222325;
	struct stat st;

	if (stat(policy->base_dir, &st) < 0)
		return 0;
	sum = mix(mix(sum, st.st_dev), st.st_ino);
	for (size_t i = 0; i < *abx_groups[ABX_GROUP_FILE_OPS].n_rows; i++) {
		char *const *tree = abx_policy_rule(policy, &abx_groups[ABX_GROUP_FILE_OPS].rows[i])->lists[ABX_ALLOW_PATHS];

		for (; tree && *tree; tree++)
			if (stat(*tree, &st) == 0)
				sum = mix(mix(sum, st.st_dev), st.st_ino);
	}
	return sum;
}

void abx_groups_check_base(struct abx_server *server)
{
	uint64_t sum = sum_trees(server->policy);

	/* While there is none nothing is to be done, and nothing is made in a place that its owner may be about to fill. */
	if (!sum || sum == server->trees)
		return;
	if (server->trees && server->groups[ABX_GROUP_FILE_OPS].current) {
		abx_log(ABX_LOG_INFO, "the base directory, or another that callers may use, is a new one now");
		renew(server, ABX_GROUP_FILE_OPS);
	}
	server->trees = sum;
}

bool abx_groups_kill(struct abx_server *server, int sig)
{
	bool any = abx_ptyd_kill(server, sig);

	for (size_t i = 0; i < ABX_RESPONDERS; i++) {
		if (server->responders[i].state == ABX_RESPONDER_NONE)
			continue;
		any = true;
		if (sig)
			kill(server->responders[i].pid, sig);
	}
	return any;
}

bool abx_group_lives(const struct abx_server *server, enum abx_group group)
{
	for (size_t i = 0; i < ABX_RESPONDERS; i++)
		if (server->responders[i].state != ABX_RESPONDER_NONE && server->responders[i].group == group)
			return true;
	return false;
}

bool abx_groups_ready(const struct abx_server *server)
{
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++) {
		const struct abx_group_state *state = &server->groups[g];

		if (state->program && !abx_groups[g].opt_in && (!state->current || state->current->state != ABX_RESPONDER_READY))
			return false;
	}
	return true;
}

bool abx_groups_tried(const struct abx_server *server)
{
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		if (server->groups[g].program && !abx_groups[g].opt_in && !server->groups[g].tried)
			return false;
	return true;
}

/* ---- the beginning */

int abx_groups_open(struct abx_server *server, struct abx_err *err)
{
	for (enum abx_group g = 0; g < ABX_GROUP__COUNT; g++) {
		struct abx_group_state *state = &server->groups[g];

		abx_auto_free char *name = abx_group_program_name(g);

		state->program = name ? abx_find_program(name) : NULL;
		if (!state->program) {
			if (g == ABX_GROUP_CORE)
				return abx_err_set(err, ABX_E_INTERNAL, "the program %s is not installed in %s",
						   name ? name : "", ABX_LIBEXECDIR);
			abx_log(ABX_LOG_WARNING, "the program %s is not installed; the group is not mounted", name ? name : "");
			continue;
		}
		state->listen_fd = abx_rundir_socket(&server->dir, abx_groups[g].name, &state->ino, err);
		if (state->listen_fd < 0)
			return -1;
	}
	return 0;
}

void abx_groups_start(struct abx_server *server)
{
	for (enum abx_group g = 0; g < ABX_GROUP__COUNT; g++) {
		if (!server->groups[g].program)
			continue;
		if (abx_groups[g].opt_in)
			watch_listen(server, g, ABX_LISTEN_FIRST);
		else
			start_current(server, g);
	}
}
