#include "handlers/commands/call.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/spawn.h"
#include "common/sse.h"
#include "policy/code.h"

/* As much as is read at once, and passed on. */
#define PIECE ((size_t)64 << 10)

/* How long a call waits for a worker that does not come up, and how often it looks after that whether one fails to. */
#define PATIENCE_MS 5000
#define LOOK_MS     500

/* A worker that has a thread's end in the very moment between two steps: the call is given to the next one, not for ever. */
#define TRIES 3

static atomic_uint running;

/*
 * Connections whose last call has ended, on which the worker waits for another. The last one that came is the first to go: its thread was awake a moment ago. A
 * generation that drains keeps those it has, and with each a thread of the worker, so there are few.
 */
#define IDLE_MAX 16

static struct {
	pthread_mutex_t lock;
	int fds[IDLE_MAX];
	size_t n;
} idle = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *worker_name(void)
{
	return abx_code_current()->name;
}

static int ended(const struct call *call, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "The worker of %s ended during this call (request %s)", worker_name(), call->req->request_id);
}

int call_nonsense(const struct call *call, const char *what, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "The worker of %s broke the protocol: %s (request %s)", worker_name(), what, call->req->request_id);
}

/* ---- connections */

/* One on which the worker still waits, or -1. */
static int idle_take(void)
{
	char byte;

	for (;;) {
		abx_auto_fd int fd = -1;

		pthread_mutex_lock(&idle.lock);
		if (idle.n > 0)
			fd = idle.fds[--idle.n];
		pthread_mutex_unlock(&idle.lock);
		if (fd < 0 || (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN))
			return abx_steal_fd(&fd);
	}
}

static void idle_give(int fd)
{
	pthread_mutex_lock(&idle.lock);
	if (idle.n < IDLE_MAX) {
		idle.fds[idle.n++] = fd;
		fd = -1;
	}
	pthread_mutex_unlock(&idle.lock);
	abx_cleanup_fd(&fd);
}

/* ---- handing over */

static int open_pair(struct call *call, struct abx_err *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The worker cannot be reached: %s", strerror(errno));
	call->fd = ends[0];
	call->their_fd = ends[1];
	return 0;
}

/* Hand the worker its end. 0: done, or the queue is full and it is to be tried again. */
static int knock(struct call *call, struct abx_err *err)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} rights = { .room = "" };
	char byte = 'C';
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = rights.room, .msg_controllen = sizeof(rights.room) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &call->their_fd, sizeof(int));
	if (sendmsg(ABX_FD_CALLS, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) {
		/* With our copy gone, the worker's death closes the connection. */
		close(abx_steal_fd(&call->their_fd));
		return 0;
	}
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	return abx_err_set(err, ABX_E_UNAVAILABLE, "The worker cannot be reached: %s", strerror(errno));
}

static size_t left_to_send(const struct call *call)
{
	return 2 * ABX_WORKER_HEADER + call->question->len + call->req->body_len - call->sent;
}

/* Send some of the question and the body. A worker that has heard enough answers and closes: what it said is read, and the rest is nobody's. */
static void send_some(struct call *call)
{
	const struct {
		const void *data;
		size_t len;
	} parts[] = {
		{ call->headers[0], ABX_WORKER_HEADER }, { call->question->buf, call->question->len },
		{ call->headers[1], ABX_WORKER_HEADER }, { call->req->body, call->req->body_len },
	};
	size_t skip = call->sent;
	struct iovec iov[ABX_N(parts)];
	struct msghdr message = { .msg_iov = iov };
	ssize_t n;

	for (size_t i = 0; i < ABX_N(parts); i++) {
		size_t gone = skip < parts[i].len ? skip : parts[i].len;
		union {
			const char *given;
			void *wanted; /* sendmsg does not write to what it sends, but its type says so */
		} base = { .given = parts[i].data };

		skip -= gone;
		if (gone < parts[i].len)
			iov[message.msg_iovlen++] = (struct iovec){ (char *)base.wanted + gone, parts[i].len - gone };
	}
	n = sendmsg(call->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0)
		call->sent += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		call->sent += left_to_send(call);
}

/* What fits into the socket lies there when a thread wakes up for it, which then need not sleep again. */
static int hand_over(struct call *call, struct abx_err *err)
{
	call->sent = 0;
	call->fd = call->tries++ == 0 ? idle_take() : -1;
	if (call->fd < 0 && open_pair(call, err) < 0)
		return -1;
	send_some(call);
	return call->their_fd < 0 ? 0 : knock(call, err);
}

