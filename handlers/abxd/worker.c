/*
 * The worker: the process in which the functions of a template's own code (commands.py) run.
 *
 * The first one was forked by commands.py itself before it became abxd; it has the code loaded, and serves as soon as it is accepted. When it dies it is
 * started again from the same command line. Calls go past us: abx-commands sends each over a pair of sockets that we hold open for ever, so that what no worker
 * has taken yet waits there for the next one (common/worker.h).
 */
#include "handlers/abxd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ids.h"
#include "common/json.h"
#include "common/log.h"
#include "common/spawn.h"
#include "common/worker.h"
#include "policy/code.h"
#include "policy/policy.h"

/* What the worker finds its sockets under. */
#define THEIR_CALLS   3
#define THEIR_CONTROL 4
#define THEIR_END     5

/* From SIGTERM to SIGKILL; and from the beginning of the server's end to SIGKILL at the latest. */
#define TERM_MS 2000
#define LAST_MS 3000

/* ---- what is told of it */

/* Everybody who calls is told, and /capabilities, until a worker is accepted. */
static void warn(struct abx_server *server, const char *why)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;

	abx_strbuf_addf(&text, "%s: %s\n", server->worker.code->name, why);
	for (char *c = text.buf; c + 1 < text.buf + text.len; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	abx_board_warn(server->board, ABX_BOARD_WORKER, text.buf);
	abx_strbuf_truncate(&text, text.len - 1);
	abx_log(ABX_LOG_ERROR, "%s", text.buf);
	if (!server->reported)
		abx_server_fail(server, EXIT_FAILURE, text.buf);
}

/* Keep the last line that it wrote with something in it. */
static void keep_line(struct abx_worker *worker)
{
	worker->line[worker->line_len] = '\0';
	if (worker->line[strspn(worker->line, " \t\r")])
		memcpy(worker->last_line, worker->line, worker->line_len + 1);
	worker->line_len = 0;
}

static void take_text(struct abx_worker *worker, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			keep_line(worker);
		else if (worker->line_len < sizeof(worker->line) - 1)
			worker->line[worker->line_len++] = text[i];
	}
}

/* Pass on what it wrote, as the first one's goes straight to where ours does. A reader that has stopped does not stop us. */
void abx_worker_log(struct abx_server *server)
{
	struct abx_worker *worker = &server->worker;
	struct pollfd ours = { .fd = STDERR_FILENO, .events = POLLOUT };
	char text[4096];
	ssize_t n = worker->log_fd < 0 ? 0 : read(worker->log_fd, text, sizeof(text));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (worker->log_fd >= 0) {
			abx_server_unwatch(server, worker->log_fd);
			close(abx_steal_fd(&worker->log_fd));
		}
		return;
	}
	if (!worker->accepted)
		take_text(worker, text, (size_t)n);
	if (poll(&ours, 1, 0) > 0)
		while (write(STDERR_FILENO, text, (size_t)n) < 0 && errno == EINTR)
			;
}

/* ---- control */

static void kill_worker(struct abx_worker *worker, int sig)
{
	if (!worker->pid)
		return;
	kill(worker->pid, sig);
	if (sig == SIGKILL)
		kill(-worker->pid, sig);
}

static void close_control(struct abx_server *server)
{
	struct abx_worker *worker = &server->worker;

	if (worker->control_fd < 0)
		return;
	abx_server_unwatch(server, worker->control_fd);
	close(abx_steal_fd(&worker->control_fd));
}

/* It may serve: and it learns which variables of its environment held tokens, and what marks the processes that it starts as its own. */
static void send_accept(const struct abx_server *server)
{
	abx_auto_strbuf struct abx_strbuf line = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&line);

	abx_jw_object(&jw);
	abx_jw_kbool(&jw, "accept", true);
	abx_jw_key(&jw, "secrets");
	abx_jw_array(&jw);
	for (char *const *name = server->policy->secrets; *name; name++)
		abx_jw_string(&jw, *name);
	abx_jw_array_end(&jw);
	abx_jw_kstring(&jw, "invocation", server->worker.invocation);
	abx_jw_object_end(&jw);
	abx_strbuf_addc(&line, '\n');
	if (send(server->worker.control_fd, line.buf, line.len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)line.len)
		abx_log(ABX_LOG_ERROR, "the worker cannot be spoken to: %s", strerror(errno));
}

static void accept_worker(struct abx_server *server)
{
	struct abx_worker *worker = &server->worker;

	worker->accepted = true;
	worker->backoff.started_ms = abx_clock_ms();
	abx_board_warn(server->board, ABX_BOARD_WORKER, "");
	abx_log(ABX_LOG_INFO, "the worker of %s serves (pid %d)", worker->code->name, (int)worker->pid);
	send_accept(server);
}

