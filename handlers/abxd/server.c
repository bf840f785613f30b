#include "handlers/abxd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "policy/document.h"

/* How often we look whether the names in the run directory are there. */
#define CHECK_MS 1000

/* The first answer of /health has to come within this time. */
#define START_MS 30000

/* A start that dies within this time of its beginning counts as a failure. */
#define YOUNG_MS 1000

/* ---- what others of us use */

int abx_server_watch(struct abx_server *server, int fd, enum abx_source source, unsigned index, struct abx_err *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)source << 32 | index };

	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return abx_err_errno(err, errno, "epoll");
	return 0;
}

void abx_server_unwatch(struct abx_server *server, int fd)
{
	epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void abx_backoff_died(struct abx_backoff *backoff)
{
	int64_t now = abx_clock_ms(), wait;

	if (now - backoff->started_ms > YOUNG_MS)
		backoff->failures = 0;
	else
		backoff->failures++;
	wait = backoff->failures ? (int64_t)10 << (backoff->failures - 1 < 7 ? backoff->failures - 1 : 7) : 0;
	backoff->retry_ms = now + (wait < 1000 ? wait : 1000);
}

bool abx_backoff_due(struct abx_backoff *backoff)
{
	if (!backoff->retry_ms || backoff->retry_ms > abx_clock_ms())
		return false;
	backoff->retry_ms = 0;
	return true;
}

void abx_server_report(struct abx_server *server, int status, const char *text)
{
	if (server->reported)
		return;
	server->reported = true;
	if (server->report_fd >= 0) {
		dprintf(server->report_fd, "%c%s\n", status, text);
		close(server->report_fd);
		server->report_fd = -1;
	} else if (status) {
		dprintf(STDERR_FILENO, "abxd: %s\n", text);
	} else {
		dprintf(STDOUT_FILENO, "%s\n", text);
		/* Nothing more comes, and whoever reads from us may wait for the end. */
		int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null_fd >= 0) {
			dup2(null_fd, STDOUT_FILENO);
			close(null_fd);
		}
	}
}

/* ---- the end, in steps */

struct stop_step {
	int64_t after_ms; /* since the step before */
	int responders, web; /* signals; 0: none */
};

static const struct stop_step stop_steps[] = {
	{ 0, SIGINT, SIGINT },
	{ 2000, 0, SIGTERM },
	{ 500, SIGKILL, 0 },
	{ 500, SIGKILL, SIGKILL },
};

/* What lighttpd has still to send when the responders are gone waits no longer than this. */
#define WEB_LAST_MS 150

static void stop(struct abx_server *server)
{
	if (server->stop_step > 0)
		return;
	if (server->web.listen_fd >= 0) {
		abx_log(ABX_LOG_DEBUG, "stopping");
		close(abx_steal_fd(&server->web.listen_fd));
	}
	server->stop_step = 1;
	server->stop_ms = server->stop_began_ms = abx_clock_ms();
}

void abx_server_fail(struct abx_server *server, int status, const char *text)
{
	abx_server_report(server, status, text);
	server->exit_status = status;
	stop(server);
}

/* Whether everything has ended. */
static bool stop_tick(struct abx_server *server, int64_t *deadline)
{
	int64_t now = abx_clock_ms();
	bool responders = abx_groups_kill(server, 0);
	bool worker = abx_worker_stop(server, !abx_group_lives(server, ABX_GROUP_COMMANDS), deadline);

	if (!responders && !worker && !server->web.pid)
		return true;
	if (!responders && server->stop_step == 2 && server->stop_ms > now + WEB_LAST_MS)
		server->stop_ms = now + WEB_LAST_MS;
	while (server->stop_step <= (int)ABX_N(stop_steps) && server->stop_ms <= now) {
		const struct stop_step *step = &stop_steps[server->stop_step - 1];

		if (step->responders)
			abx_groups_kill(server, step->responders);
		if (step->web && server->web.pid)
			kill(server->web.pid, step->web);
		server->stop_step++;
		server->stop_ms = now + (server->stop_step <= (int)ABX_N(stop_steps) ?
					 stop_steps[server->stop_step - 1].after_ms : INT32_MAX);
	}
	abx_deadline_add(deadline, server->stop_ms);
	return false;
}

/* ---- events */

