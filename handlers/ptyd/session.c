#include "handlers/ptyd/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ids.h"
#include "common/log.h"
#include "handlers/ptyd/client.h"

/* What is read from a terminal before others get their turn. */
#define READ_AT_ONCE ((size_t)64 << 10)

/* How long the output of an ended shell is waited for while some process still has the terminal open. */
#define GRACE_MS 300

/* How often it is looked whether a terminal that no program had open is open again. */
#define REOPEN_MS 1000

static struct pty_session *sessions;

struct pty_session *pty_session_first(void)
{
	return sessions;
}

struct pty_session *pty_session_find(const char *id)
{
	for (struct pty_session *s = sessions; s; s = s->next)
		if (!s->removed && strcmp(s->id, id) == 0)
			return s;
	return NULL;
}

void pty_session_write(struct abx_json_writer *jw, const struct pty_session *session)
{
	abx_jw_object(jw);
	abx_jw_kstring(jw, "id", session->id);
	abx_jw_kint(jw, "pid", session->child.pid);
	abx_jw_key(jw, "created_at");
	abx_jw_double(jw, session->created_at);
	abx_jw_kint(jw, "cols", session->cols);
	abx_jw_kint(jw, "rows", session->rows);
	abx_jw_kbool(jw, "alive", session->state == PTY_LIVE);
	abx_jw_object_end(jw);
}

static void wake_clients(struct pty_session *session)
{
	for (struct pty_client *c = session->clients; c; c = c->next)
		pty_client_wake(c);
}

static void unthrottle_clients(struct pty_session *session)
{
	for (struct pty_client *c = session->clients; c; c = c->next)
		pty_client_unthrottle(c);
}

/* ---- the end */

static void session_free(struct pty_session *session)
{
	struct pty_session **link = &sessions;

	while (*link && *link != session)
		link = &(*link)->next;
	if (*link)
		*link = session->next;
	pty_loop_close(&session->tty);
	pty_loop_close(&session->exit);
	pty_ring_release(&session->ring);
	abx_strbuf_release(&session->input);
	abx_workdir_release(&session->temp);
	free(session);
}

/* The oldest of the ended ones go when there are too many. */
static void forget_oldest(void)
{
	struct pty_session *oldest = NULL;
	unsigned n = 0;

	for (struct pty_session *s = sessions; s; s = s->next) {
		if (s->state != PTY_ENDED || s->removed)
			continue;
		n++;
		if (!oldest || s->ended_ms < oldest->ended_ms)
			oldest = s;
	}
	if (n > PTY_ENDED_MAX)
		oldest->removed = true;
}

/* The shell and its output have ended. */
static void session_end(struct pty_session *session)
{
	abx_auto_strbuf struct abx_strbuf rest = ABX_STRBUF_INIT;

	abx_utf8_finish(&session->decoder, &rest);
	pty_replay_add(session, rest.buf, rest.len);
	pty_loop_close(&session->tty);
	abx_strbuf_release(&session->input);
	session->state = PTY_ENDED;
	abx_log(ABX_LOG_DEBUG, "session %s ended with code %d", session->id, session->exit_code);
	unthrottle_clients(session);
	wake_clients(session);
	if (session->closer)
		pty_control_closed(session->closer, session->id);
	session->closer = NULL;
	pty_end_temp(session);
	forget_oldest();
	pty_loop_deadline(0);
}

/* From here on its pid may be anybody's; what is listed is only what it was. */
static void reap(struct pty_session *session)
{
	session->exit_code = abx_child_reap(session->child.pidfd, session->child.slot);
	pty_loop_close(&session->exit);
	session->child.pidfd = -1;
	session->child.slot = NULL;
	session->ended_ms = abx_clock_ms();
	pty_loop_deadline(session->ended_ms + GRACE_MS);
}

static bool is_reaped(const struct pty_session *session)
{
	return session->child.pidfd < 0;
}

/* ---- output */

/*
 * Whether its clients can take more. The one that has taken most decides: a slow one does not hold up the others, and is cut off when what
 * it lacks is no longer kept.
 */
static bool has_room(const struct pty_session *session)
{
	uint64_t least = UINT64_MAX;

	for (const struct pty_client *c = session->clients; c; c = c->next)
		if (session->ring.end - c->pos < least)
			least = session->ring.end - c->pos;
	return !session->clients || least < PTY_BEHIND_MAX;
}

static void drop_the_late(struct pty_session *session)
{
	struct pty_client *next;

	for (struct pty_client *c = session->clients; c; c = next) {
		next = c->next;
		if (c->pos < pty_ring_start(&session->ring))
			pty_client_drop(c);
	}
}

