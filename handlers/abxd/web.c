#include "handlers/abxd/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define BACKLOG 1024

/* After an answer of /health that was not 200: the responder is being restarted. */
#define PROBE_AGAIN_MS 20

/* ---- finding it, and the port */

static char *find_lighttpd(void)
{
	const char *path = getenv("PATH");
	abx_auto_free char *dirs = NULL;
	char *rest = NULL;

	if (asprintf(&dirs, "%s:/usr/sbin:/usr/local/sbin", path ? path : "") < 0)
		return NULL;
	for (char *dir = strtok_r(dirs, ":", &rest); dir; dir = strtok_r(NULL, ":", &rest)) {
		char *program;
		if (*dir != '/' || asprintf(&program, "%s/lighttpd", dir) < 0)
			continue;
		if (access(program, X_OK) == 0)
			return program;
		free(program);
	}
	return NULL;
}

static int listen_on(const struct addrinfo *address)
{
	abx_auto_fd int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1, off = 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* Accepted connections inherit it. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (address->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
		return -1;
	return abx_steal_fd(&fd);
}

/* What the socket is bound to, in numbers. */
static int describe_socket(struct abx_web *web)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "", port[8] = "";

	if (getsockname(web->listen_fd, (struct sockaddr *)&address, &len) < 0 ||
	    getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return -1;
	snprintf(web->bind, sizeof(web->bind), address.ss_family == AF_INET6 ? "[%s]" : "%s", host);
	web->port = (int)strtol(port, NULL, 10);
	return 0;
}

int abx_listen(const char *host, int port, struct abx_err *err)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM }, *found = NULL;
	char service[8];

	snprintf(service, sizeof(service), "%d", port);
	int rc = getaddrinfo(host, service, &hints, &found);
	if (rc != 0)
		return abx_err_set(err, ABX_E_VALUE, "ABX_SERVER_HOST: cannot resolve %s: %s", host, gai_strerror(rc));
	int fd = listen_on(found), saved = errno;
	freeaddrinfo(found);
	if (fd < 0 && saved == EADDRINUSE)
		return abx_err_set(err, ABX_E_CONFLICT, "port %d on %s is already taken", port, host);
	if (fd < 0)
		return abx_err_errno(err, saved, "cannot listen on %s port %d", host, port);
	return fd;
}

int abx_web_open(struct abx_server *server, struct abx_err *err)
{
	struct abx_web *web = &server->web;

	web->program = find_lighttpd();
	if (!web->program)
		return abx_err_set(err, ABX_E_INTERNAL,
				   "lighttpd was not found: install it, or use --no-lighttpd with a web server of your own");
	web->listen_fd = abx_listen(server->settings.host, server->settings.port, err);
	if (web->listen_fd < 0)
		return -1;
	if (describe_socket(web) < 0)
		return abx_err_errno(err, errno, "cannot listen on %s port %d", server->settings.host, server->settings.port);
	server->settings.port = web->port;
	return 0;
}

char *abx_web_url(const struct abx_server *server)
{
	const char *host = server->settings.host;
	bool bare_ipv6 = strchr(host, ':') && *host != '[';
	char *url;

	if (asprintf(&url, "http://%s%s%s:%d%s", bare_ipv6 ? "[" : "", host, bare_ipv6 ? "]" : "", server->settings.port,
		     server->settings.mount_prefix ? server->settings.mount_prefix : "") < 0)
		return NULL;
	return url;
}

/* ---- starting */

/*
 * In the child. lighttpd gets the port as descriptor 3 (the protocol of systemd's socket activation), and no right that it would have to give up:
 * that would also clear the parent-death signal, by which it ends when we are killed.
 */
_Noreturn static void exec_lighttpd(const struct abx_server *server, int log_fd, pid_t parent)
{
	const struct rlimit limit = { .rlim_cur = ABX_WEB_FDS, .rlim_max = ABX_WEB_FDS };
	char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", fds[] = "LISTEN_FDS=1", pid[32];
	char name[] = "lighttpd", foreground[] = "-D", file[] = "-f", conf[PATH_MAX];
	char *argv[] = { name, foreground, file, conf, NULL };
	char *env[] = { path, fds, pid, NULL };
	sigset_t none;

	snprintf(pid, sizeof(pid), "LISTEN_PID=%d", (int)getpid());
	snprintf(conf, sizeof(conf), "%s/lighttpd.conf", server->dir.path);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(log_fd, STDOUT_FILENO) < 0 || dup2(log_fd, STDERR_FILENO) < 0 || dup2(server->web.listen_fd, 3) < 0)
		_exit(126);
	closefrom(4);
	if (server->dir.web_uid != (uid_t)-1) {
		setrlimit(RLIMIT_NOFILE, &limit);
		if (setgroups(0, NULL) < 0 || setgid(server->dir.web_gid) < 0 || setuid(server->dir.web_uid) < 0)
			_exit(126);
	}
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(126);
	execve(server->web.program, argv, env);
	_exit(127);
}

