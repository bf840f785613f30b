#include "handlers/ptyd/door.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/admission.h"
#include "common/board.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/log.h"
#include "common/origin.h"
#include "common/spawn_internal.h"
#include "common/uri.h"
#include "handlers/ptyd/client.h"
#include "handlers/ptyd/head.h"

/* After a failure to accept: out of descriptors, say. */
#define ACCEPT_AGAIN_MS 100

/* A connection that has not told what it wants. */
struct caller {
	struct caller *next;
	struct pty_source source;
	int64_t deadline_ms;
	size_t seen; /* bytes of its head that were there when we last looked */
};

/* What was decided: an HTTP status, or 101 and perhaps a code to close the WebSocket with. */
struct verdict {
	int status, close_code;
	const char *reason; /* of a close */
	struct pty_session *session;
	const struct abx_identity *identity;
	struct abx_admission admission;
	struct abx_err err; /* of a status that is no 101 */
};

static struct abx_policy *policy;
static struct caller *callers;
static unsigned n_callers;
static int64_t accept_again_ms;

static void listen_ready(struct pty_source *source, uint32_t events);
static struct pty_source listener = { .fd = ABX_FD_LISTEN, .events = EPOLLIN, .ready = listen_ready };

static void caller_free(struct caller *caller)
{
	struct caller **link = &callers;

	while (*link && *link != caller)
		link = &(*link)->next;
	if (*link)
		*link = caller->next;
	pty_loop_close(&caller->source);
	free(caller);
	n_callers--;
}

/* The list begins with the newest one. */
static struct caller *oldest_caller(void)
{
	struct caller *caller = callers;

	while (caller && caller->next)
		caller = caller->next;
	return caller;
}

/* ---- the verdict */

/* Who is calling: by the headers, else by ?token=. Pages cannot set headers on a WebSocket. */
static const struct abx_identity *authenticate(struct pty_head *head, const struct abx_query *query, struct abx_err *err)
{
	const struct abx_query_param *token = abx_query_find(query, "token");
	struct abx_credentials creds = { 0 };
	const struct abx_identity *identity;

	abx_credentials_split(&head->credentials, &creds);
	identity = abx_policy_authenticate(policy, &creds, err);
	if (identity || err->kind != ABX_E_UNAUTHORIZED || !token || strlen(token->value) != token->value_len)
		return identity;
	creds = (struct abx_credentials){ .access_tokens = { token->value }, .n_access_tokens = 1 };
	return abx_policy_authenticate(policy, &creds, err);
}

static int refuse(struct verdict *verdict, int status)
{
	verdict->status = status ? status : abx_err_status(&verdict->err);
	return -1;
}

/* The WebSocket is opened, also to be closed with a code: a page cannot see why a handshake failed. One that comes too often is spared the work. */
static void judge_caller(struct pty_head *head, const struct abx_query *query, struct verdict *verdict)
{
	const struct abx_rule *rule = abx_policy_rule(policy, abx_endpoint_find("pty_connect"));
	const struct abx_query_param *id = abx_query_find(query, "session_id");
	struct abx_err err = ABX_ERR_INIT;

	verdict->status = 101;
	verdict->identity = authenticate(head, query, &err);
	if (!verdict->identity) {
		verdict->close_code = PTY_CLOSE_CREDENTIALS;
		verdict->reason = abx_err_code(&err);
		return;
	}
	if (!rule->enabled || !abx_policy_scopes_allow(verdict->identity->scopes, rule->scopes)) {
		verdict->close_code = PTY_CLOSE_DISABLED;
		verdict->reason = rule->enabled ? "missing_scope" : "endpoint_disabled";
		return;
	}
	if (abx_admission_begin(&abx_spawn_door.board->rates, policy, rule, "pty_connect", verdict->identity, &verdict->admission, &verdict->err) < 0) {
		refuse(verdict, 0);
		return;
	}
	verdict->session = id ? pty_session_find(id->value) : NULL;
	if (!verdict->session) {
		verdict->close_code = PTY_CLOSE_NO_SESSION;
		verdict->reason = "unknown session";
	}
}

static bool is_our_path(const char *path)
{
	return strcmp(path, "/pty") == 0 || strcmp(path, "/pty/") == 0;
}

