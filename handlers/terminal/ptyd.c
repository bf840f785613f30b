#include "handlers/terminal/ptyd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/board.h"
#include "common/clock.h"
#include "common/json.h"

/* How long the daemon may take: a session that does not want to end takes longest. */
#define PATIENCE_MS 15000

/* Longest answer: a list of all sessions is far below it. */
#define ANSWER_MAX ((size_t)256 << 10)

static int unavailable(struct abx_err *err, const char *why)
{
	return abx_err_set(err, ABX_E_UNAVAILABLE, "The pty daemon %s", why);
}

/* Wait until `fd` is ready for `events`. 0 or -1. */
static int wait_for(int fd, short events, int64_t deadline_ms, struct abx_err *err)
{
	struct pollfd ready = { .fd = fd, .events = events };
	int64_t left;

	while ((left = deadline_ms - abx_clock_ms()) > 0)
		if (poll(&ready, 1, (int)left) > 0)
			return 0;
	return unavailable(err, "does not answer");
}

/* Hand the daemon its end of the connection. The queue is kept by abxd: while the daemon is being restarted, the message waits in it. */
static int knock(int their_end, const int *fds, size_t n_fds, int64_t deadline_ms, struct abx_err *err)
{
	size_t size = (1 + n_fds) * sizeof(int);
	union {
		char room[CMSG_SPACE(ABX_PTY_FDS * sizeof(int))];
		struct cmsghdr align;
	} rights = { .room = "" };
	char byte = 0;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = rights.room, .msg_controllen = CMSG_SPACE(size) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(header), &their_end, sizeof(int));
	if (n_fds)
		memcpy(CMSG_DATA(header) + sizeof(int), fds, n_fds * sizeof(int));
	while (sendmsg(ABX_FD_PTY, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return unavailable(err, "is not running");
		if (wait_for(ABX_FD_PTY, POLLOUT, deadline_ms, err) < 0)
			return -1;
	}
	return 0;
}

static int send_all(int fd, const struct abx_strbuf *text, int64_t deadline_ms, struct abx_err *err)
{
	for (size_t done = 0; done < text->len;) {
		ssize_t n = send(fd, text->buf + done, text->len - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0)
			done += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return unavailable(err, "has gone");
		else if (wait_for(fd, POLLOUT, deadline_ms, err) < 0)
			return -1;
	}
	return 0;
}

/* Read one line. The end of the connection before it is the daemon's death. */
static int read_answer(int fd, struct abx_strbuf *text, int64_t deadline_ms, struct abx_err *err)
{
	char piece[4096];

	do {
		if (wait_for(fd, POLLIN, deadline_ms, err) < 0)
			return -1;
		ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return unavailable(err, "has gone");
		if (n > 0)
			abx_strbuf_add(text, piece, (size_t)n);
	} while (!text->failed && (text->len == 0 || text->buf[text->len - 1] != '\n'));
	return text->failed ? unavailable(err, "answers nonsense") : 0;
}

/* An answer with "kind" is the failure that the caller is to see. */
static int take_error(const json_t *answer, struct abx_err *err)
{
	const json_t *kind = json_object_get(answer, "kind");

	if (!kind)
		return 0;
	abx_err_set(err, (enum abx_error)json_integer_value(kind), "%s", json_string_value(json_object_get(answer, "error")));
	err->os_errno = (int)json_integer_value(json_object_get(answer, "errno"));
	return -1;
}

json_t *ptyd_ask(const json_t *request, const int *fds, size_t n_fds, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX((size_t)64 << 20), line = ABX_STRBUF_INIT_MAX(ANSWER_MAX);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);
	int64_t deadline = abx_clock_ms() + PATIENCE_MS;
	int ends[2];

	abx_jw_value(&jw, request);
	abx_strbuf_addc(&text, '\n');
	if (text.failed || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		abx_err_set(err, ABX_E_INTERNAL, "Cannot reach the pty daemon: out of memory or descriptors");
		return NULL;
	}
	abx_auto_fd int ours = ends[0];
	abx_auto_fd int theirs = ends[1];
	if (knock(theirs, fds, n_fds, deadline, err) < 0)
		return NULL;
	/* With our copy gone, the daemon's death closes the connection. */
	close(abx_steal_fd(&theirs));
	if (send_all(ours, &text, deadline, err) < 0 || read_answer(ours, &line, deadline, err) < 0)
		return NULL;
	json_t *answer = abx_json_parse(line.buf, line.len, err);
	if (answer && take_error(answer, err) < 0) {
		json_decref(answer);
		return NULL;
	}
	return answer;
}