static void watch_tty(struct pty_session *session)
{
	if (session->reopen_ms || session->tty.fd < 0)
		return;
	pty_loop_change(&session->tty, (has_room(session) ? EPOLLIN : 0) | (session->input.len ? EPOLLOUT : 0));
}

/* Read until the terminal has no more for now. Returns true at its end: no process has it open. */
static bool read_tty(struct pty_session *session)
{
	static char bytes[READ_AT_ONCE];
	static struct abx_strbuf text = ABX_STRBUF_INIT;
	size_t len = 0;
	ssize_t n = 1;

	while (len < sizeof(bytes) && n > 0) {
		n = read(session->tty.fd, bytes + len, sizeof(bytes) - len);
		if (n > 0)
			len += (size_t)n;
	}
	bool ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	if (len > 0) {
		abx_strbuf_reset(&text);
		abx_utf8_feed(&session->decoder, bytes, len, &text);
		pty_replay_add(session, text.buf, text.len);
		session->active_ms = abx_clock_ms();
		drop_the_late(session);
		wake_clients(session);
	}
	return ended;
}

static void take_output(struct pty_session *session)
{
	if (!has_room(session) || !read_tty(session)) {
		watch_tty(session);
		return;
	}
	if (session->state == PTY_EXITING && is_reaped(session)) {
		session_end(session);
		return;
	}
	/* The shell is about to end; or its programs have closed the terminal, and may open it again. */
	pty_loop_change(&session->tty, 0);
	session->reopen_ms = abx_clock_ms() + REOPEN_MS;
	pty_loop_deadline(session->reopen_ms);
}

void pty_session_taken(struct pty_session *session)
{
	watch_tty(session);
}

void pty_session_attach(struct pty_session *session, struct pty_client *client)
{
	client->session = session;
	pty_replay_begin(session, client);
	client->next = session->clients;
	session->clients = client;
	session->active_ms = abx_clock_ms();
}

void pty_session_detach(struct pty_session *session, struct pty_client *client)
{
	struct pty_client **link = &session->clients;

	while (*link && *link != client)
		link = &(*link)->next;
	if (*link)
		*link = client->next;
	client->session = NULL;
	session->active_ms = abx_clock_ms();
	watch_tty(session);
	pty_loop_deadline(session->state == PTY_ENDED ? 0 : session->active_ms + PTY_IDLE_MS);
}

/* ---- input */

static void write_tty(struct pty_session *session)
{
	ssize_t n = 1;

	while (session->input.len > 0 && n > 0) {
		n = write(session->tty.fd, session->input.buf, session->input.len);
		if (n > 0)
			abx_strbuf_consume(&session->input, (size_t)n);
	}
	/* Nobody is there to read it. */
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		abx_strbuf_reset(&session->input);
	if (session->input.len < PTY_INPUT_MAX / 2)
		unthrottle_clients(session);
}

void pty_session_input(struct pty_session *session, const char *data, size_t len)
{
	ssize_t n = 0;

	if (session->state != PTY_LIVE || session->tty.fd < 0)
		return;
	session->active_ms = abx_clock_ms();
	/* What is typed mostly finds an empty queue, and goes straight through. */
	if (session->input.len == 0)
		n = write(session->tty.fd, data, len);
	if (n > 0) {
		data += n;
		len -= (size_t)n;
	}
	abx_strbuf_add(&session->input, data, len);
	watch_tty(session);
}

static void tty_ready(struct pty_source *source, uint32_t events)
{
	struct pty_session *session = (struct pty_session *)((char *)source - offsetof(struct pty_session, tty));

	if (events & EPOLLOUT)
		write_tty(session);
	take_output(session);
}

/* ---- size and signals */

int pty_session_resize(struct pty_session *session, int cols, int rows, struct abx_err *err)
{
	struct winsize size = { .ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows };

	if (session->state != PTY_LIVE)
		return abx_err_set(err, ABX_E_VALUE, "The session has ended");
	if (ioctl(session->tty.fd, TIOCSWINSZ, &size) < 0)
		return abx_err_errno(err, errno, "Cannot change the size");
	session->cols = cols;
	session->rows = rows;
	session->active_ms = abx_clock_ms();
	return 0;
}

void pty_session_signal(struct pty_session *session, int signal)
{
	pid_t group = session->child.pid, foreground;

	/* A live one was not reaped yet: the pid is still its own. */
	if (session->state != PTY_LIVE)
		return;
	session->active_ms = abx_clock_ms();
	if (signal == SIGINT || signal == SIGQUIT) {
		foreground = tcgetpgrp(session->tty.fd);
		if (foreground > 1)
			group = foreground;
	}
	kill(-group, signal);
}

