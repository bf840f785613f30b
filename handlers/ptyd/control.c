#include "handlers/ptyd/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handlers/ptyd/frame.h"

static const char *const shells[] = { "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh" };

struct pty_control {
	struct pty_source source;
	int fds[ABX_PTY_FDS - 1]; /* what came with the request: the directory to start in, and trees */
	size_t n_fds;
	struct abx_strbuf in;
};

static void control_free(struct pty_control *control)
{
	pty_loop_close(&control->source);
	while (control->n_fds > 0)
		abx_cleanup_fd(&control->fds[--control->n_fds]);
	abx_strbuf_release(&control->in);
	free(control);
}

/* ---- answers */

/* The answer is far smaller than the socket's buffer, which is empty. */
static void answer(struct pty_control *control, struct abx_strbuf *text)
{
	abx_strbuf_addc(text, '\n');
	if (!text->failed)
		send(control->source.fd, text->buf, text->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	control_free(control);
}

static void answer_error(struct pty_control *control, const struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);

	abx_jw_object(&jw);
	abx_jw_kint(&jw, "kind", err->kind);
	abx_jw_kint(&jw, "errno", err->os_errno);
	abx_jw_kstring(&jw, "error", err->message);
	abx_jw_object_end(&jw);
	answer(control, &text);
}

static void answer_session(struct pty_control *control, const struct pty_session *session)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);

	pty_session_write(&jw, session);
	answer(control, &text);
}

void pty_control_closed(struct pty_control *control, const char *id)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);

	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "status", "closed");
	abx_jw_kstring(&jw, "session_id", id);
	abx_jw_object_end(&jw);
	answer(control, &text);
}

/* ---- requests: each answers by itself and returns 0, or fails */

static struct pty_session *find(const json_t *request, struct abx_err *err)
{
	const char *id = json_string_value(json_object_get(request, "id"));
	struct pty_session *session = id ? pty_session_find(id) : NULL;

	if (!session)
		abx_err_set(err, ABX_E_NO_PROCESS, "No such terminal session: %s", id ? id : "");
	return session;
}

static int do_create(struct pty_control *control, const json_t *request, struct abx_err *err)
{
	const char *shell = json_string_value(json_object_get(request, "shell"));
	const json_t *confine = json_object_get(request, "confine");
	struct pty_plan plan = {
		.env = json_object_get(request, "env"),
		.confine = (unsigned)json_integer_value(json_array_get(confine, 0)),
		.confine_limits = { json_integer_value(json_array_get(confine, 1)), json_integer_value(json_array_get(confine, 2)),
				    json_integer_value(json_array_get(confine, 3)) },
		.spool_dir = json_string_value(json_object_get(request, "spool")),
	};

	if (control->n_fds == 0 || !plan.spool_dir)
		return abx_err_set(err, ABX_E_INTERNAL, "The request has no directory");
	plan.cwd_fd = control->fds[0];
	plan.trees = control->fds + 1;
	plan.n_trees = control->n_fds - 1;

	for (size_t i = 0; shell && i < ABX_N(shells); i++)
		if (strcmp(shells[i], shell) == 0)
			plan.shell = shells[i];
	if (!plan.shell)
		return abx_err_set(err, ABX_E_VALUE, "shell: must be /bin/bash, /bin/sh, /bin/zsh, /usr/bin/bash or /usr/bin/zsh");
	if (pty_size_take(request, "cols", &plan.cols, err) < 0 || pty_size_take(request, "rows", &plan.rows, err) < 0)
		return -1;
	struct pty_session *session = pty_session_create(&plan, err);
	if (!session)
		return -1;
	answer_session(control, session);
	return 0;
}

static int do_list(struct pty_control *control, const json_t *request ABX_UNUSED, struct abx_err *err ABX_UNUSED)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);

	abx_jw_object(&jw);
	abx_jw_key(&jw, "sessions");
	abx_jw_array(&jw);
	for (struct pty_session *s = pty_session_first(); s; s = s->next)
		if (!s->removed)
			pty_session_write(&jw, s);
	abx_jw_array_end(&jw);
	abx_jw_object_end(&jw);
	answer(control, &text);
	return 0;
}

static int do_get(struct pty_control *control, const json_t *request, struct abx_err *err)
{
	struct pty_session *session = find(request, err);

	if (!session)
		return -1;
	answer_session(control, session);
	return 0;
}