/* What can be wrong with a request before it is a WebSocket. */
static int judge_request(const struct pty_head *head, struct verdict *verdict)
{
	struct abx_err *err = &verdict->err;

	if (!is_our_path(head->path)) {
		abx_err_set(err, ABX_E_ROUTE, "Not found: %s", head->path);
		return refuse(verdict, 0);
	}
	if (strcmp(head->method, "GET") != 0) {
		abx_err_set(err, ABX_E_METHOD, "Method %s is not allowed here; allowed: GET", head->method);
		return refuse(verdict, 0);
	}
	if (!head->is_upgrade || !head->version_ok) {
		abx_err_set(err, ABX_E_VALUE, "This is a WebSocket (RFC 6455, version 13): ask for an upgrade");
		return refuse(verdict, 426);
	}
	if (!*head->key) {
		abx_err_set(err, ABX_E_VALUE, "Sec-WebSocket-Key is missing or wrong");
		return refuse(verdict, 0);
	}
	if (abx_origin_judge(policy, head->origin, head->host, head->forwarded_host) == ABX_ORIGIN_REFUSED) {
		abx_origin_refuse(err);
		return refuse(verdict, 0);
	}
	if (!pty_clients_have_room()) {
		abx_err_set(err, ABX_E_UNAVAILABLE, "Too many connections (%d)", PTY_CLIENTS_MAX);
		return refuse(verdict, 0);
	}
	return 0;
}

static void judge(struct pty_head *head, struct verdict *verdict)
{
	struct abx_query query;

	if (judge_request(head, verdict) < 0)
		return;
	if (abx_query_parse(head->query, &query, &verdict->err) < 0) {
		refuse(verdict, 0);
		return;
	}
	judge_caller(head, &query, verdict);
	abx_query_release(&query);
}

/* ---- the answer */

static void answer(int fd, const struct verdict *verdict)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT, text = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	const char *code = abx_err_code(&verdict->err);

	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "error", verdict->err.message);
	abx_jw_kstring(&jw, "type", abx_err_type(&verdict->err));
	if (code)
		abx_jw_kstring(&jw, "code", code);
	abx_jw_object_end(&jw);
	abx_strbuf_addf(&text, "HTTP/1.1 %d %s\r\nContent-Type: " ABX_RESPONSE_JSON "\r\nContent-Length: %zu\r\n"
			"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n",
			verdict->status, abx_status_reason(verdict->status), body.len);
	if (verdict->admission.wait_ms)
		abx_strbuf_addf(&text, "Retry-After: %lld\r\n", abx_admission_seconds(&verdict->admission));
	if (verdict->status == 405)
		abx_strbuf_adds(&text, "Allow: GET\r\n");
	if (verdict->status == 426)
		abx_strbuf_adds(&text, "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
	abx_strbuf_addf(&text, "\r\n%s", body.buf);
	if (!text.failed)
		send(fd, text.buf, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* What is still to be read would have the kernel reset the connection, and the answer be lost. */
	shutdown(fd, SHUT_WR);
	while (recv(fd, text.buf, text.len, MSG_DONTWAIT) > 0)
		;
}

static void log_verdict(int fd, const struct verdict *verdict)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);
	char remote[64] = "", id[17];
	struct abx_log_call call = { .request_id = id, .remote = remote, .endpoint = "pty_connect", .method = "GET",
				     .path = "/pty", .status = verdict->status };

	abx_id_unique(id);
	if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0)
		getnameinfo((struct sockaddr *)&peer, len, remote, sizeof(remote), NULL, 0, NI_NUMERICHOST);
	call.identity = verdict->identity ? verdict->identity->id : NULL;
	call.error = verdict->close_code ? verdict->reason : verdict->status != 101 ? verdict->err.message : NULL;
	abx_log_call(&call);
}