/* ---- from the first to the last moment */

static void exit_ready(struct pty_source *source, uint32_t events ABX_UNUSED)
{
	struct pty_session *session = (struct pty_session *)((char *)source - offsetof(struct pty_session, exit));

	session->state = PTY_EXITING;
	pty_loop_change(source, 0);
	/* While end.c is at work its pid and group have to stay its own. */
	if (session->killing)
		return;
	reap(session);
	if (session->reopen_ms)
		session_end(session);
	else
		take_output(session);
}

void pty_session_killed(struct pty_session *session)
{
	session->killing = false;
	if (session->state == PTY_EXITING)
		exit_ready(&session->exit, 0);
}

void pty_session_close(struct pty_session *session, struct pty_control *closer)
{
	session->removed = true;
	session->closer = closer;
	if (session->state == PTY_ENDED || is_reaped(session)) {
		session_end(session);
		return;
	}
	session->killing = true;
	if (pty_end_session(session) < 0) {
		abx_log(ABX_LOG_ERROR, "no thread to close session %s", session->id);
		kill(-session->child.pid, SIGKILL);
		pty_session_killed(session);
	}
}

static unsigned count_live(void)
{
	unsigned n = 0;

	for (struct pty_session *s = sessions; s; s = s->next)
		n += s->state == PTY_LIVE && !s->removed;
	return n;
}

struct pty_session *pty_session_create(const struct pty_plan *plan, struct abx_err *err)
{
	struct pty_session *session;

	if (count_live() >= PTY_LIVE_MAX) {
		abx_err_set(err, ABX_E_TABLE_FULL, "Too many terminal sessions (%d)", PTY_LIVE_MAX);
		return NULL;
	}
	session = calloc(1, sizeof(*session));
	if (!session || pty_ring_init(&session->ring, PTY_RING_SIZE) < 0) {
		abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		free(session);
		return NULL;
	}
	session->input = (struct abx_strbuf)ABX_STRBUF_INIT;
	session->child = (struct abx_child)ABX_CHILD_INIT;
	session->temp = (struct abx_workdir)ABX_WORKDIR_INIT;
	session->tty = (struct pty_source){ .fd = -1, .events = EPOLLIN, .ready = tty_ready };
	session->exit = (struct pty_source){ .fd = -1, .events = EPOLLIN, .ready = exit_ready };
	session->cols = plan->cols;
	session->rows = plan->rows;
	session->created_at = abx_clock_real();
	session->active_ms = abx_clock_ms();
	do
		abx_id_hex(session->id, sizeof(session->id) - 1);
	while (pty_session_find(session->id));
	if (pty_session_start(session, plan, err) < 0) {
		session_free(session);
		return NULL;
	}
	session->exit.fd = session->child.pidfd;
	session->next = sessions;
	sessions = session;
	if (pty_loop_add(&session->tty) < 0 || pty_loop_add(&session->exit) < 0)
		abx_log(ABX_LOG_ERROR, "cannot watch session %s: %s", session->id, strerror(errno));
	pty_loop_deadline(session->active_ms + PTY_IDLE_MS);
	return session;
}

/* Returns when to look at it again. */
static int64_t session_tick(struct pty_session *session, int64_t now)
{
	if (session->state == PTY_ENDED) {
		session->removed |= now >= session->ended_ms + PTY_ENDED_MS;
		if (!session->removed)
			return session->ended_ms + PTY_ENDED_MS;
		if (!session->clients)
			session_free(session);
		return INT64_MAX;
	}
	if (session->state == PTY_EXITING && is_reaped(session)) {
		if (now < session->ended_ms + GRACE_MS || !has_room(session))
			return session->ended_ms + GRACE_MS > now ? session->ended_ms + GRACE_MS : now + GRACE_MS;
		read_tty(session);
		session_end(session);
		return INT64_MAX;
	}
	if (session->reopen_ms) {
		if (now < session->reopen_ms)
			return session->reopen_ms;
		session->reopen_ms = 0;
		watch_tty(session);
	}
	if (pty_session_is_idle(session, now)) {
		abx_log(ABX_LOG_INFO, "session %s was idle; closing it", session->id);
		pty_session_close(session, NULL);
	}
	return session->clients || session->removed ? INT64_MAX : session->active_ms + PTY_IDLE_MS;
}

int64_t pty_sessions_tick(int64_t now_ms)
{
	int64_t next = INT64_MAX;
	struct pty_session *following;

	for (struct pty_session *s = sessions; s; s = following) {
		following = s->next;
		int64_t moment = session_tick(s, now_ms);
		if (moment < next)
			next = moment;
	}
	return next;
}