int call_begin(struct call *call, struct abx_request *req, const struct abx_strbuf *question, double timeout, const char *what, struct abx_err *err)
{
	call->req = req;
	call->question = question;
	call->what = what;
	call->timeout = timeout;
	call->began_ms = abx_clock_ms();
	call->deadline_ms = call->began_ms + (int64_t)(timeout < 1e9 ? timeout * 1000 : 1e12);
	call->counted = true;
	if (atomic_fetch_add(&running, 1) >= CALLS_MAX)
		return abx_err_set(err, ABX_E_TABLE_FULL, "The worker of %s has %d calls at a time already; try again later", worker_name(), CALLS_MAX);
	if (question->failed || question->len > UINT32_MAX || !(call->in = malloc(PIECE)))
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	abx_worker_header('Q', (uint32_t)question->len, call->headers[0]);
	abx_worker_header('B', (uint32_t)req->body_len, call->headers[1]);
	return hand_over(call, err);
}

void call_end(struct call *call)
{
	if (call->answered && call->in_at == call->in_len && left_to_send(call) == 0)
		idle_give(abx_steal_fd(&call->fd));
	abx_cleanup_fd(&call->fd);
	abx_cleanup_fd(&call->their_fd);
	free(call->in);
	if (call->counted)
		atomic_fetch_sub(&running, 1);
	*call = (struct call)CALL_INIT;
}

/* ---- waiting */

/* Whether the worker has all of it: what it has not read yet lies in the socket (unix(7), SIOCOUTQ). */
static bool is_taken(const struct call *call)
{
	int unread;

	return call->their_fd < 0 && left_to_send(call) == 0 && ioctl(call->fd, SIOCOUTQ, &unread) == 0 && unread == 0;
}

static int too_late(const struct call *call, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf seconds = ABX_STRBUF_INIT;

	if (call->timeout == (double)(int64_t)call->timeout)
		abx_strbuf_addf(&seconds, "%lld", (long long)call->timeout);
	else
		abx_json_repr(call->timeout, &seconds);
	return abx_err_set(err, ABX_E_TIMEOUT, "%s timed out after %ss: the worker %s", call->what, seconds.buf,
			   is_taken(call) ? "was still running it" : "had not taken it yet");
}

/* No worker has taken the call so far: because none comes up? */
static int check_worker(const struct call *call, struct abx_err *err)
{
	abx_auto_free char *why = malloc(ABX_BOARD_WARNINGS);

	if (!why)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	abx_board_warnings(call->req->service->board, ABX_BOARD_WORKER, why);
	why[strcspn(why, "\n")] = '\0';
	return *why ? abx_err_set(err, ABX_E_UNAVAILABLE, "%s", why) : 0;
}

/* When to look up next at the latest. */
static int64_t next_look(const struct call *call, int64_t now)
{
	int64_t next = call->deadline_ms < call->beat_ms ? call->deadline_ms : call->beat_ms, look;

	if (!is_taken(call)) {
		look = call->began_ms + PATIENCE_MS > now ? call->began_ms + PATIENCE_MS : now + LOOK_MS;
		next = look < next ? look : next;
	}
	return next;
}

static int look(struct call *call, struct abx_err *err)
{
	int64_t now = abx_clock_ms();

	if (now >= call->deadline_ms)
		return too_late(call, err);
	if (now >= call->began_ms + PATIENCE_MS && !is_taken(call) && check_worker(call, err) < 0)
		return -1;
	if (now < call->beat_ms)
		return 0;
	if (abx_sse_heartbeat(&call->req->res) < 0)
		return abx_err_set(err, ABX_E_GONE, "The client left the stream");
	call_sent(call);
	return 0;
}

/* Wait until there is something to read, sending meanwhile what is to be sent. */
static int wait_readable(struct call *call, struct abx_err *err)
{
	struct pollfd fds[4] = { { .fd = call->fd }, { .fd = call->req->io->client_fd, .events = POLLRDHUP }, { .fd = abx_spawn_stop_fd(), .events = POLLIN },
				 { .events = POLLOUT } };

	for (;;) {
		int64_t now = abx_clock_ms(), wait = next_look(call, now) - now;

		fds[0].events = POLLIN | (left_to_send(call) ? POLLOUT : 0);
		fds[3].fd = call->their_fd >= 0 ? ABX_FD_CALLS : -1;
		if (poll(fds, ABX_N(fds), wait < 0 ? 0 : wait > 60000 ? 60000 : (int)wait) < 0 && errno != EINTR)
			return abx_err_errno(err, errno, "poll");
		if (fds[1].revents)
			return abx_err_set(err, ABX_E_GONE, "The client left during the call");
		if (fds[3].revents && knock(call, err) < 0)
			return -1;
		if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
			return 0;
		if (fds[0].revents & POLLOUT)
			send_some(call);
		if (fds[2].revents)
			return abx_err_set(err, ABX_E_UNAVAILABLE, "The server is stopping");
		if (look(call, err) < 0)
			return -1;
	}
}