/* The head is there: `len` bytes of it, which are still to be taken off the socket. */
static void serve(struct caller *caller, char *text, size_t len)
{
	struct verdict verdict = { .admission = { .slot = -1 }, .err = ABX_ERR_INIT };
	struct pty_head head = { .credentials = ABX_CREDENTIAL_TEXT_INIT };
	int fd = caller->source.fd, one = 1;

	if (recv(fd, text, len, MSG_DONTWAIT) != (ssize_t)len) {
		caller_free(caller);
		return;
	}
	if (pty_head_parse(text, len, &head, &verdict.err) < 0)
		refuse(&verdict, 0);
	else
		judge(&head, &verdict);
	log_verdict(fd, &verdict);
	if (verdict.status == 101) {
		setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		pty_loop_change(&caller->source, 0);
		caller->source.fd = -1;
		caller_free(caller);
		pty_client_adopt(fd, head.key, verdict.admission.slot, verdict.session, verdict.close_code, verdict.reason);
	} else {
		answer(fd, &verdict);
		caller_free(caller);
	}
	pty_head_release(&head);
	explicit_bzero(text, len);
}

/* ---- arrivals */

static void refuse_long(struct caller *caller)
{
	struct verdict verdict = { .status = 431 };

	abx_err_set(&verdict.err, ABX_E_VALUE, "Request header too large");
	log_verdict(caller->source.fd, &verdict);
	answer(caller->source.fd, &verdict);
	caller_free(caller);
}

static void caller_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	static char text[PTY_HEAD_MAX];
	struct caller *caller = (struct caller *)((char *)source - offsetof(struct caller, source));
	ssize_t n = recv(source->fd, text, sizeof(text), MSG_PEEK | MSG_DONTWAIT);
	const char *end = n > 0 ? memmem(text, (size_t)n, "\r\n\r\n", 4) : NULL;
	int wanted = (int)n + 1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (end) {
		serve(caller, text, (size_t)(end - text) + 4);
	} else if (n == (ssize_t)sizeof(text)) {
		refuse_long(caller);
	} else if (n <= 0 || (size_t)n == caller->seen ||
		   /* What was seen stays on the socket, which is not ready again before more has come. */
		   setsockopt(source->fd, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted)) < 0) {
		caller_free(caller);
	} else {
		caller->seen = (size_t)n;
	}
}

static void accept_later(void)
{
	abx_log(ABX_LOG_ERROR, "cannot accept a connection: %s", strerror(errno));
	accept_again_ms = abx_clock_ms() + ACCEPT_AGAIN_MS;
	pty_loop_change(&listener, 0);
	pty_loop_deadline(accept_again_ms);
}

static void listen_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct caller *caller = fd < 0 ? NULL : calloc(1, sizeof(*caller));

	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	if (!caller) {
		accept_later();
		abx_cleanup_fd(&fd);
		return;
	}
	caller->source = (struct pty_source){ .fd = fd, .events = EPOLLIN | EPOLLRDHUP, .ready = caller_ready };
	caller->deadline_ms = abx_clock_ms() + PTY_HEAD_MS;
	caller->next = callers;
	callers = caller;
	/* Who says nothing keeps nobody out: who means it has sent its head by now. */
	if (++n_callers > PTY_KNOCKING_MAX)
		caller_free(oldest_caller());
	pty_loop_deadline(caller->deadline_ms);
	if (pty_loop_add(&caller->source) < 0)
		caller_free(caller);
}

int64_t pty_door_tick(int64_t now_ms)
{
	int64_t next = INT64_MAX;
	struct caller *following;

	if (accept_again_ms && now_ms >= accept_again_ms) {
		accept_again_ms = 0;
		pty_loop_change(&listener, EPOLLIN);
	}
	if (accept_again_ms)
		next = accept_again_ms;
	for (struct caller *c = callers; c; c = following) {
		following = c->next;
		if (c->deadline_ms <= now_ms)
			caller_free(c);
		else if (c->deadline_ms < next)
			next = c->deadline_ms;
	}
	return next;
}

int pty_door_follow(int fd, struct abx_err *err)
{
	struct abx_policy *fresh = abx_policy_load(fd, err);

	if (!fresh)
		return -1;
	abx_policy_free(policy);
	policy = fresh;
	return 0;
}

int pty_door_open(struct abx_policy *the_policy, struct abx_err *err)
{
	policy = the_policy;
	/* A connection that was given up before it was accepted must not make us wait for the next one. */
	if (fcntl(ABX_FD_LISTEN, F_SETFL, O_NONBLOCK) < 0 || fcntl(ABX_FD_LISTEN, F_SETFD, FD_CLOEXEC) < 0 || pty_loop_add(&listener) < 0)
		return abx_err_errno(err, errno, "The pty port");
	return 0;
}