static int do_resize(struct pty_control *control, const json_t *request, struct abx_err *err)
{
	struct pty_session *session = find(request, err);
	int cols = 0, rows = 0;

	if (!session || pty_size_take(request, "cols", &cols, err) < 0 || pty_size_take(request, "rows", &rows, err) < 0 ||
	    pty_session_resize(session, cols, rows, err) < 0)
		return -1;
	answer_session(control, session);
	return 0;
}

static int do_delete(struct pty_control *control, const json_t *request, struct abx_err *err)
{
	struct pty_session *session = find(request, err);

	if (!session)
		return -1;
	/* The answer comes when all of it has ended. Until then the connection is not looked at. */
	pty_loop_change(&control->source, 0);
	pty_session_close(session, control);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct pty_control *control, const json_t *request, struct abx_err *err);
} operations[] = {
	{ "create", do_create }, { "list", do_list }, { "get", do_get }, { "resize", do_resize }, { "delete", do_delete },
};

static void run(struct pty_control *control)
{
	struct abx_err err = ABX_ERR_INIT;
	json_auto_t *request = abx_json_parse(control->in.buf, control->in.len, &err);
	const char *name = json_string_value(json_object_get(request, "op"));

	for (size_t i = 0; name && i < ABX_N(operations); i++) {
		if (strcmp(operations[i].name, name) != 0)
			continue;
		if (operations[i].run(control, request, &err) < 0)
			answer_error(control, &err);
		return;
	}
	if (request)
		abx_err_set(&err, ABX_E_INTERNAL, "There is no such operation");
	answer_error(control, &err);
}

/* Whether abx-terminal still waits: what it has given up is not done, since nobody would know of it. */
static bool is_awaited(const struct pty_control *control)
{
	struct pollfd peer = { .fd = control->source.fd, .events = POLLRDHUP };

	return poll(&peer, 1, 0) == 0;
}

static void control_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	struct pty_control *control = (struct pty_control *)((char *)source - offsetof(struct pty_control, source));
	static char piece[16384];
	ssize_t n;

	do {
		n = recv(source->fd, piece, sizeof(piece), MSG_DONTWAIT);
		if (n > 0)
			abx_strbuf_add(&control->in, piece, (size_t)n);
	} while (n > 0);
	bool whole = control->in.len > 0 && control->in.buf[control->in.len - 1] == '\n';
	if (whole && is_awaited(control))
		run(control);
	else if (whole || n == 0 || (errno != EAGAIN && errno != EINTR) || control->in.failed)
		control_free(control);
}

/* ---- arrivals */

ssize_t pty_receive(int socket, int *fds, size_t max, size_t *ret_n)
{
	union {
		char room[CMSG_SPACE(ABX_PTY_FDS * sizeof(int))];
		struct cmsghdr align;
	} rights;
	char byte;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = rights.room, .msg_controllen = CMSG_SPACE(max * sizeof(int)) };
	ssize_t len = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret_n = 0;
	for (struct cmsghdr *c = len < 0 ? NULL : CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		*ret_n = count < max ? count : max;
		memcpy(fds, CMSG_DATA(c), *ret_n * sizeof(int));
	}
	return len;
}

static void request_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	int fds[ABX_PTY_FDS];
	size_t n = 0;

	/* All other ends are closed: abxd is gone, which is seen elsewhere. */
	if (pty_receive(source->fd, fds, ABX_N(fds), &n) == 0)
		pty_loop_change(source, 0);
	if (n == 0)
		return;
	struct pty_control *control = calloc(1, sizeof(*control));
	if (!control) {
		while (n > 0)
			abx_cleanup_fd(&fds[--n]);
		return;
	}
	control->source = (struct pty_source){ .fd = fds[0], .events = EPOLLIN, .ready = control_ready };
	control->n_fds = n - 1;
	memcpy(control->fds, fds + 1, (n - 1) * sizeof(*fds));
	control->in = (struct abx_strbuf)ABX_STRBUF_INIT_MAX(PTY_REQUEST_MAX);
	if (pty_loop_add(&control->source) < 0)
		control_free(control);
}

int pty_control_open(struct abx_err *err)
{
	static struct pty_source requests = { .fd = ABX_FD_PTY, .events = EPOLLIN, .ready = request_ready };

	if (fcntl(ABX_FD_PTY, F_SETFD, FD_CLOEXEC) < 0 || pty_loop_add(&requests) < 0)
		return abx_err_errno(err, errno, "The socket to abx-terminal");
	return 0;
}