/* Reap everything that has died. What a responder left is ended before its pid is free for another process. */
static void reap(struct abx_server *server)
{
	for (;;) {
		siginfo_t info = { 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			return;
		if (!abx_groups_died(server, info.si_pid, info.si_code, info.si_status) &&
		    !abx_ptyd_died(server, info.si_pid, info.si_code, info.si_status) &&
		    !abx_worker_died(server, info.si_pid, info.si_code, info.si_status))
			abx_web_died(server, info.si_pid, info.si_code, info.si_status);
		waitpid(info.si_pid, NULL, 0);
	}
}

static void take_signals(struct abx_server *server)
{
	struct signalfd_siginfo info;

	while (read(server->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(server);
		else if (info.ssi_signo != SIGHUP)
			stop(server);
		else if (server->stop_step == 0)
			abx_server_reload_policy(server);
	}
}

static void take_event(struct abx_server *server, uint64_t data)
{
	unsigned index = (unsigned)(data & UINT32_MAX);

	switch ((enum abx_source)(data >> 32)) {
	case ABX_SOURCE_SIGNAL:
		take_signals(server);
		break;
	case ABX_SOURCE_CONTROL:
		abx_groups_control(server, index);
		break;
	case ABX_SOURCE_LISTEN:
		abx_groups_connection(server, (enum abx_group)index);
		break;
	case ABX_SOURCE_WEB_LOG:
		abx_web_log(server);
		break;
	case ABX_SOURCE_PROBE:
		abx_web_probe(server);
		break;
	case ABX_SOURCE_WORKER:
		abx_worker_control(server);
		break;
	case ABX_SOURCE_WORKER_LOG:
		abx_worker_log(server);
		break;
	}
}

static void report_if_ready(struct abx_server *server, int64_t *deadline)
{
	abx_auto_free char *url = NULL, *text = NULL;
	int rc;

	if (server->reported)
		return;
	if (abx_worker_ready(server) && (server->peer_user ? abx_groups_ready(server) : server->web.came_up && abx_groups_tried(server))) {
		url = server->peer_user ? NULL : abx_web_url(server);
		if (url)
			rc = asprintf(&text, "abx: listening on %s (base directory %s)", url, server->policy->base_dir);
		else
			rc = asprintf(&text, "abx: serving in %s (base directory %s)", server->dir.path,
				      server->policy->base_dir);
		if (rc < 0)
			text = NULL;
		abx_server_report(server, 0, text ? text : "abx: ready");
	} else if (abx_clock_ms() >= server->start_ms + START_MS) {
		abx_server_fail(server, EXIT_FAILURE, abx_worker_ready(server) ? "the server did not answer within 30 seconds of its start" :
						      "the worker did not say within 30 seconds of the start what it serves");
	} else {
		abx_deadline_add(deadline, server->start_ms + START_MS);
	}
}

static void check_names(struct abx_server *server, int64_t *deadline)
{
	struct abx_err err = ABX_ERR_INIT;

	if (server->check_ms <= abx_clock_ms()) {
		/* lighttpd needs these files only when it starts; another web server includes them when it likes. */
		if (!abx_rundir_check(&server->dir) && abx_webconf_write(server, &err) < 0)
			abx_log(ABX_LOG_ERROR, "%s", err.message);
		abx_groups_check_names(server);
		abx_groups_check_base(server);
		if (server->daemon)
			abx_rundir_trim_log();
		server->check_ms = abx_clock_ms() + CHECK_MS;
	}
	abx_deadline_add(deadline, server->check_ms);
}

int abx_server_run(struct abx_server *server)
{
	for (;;) {
		struct epoll_event events[16];
		int64_t deadline = INT64_MAX;

		abx_groups_tick(server, &deadline);
		abx_web_tick(server, &deadline);
		abx_ptyd_tick(server, &deadline);
		abx_worker_tick(server, &deadline);
		if (server->stop_step == 0) {
			report_if_ready(server, &deadline);
			check_names(server, &deadline);
			abx_server_reload_tick(server);
		}
		if (server->stop_step > 0 && stop_tick(server, &deadline))
			break;
		int64_t wait = deadline - abx_clock_ms();
		int n = epoll_wait(server->epoll_fd, events, ABX_N(events), wait < 0 ? 0 : wait > 60000 ? 60000 : (int)wait);
		for (int i = 0; i < n; i++)
			take_event(server, events[i].data.u64);
	}
	return server->exit_status;
}

/* ---- the beginning */

static int open_signals(struct abx_server *server, struct abx_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	/* A parent may have left it ignored, and then nothing could be waited for. */
	signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return abx_err_errno(err, errno, "signals");
	server->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server->signal_fd < 0 || server->epoll_fd < 0)
		return abx_err_errno(err, errno, "signals");
	return abx_server_watch(server, server->signal_fd, ABX_SOURCE_SIGNAL, 0, err);
}

/* Whether a user can reach what lies in the directories that lead to `path`; what is missing will be made so that it can. */
static bool can_reach(const struct passwd *user, const char *path)
{
	abx_auto_free char *copy = path ? strdup(path) : NULL;
	struct stat st;

	for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (stat(copy, &st) == 0 && !(st.st_mode & S_IXOTH) && !(st.st_uid == user->pw_uid && st.st_mode & S_IXUSR) &&
		    !(st.st_gid == user->pw_gid && st.st_mode & S_IXGRP))
			return false;
		*slash = '/';
	}
	return true;
}