/* Rows and registry are what they were at the start: a worker that knows others would be called for what it does not have. */
static void refuse_worker(struct abx_server *server)
{
	server->worker.told = true;
	kill_worker(&server->worker, SIGKILL);
	warn(server, "the worker came back with other commands, routes or groups than the server was started with, and is refused: restart the server to have them");
}

/* Compare what it says with the table, as it comes. */
static void take_table(struct abx_server *server, const char *text, size_t len)
{
	struct abx_worker *worker = &server->worker;
	const struct abx_code *code = worker->code;
	size_t left = code->len - worker->heard;

	if (len <= left && memcmp(text, code->text + worker->heard, len) == 0)
		worker->heard += len;
	else if (len == left + 1 && text[left] == '\n' && memcmp(text, code->text + worker->heard, left) == 0)
		accept_worker(server);
	else
		refuse_worker(server);
}

void abx_worker_control(struct abx_server *server)
{
	struct abx_worker *worker = &server->worker;
	char text[4096];
	ssize_t n = worker->control_fd < 0 ? 0 : recv(worker->control_fd, text, sizeof(text), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* It dies, or has lost what it would hear of our end by. */
		close_control(server);
		kill_worker(worker, SIGKILL);
	} else if (!worker->accepted && !worker->told) {
		take_table(server, text, (size_t)n);
	}
}

void abx_worker_reload(struct abx_server *server)
{
	if (server->worker.accepted && server->worker.control_fd >= 0)
		send_accept(server);
}

/* ---- starting */

/* The environment of children, the mark, and where the sockets are. The two strings are the caller's. */
static char **make_env(const struct abx_server *server, char *mark, char *fds)
{
	size_t n = 0, k = 0;
	char **env;

	while (server->env[n])
		n++;
	env = calloc(n + 3, sizeof(*env));
	for (size_t i = 0; env && i < n; i++)
		if (strncmp(server->env[i], ABX_INVOCATION, strlen(ABX_INVOCATION)) != 0)
			env[k++] = server->env[i];
	if (env) {
		env[k++] = mark;
		env[k] = fds;
	}
	return env;
}

static void make_mark(const struct abx_server *server, char invocation[33])
{
	memcpy(invocation, server->board->instance, 16);
	abx_id_hex(invocation + 16, 16);
}