int abx_web_start(struct abx_server *server, struct abx_err *err)
{
	struct abx_web *web = &server->web;
	pid_t parent = getpid();
	int ends[2];

	web->backoff.started_ms = abx_clock_ms();
	if (abx_webconf_write(server, err) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return abx_err_errno(err, errno, "lighttpd");
	abx_auto_fd int ours = ends[0];
	abx_auto_fd int theirs = ends[1];
	pid_t pid = fork();
	if (pid == 0)
		exec_lighttpd(server, theirs, parent);
	if (pid < 0)
		return abx_err_errno(err, errno, "lighttpd");
	web->pid = pid;
	server->board->peers[0] = pid;
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0 || abx_server_watch(server, ours, ABX_SOURCE_WEB_LOG, 0, err) < 0)
		return -1;
	web->log_fd = abx_steal_fd(&ours);
	web->log_len = 0;
	web->probe_ms = web->came_up ? 0 : abx_clock_ms();
	abx_log(ABX_LOG_DEBUG, "lighttpd started (pid %d)", (int)pid);
	return 0;
}

/* ---- what it says */

/* Pass a line on, without the time before it and without any query string: that may hold a token. */
static void pass_on(struct abx_web *web, char *line)
{
	char *text = strstr(line, ": (");

	text = text ? text + 2 : line;
	for (char *query = strchr(text, '?'); query; query = strchr(query + 1, '?')) {
		size_t len = strcspn(query + 1, " ");
		memmove(query + 1, query + 1 + len, strlen(query + 1 + len) + 1);
	}
	bool routine = strstr(text, "server started") || strstr(text, "graceful shutdown started") || strstr(text, "server stopped");
	abx_log(routine ? ABX_LOG_DEBUG : ABX_LOG_INFO, "lighttpd: %s", text);
	snprintf(web->last_line, sizeof(web->last_line), "%s", text);
}

void abx_web_log(struct abx_server *server)
{
	struct abx_web *web = &server->web;

	if (web->log_fd < 0)
		return;
	for (;;) {
		ssize_t n = read(web->log_fd, web->log + web->log_len, sizeof(web->log) - 1 - web->log_len);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			abx_server_unwatch(server, web->log_fd);
			close(abx_steal_fd(&web->log_fd));
			return;
		}
		web->log_len += (size_t)n;
		web->log[web->log_len] = '\0';
		char *line = web->log;
		for (char *end = strchr(line, '\n'); end; end = strchr(line, '\n')) {
			*end = '\0';
			pass_on(web, line);
			line = end + 1;
		}
		web->log_len = strlen(line);
		memmove(web->log, line, web->log_len + 1);
		if (web->log_len == sizeof(web->log) - 1) {
			pass_on(web, web->log);
			web->log_len = 0;
		}
	}
}

/* ---- whether it answers */

static void end_probe(struct abx_server *server)
{
	if (server->web.probe_fd < 0)
		return;
	abx_server_unwatch(server, server->web.probe_fd);
	close(abx_steal_fd(&server->web.probe_fd));
}

/* Ask for /health, at the address that we listen on ourselves: the connection waits there until lighttpd takes it. */
static int begin_probe(struct abx_server *server)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);
	const struct timeval patience = { .tv_usec = 100000 };
	abx_auto_free char *request = NULL;
	struct abx_err err = ABX_ERR_INIT;

	if (getsockname(server->web.listen_fd, (struct sockaddr *)&address, &len) < 0 ||
	    asprintf(&request, "GET %s/health HTTP/1.0\r\nHost: localhost\r\n\r\n", server->settings.mount_prefix) < 0)
		return -1;
	abx_auto_fd int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (struct sockaddr *)&address, len) < 0 ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request) ||
	    abx_server_watch(server, fd, ABX_SOURCE_PROBE, 0, &err) < 0)
		return -1;
	server->web.probe_fd = abx_steal_fd(&fd);
	return 0;
}

void abx_web_probe(struct abx_server *server)
{
	struct abx_web *web = &server->web;
	char answer[16] = "";
	ssize_t n = web->probe_fd < 0 ? 0 : recv(web->probe_fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);

	end_probe(server);
	if (n >= 12 && strncmp(answer, "HTTP/1.", 7) == 0 && strncmp(answer + 8, " 200", 4) == 0)
		web->came_up = true;
	else
		web->probe_ms = abx_clock_ms() + PROBE_AGAIN_MS;
}

/* ---- its end */

bool abx_web_died(struct abx_server *server, pid_t pid, int code, int status)
{
	struct abx_web *web = &server->web;
	char how[96], text[512];

	if (pid != web->pid)
		return false;
	abx_describe_death(code, status, how, sizeof(how));
	abx_web_log(server);
	web->pid = 0;
	server->board->peers[0] = 0;
	if (server->stop_step > 0)
		return true;
	if (!web->came_up) {
		snprintf(text, sizeof(text), "lighttpd %s: %s", how, web->last_line);
		abx_server_fail(server, EXIT_FAILURE, text);
		return true;
	}
	abx_log(ABX_LOG_ERROR, "lighttpd (pid %d) %s", (int)pid, how);
	abx_backoff_died(&web->backoff);
	return true;
}

void abx_web_tick(struct abx_server *server, int64_t *deadline)
{
	struct abx_web *web = &server->web;
	struct abx_err err = ABX_ERR_INIT;

	if (server->stop_step > 0)
		return;
	if (abx_backoff_due(&web->backoff) && abx_web_start(server, &err) < 0) {
		abx_log(ABX_LOG_ERROR, "%s", err.message);
		if (!web->pid)
			abx_backoff_died(&web->backoff);
	}
	if (web->probe_ms && web->probe_ms <= abx_clock_ms()) {
		web->probe_ms = 0;
		if (begin_probe(server) < 0)
			web->probe_ms = abx_clock_ms() + PROBE_AGAIN_MS;
	}
	abx_deadline_add(deadline, web->backoff.retry_ms);
	abx_deadline_add(deadline, web->probe_ms);
}