/* Whose connections responders take, and who owns the sockets' names. */
static int choose_web_user(struct abx_server *server, struct abx_err *err)
{
	const char *name = server->peer_user ? server->peer_user : "www-data";
	struct passwd *user = NULL;

	if (server->peer_user && !*server->peer_user)
		user = getpwuid(geteuid());
	else if (server->peer_user || geteuid() == 0)
		user = getpwnam(name);
	if (server->peer_user) {
		if (!user)
			return abx_err_set(err, ABX_E_VALUE, "--peer-user: there is no user '%s'", name);
		if (geteuid() != 0 && user->pw_uid != geteuid())
			return abx_err_set(err, ABX_E_VALUE, "--peer-user: only root can serve another user's web server");
		server->board->any_peer = 1;
		server->board->peer_uid = user->pw_uid;
	}
	/* A run directory inside somebody's private one: the web server keeps our user then, rather than not to start. */
	if (user && !server->peer_user && (!can_reach(user, server->settings.run_dir) || !can_reach(user, server->settings.spool_dir))) {
		abx_log(ABX_LOG_WARNING, "user '%s' cannot reach the run or spool directory: lighttpd runs as root", name);
		user = NULL;
	}
	if (user && geteuid() == 0) {
		server->dir.web_uid = user->pw_uid;
		server->dir.web_gid = user->pw_gid;
	}
	return 0;
}

static int make_base(const char *path, struct abx_err *err)
{
	abx_auto_free char *copy = strdup(path);

	if (!copy)
		return abx_err_errno(err, ENOMEM, "base directory");
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(copy, 0755);
		*slash = '/';
	}
	mkdir(copy, 0755);
	abx_auto_fd int fd = open(copy, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return abx_err_errno(err, errno, "the base directory %s cannot be used", path);
	return 0;
}

int abx_server_open(struct abx_server *server, struct abx_err *err)
{
	server->start_ms = abx_clock_ms();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return abx_err_errno(err, errno, "PR_SET_CHILD_SUBREAPER");
	if (open_signals(server, err) < 0)
		return -1;
	server->board = abx_board_create(&server->board_fd, err);
	if (!server->board || choose_web_user(server, err) < 0 ||
	    abx_rundir_open(&server->dir, &server->settings, err) < 0)
		return -1;
	if (server->daemon && abx_rundir_open_log(&server->dir, err) < 0)
		return -1;
	if (!server->peer_user && abx_web_open(server, err) < 0)
		return -1;
	if (abx_server_publish_policy(server, err) < 0 || make_base(server->policy->base_dir, err) < 0 ||
	    abx_groups_open(server, err) < 0 || abx_ptyd_open(server, err) < 0 ||
	    abx_worker_open(server, err) < 0)
		return -1;
	server->check_ms = abx_clock_ms() + CHECK_MS;
	abx_groups_check_base(server);
	abx_groups_start(server);
	return server->peer_user ? abx_webconf_write(server, err) : abx_web_start(server, err);
}

void abx_server_close(struct abx_server *server)
{
	/* After a start that failed half-way there may be some left. */
	if (server->board) {
		abx_groups_kill(server, SIGKILL);
		if (server->web.pid)
			kill(server->web.pid, SIGKILL);
		abx_kill_descendants(server, abx_clock_ms() + 2000);
	}
	abx_rundir_remove(&server->dir);
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		free(server->groups[g].program);
	free(server->web.program);
	free(server->ptyd.program);
	abx_worker_close(server);
	free(server->env);
	free(server->reload_error);
	abx_policy_free(server->policy);
	abx_document_free(server->document);
	abx_settings_release(&server->settings);
}