static int spawn(const struct abx_server *server, int control_fd, int log_fd, char **env, pid_t *ret_pid)
{
	const struct abx_worker *worker = &server->worker;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t all, none;
	int rc = posix_spawn_file_actions_init(&files);

	if (rc)
		return rc;
	rc = posix_spawnattr_init(&attr);
	if (rc) {
		posix_spawn_file_actions_destroy(&files);
		return rc;
	}
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn_file_actions_adddup2(&files, log_fd, STDOUT_FILENO);
	rc |= posix_spawn_file_actions_adddup2(&files, log_fd, STDERR_FILENO);
	rc |= posix_spawn_file_actions_adddup2(&files, worker->their_calls_fd, THEIR_CALLS);
	rc |= posix_spawn_file_actions_adddup2(&files, control_fd, THEIR_CONTROL);
	rc |= posix_spawn_file_actions_addclosefrom_np(&files, THEIR_END);
	rc |= posix_spawn_file_actions_addchdir_np(&files, worker->cwd);
	if (rc == 0)
		rc = posix_spawn(ret_pid, worker->argv[0], &files, &attr, worker->argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return rc;
}

static int start(struct abx_server *server, struct abx_err *err)
{
	struct abx_worker *worker = &server->worker;
	char mark[64], fds[32];
	int control[2], log[2], rc;

	make_mark(server, worker->invocation);
	snprintf(mark, sizeof(mark), ABX_INVOCATION "%s", worker->invocation);
	snprintf(fds, sizeof(fds), ABX_WORKER_FDS "=%d,%d", THEIR_CALLS, THEIR_CONTROL);
	abx_auto_free char **env = make_env(server, mark, fds);
	if (!env || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0)
		return abx_err_errno(err, errno, "cannot be started");
	abx_auto_fd int ours = control[0];
	abx_auto_fd int theirs = control[1];
	if (pipe2(log, O_CLOEXEC) < 0)
		return abx_err_errno(err, errno, "cannot be started");
	abx_auto_fd int reader = log[0];
	abx_auto_fd int writer = log[1];
	rc = spawn(server, theirs, writer, env, &worker->pid);
	if (rc) {
		worker->pid = 0;
		return abx_err_errno(err, rc, "%s cannot be started in %s", worker->argv[0], worker->cwd);
	}
	if (fcntl(reader, F_SETFL, O_NONBLOCK) < 0 || abx_server_watch(server, ours, ABX_SOURCE_WORKER, 0, err) < 0 ||
	    abx_server_watch(server, reader, ABX_SOURCE_WORKER_LOG, 0, err) < 0)
		abx_log(ABX_LOG_ERROR, "the worker: %s", err->message);
	worker->control_fd = abx_steal_fd(&ours);
	worker->log_fd = abx_steal_fd(&reader);
	return 0;
}

/* A start that failed, however long it took, makes the next one wait. */
static void plan_next(struct abx_worker *worker)
{
	if (!worker->accepted)
		worker->backoff.started_ms = abx_clock_ms();
	abx_backoff_died(&worker->backoff);
}

static void start_again(struct abx_server *server)
{
	struct abx_worker *worker = &server->worker;
	struct abx_err err = ABX_ERR_INIT;

	worker->accepted = worker->told = false;
	worker->heard = worker->line_len = 0;
	worker->last_line[0] = '\0';
	if (start(server, &err) < 0) {
		warn(server, err.message);
		plan_next(worker);
	}
}

int abx_worker_open(struct abx_server *server, struct abx_err *err)
{
	struct abx_worker *worker = &server->worker;

	if (!worker->code)
		return 0;
	make_mark(server, worker->invocation);
	return abx_server_watch(server, worker->control_fd, ABX_SOURCE_WORKER, 0, err);
}

bool abx_worker_ready(const struct abx_server *server)
{
	return !server->worker.code || server->worker.accepted;
}

/* ---- its end */

/* Read what it wrote last. What it has started may hold the pipe open, so its end is not waited for. */
static void close_log(struct abx_server *server)
{
	struct abx_worker *worker = &server->worker;
	struct pollfd more = { .fd = worker->log_fd, .events = POLLIN };

	for (int i = 0; i < 64 && worker->log_fd >= 0 && poll(&more, 1, 0) > 0; i++)
		abx_worker_log(server);
	if (worker->log_fd >= 0) {
		abx_server_unwatch(server, worker->log_fd);
		close(abx_steal_fd(&worker->log_fd));
	}
	keep_line(worker);
}

static void warn_of_death(struct abx_server *server, const char *how)
{
	const struct abx_worker *worker = &server->worker;
	abx_auto_strbuf struct abx_strbuf why = ABX_STRBUF_INIT;

	abx_strbuf_addf(&why, "the worker does not start, it %s", how);
	if (worker->last_line[0])
		abx_strbuf_addf(&why, ": %s", worker->last_line);
	warn(server, why.buf);
}

bool abx_worker_died(struct abx_server *server, pid_t pid, int code, int status)
{
	struct abx_worker *worker = &server->worker;
	char how[96];

	if (!worker->code || pid != worker->pid)
		return false;
	abx_describe_death(code, status, how, sizeof(how));
	/* It is not reaped yet, so the number of its group is still its own. */
	kill(-pid, SIGKILL);
	abx_kill_marked(worker->invocation);
	/* The table may have come with its death. */
	if (!worker->accepted && !worker->told)
		abx_worker_control(server);
	close_control(server);
	close_log(server);
	worker->pid = 0;
	if (server->stop_step > 0) {
		abx_log(ABX_LOG_DEBUG, "the worker (pid %d) %s", (int)pid, how);
		return true;
	}
	if (worker->accepted)
		abx_log(ABX_LOG_ERROR, "the worker of %s (pid %d) %s", worker->code->name, (int)pid, how);
	else if (!worker->told)
		warn_of_death(server, how);
	plan_next(worker);
	return true;
}

void abx_worker_tick(struct abx_server *server, int64_t *deadline)
{
	struct abx_worker *worker = &server->worker;

	if (!worker->code || server->stop_step > 0)
		return;
	if (abx_backoff_due(&worker->backoff))
		start_again(server);
	abx_deadline_add(deadline, worker->backoff.retry_ms);
}

bool abx_worker_stop(struct abx_server *server, bool drained, int64_t *deadline)
{
	struct abx_worker *worker = &server->worker;
	int64_t now = abx_clock_ms(), last = server->stop_began_ms + LAST_MS;

	if (!worker->pid)
		return false;
	if (drained && !worker->kill_ms) {
		kill_worker(worker, SIGTERM);
		worker->kill_ms = now + TERM_MS < last ? now + TERM_MS : last;
	}
	if (now >= (worker->kill_ms ? worker->kill_ms : last))
		kill_worker(worker, SIGKILL);
	else
		abx_deadline_add(deadline, worker->kill_ms ? worker->kill_ms : last);
	return true;
}

void abx_worker_close(struct abx_server *server)
{
	struct abx_worker *worker = &server->worker;

	abx_list_free(worker->argv);
	free(worker->cwd);
}