/* The stream was closed with something unread, so the call was not begun: it is given to another thread. A worker without descriptors loses it each time. */
static int give_again(struct call *call, struct abx_err *err)
{
	if (call->heard)
		return ended(call, err);
	if (call->tries >= TRIES)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The worker of %s cannot take this call: it has ended, or has no descriptors left (request %s)",
				   worker_name(), call->req->request_id);
	close(abx_steal_fd(&call->fd));
	abx_cleanup_fd(&call->their_fd);
	return hand_over(call, err);
}

/* Have at least one byte that has come. */
static int fill(struct call *call, struct abx_err *err)
{
	while (call->in_at == call->in_len) {
		ssize_t n = recv(call->fd, call->in, PIECE, MSG_DONTWAIT);

		call->in_at = 0;
		call->in_len = n > 0 ? (size_t)n : 0;
		call->heard |= n > 0;
		if (n > 0)
			return 0;
		if (n == 0)
			return ended(call, err);
		if ((errno == EAGAIN || errno == EINTR ? wait_readable(call, err) : give_again(call, err)) < 0)
			return -1;
	}
	return 0;
}

ssize_t call_take(struct call *call, size_t left, const char **ret_data, struct abx_err *err)
{
	size_t n;

	if (fill(call, err) < 0)
		return -1;
	n = call->in_len - call->in_at < left ? call->in_len - call->in_at : left;
	*ret_data = call->in + call->in_at;
	call->in_at += n;
	return (ssize_t)n;
}

/* ---- frames */

int call_next(struct call *call, struct abx_worker_frame *ret_frame, struct abx_err *err)
{
	unsigned char header[ABX_WORKER_HEADER];

	for (size_t have = 0; have < sizeof(header);) {
		const char *data;
		ssize_t n = call_take(call, sizeof(header) - have, &data, err);

		if (n < 0)
			return -1;
		memcpy(header + have, data, (size_t)n);
		have += (size_t)n;
	}
	if (abx_worker_parse(header, ret_frame) < 0)
		return call_nonsense(call, "a frame that there is none of", err);
	return 0;
}

int call_pass_on(struct call *call, size_t len, struct abx_err *err)
{
	while (len > 0) {
		const char *data;
		ssize_t n = call_take(call, len, &data, err);

		if (n < 0)
			return -1;
		if (abx_response_write(&call->req->res, data, (size_t)n) < 0)
			return abx_err_set(err, ABX_E_GONE, "The client left during the answer");
		len -= (size_t)n;
	}
	return 0;
}

json_t *call_json(struct call *call, const struct abx_worker_frame *frame, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_err wrong = ABX_ERR_INIT;
	json_t *json;

	while (text.len < frame->len && !text.failed) {
		const char *data;
		ssize_t n = call_take(call, frame->len - text.len, &data, err);

		if (n < 0)
			return NULL;
		abx_strbuf_add(&text, data, (size_t)n);
	}
	json = text.failed ? NULL : abx_json_parse(text.buf, text.len, &wrong);
	if (!json)
		call_nonsense(call, wrong.kind ? wrong.message : "too much", err);
	return json;
}

void call_sent(struct call *call)
{
	if (call->beat_ms != INT64_MAX)
		call->beat_ms = abx_clock_ms() + ABX_SSE_HEARTBEAT_MS;
}

void call_stream(struct call *call)
{
	call->deadline_ms = INT64_MAX;
	call->beat_ms = abx_clock_ms() + ABX_SSE_HEARTBEAT_MS;
}

int call_fail(struct call *call, const struct abx_worker_frame *frame, struct abx_err *err)
{
	json_auto_t *json = call_json(call, frame, err);
	const char *type = json_string_value(json_object_get(json, "type")), *code = json_string_value(json_object_get(json, "code"));
	const char *text = json_string_value(json_object_get(json, "error"));
	json_int_t status = json_integer_value(json_object_get(json, "status"));
	struct abx_request *req = call->req;

	if (!json)
		return -1;
	call->answered = true;
	if (!text || !type || !*type || status < 400 || status > 599)
		return call_nonsense(call, "a failure that says not what it is", err);
	req->failure.status = (int)status;
	req->failure.message = strdup(text);
	snprintf(req->failure.type, sizeof(req->failure.type), "%s", type);
	if (code && !req->error_members)
		req->error_members = json_pack("{ss}", "code", code);
	return abx_err_set(err, ABX_E_INTERNAL, "%s", text);
}

void call_write_identity(struct abx_json_writer *jw, const struct abx_request *req)
{
	abx_jw_key(jw, "identity");
	if (!req->identity) {
		abx_jw_null(jw);
		return;
	}
	abx_jw_object(jw);
	abx_jw_kstring(jw, "id", req->identity->id);
	abx_jw_key(jw, "scopes");
	abx_jw_array(jw);
	for (char *const *scope = req->identity->scopes; *scope; scope++)
		abx_jw_string(jw, *scope);
	abx_jw_array_end(jw);
	abx_jw_object_end(jw);
}
