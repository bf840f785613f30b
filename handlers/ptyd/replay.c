/* What a client that connects is given of the output so far. */
#include <signal.h>
#include <termios.h>

#include "handlers/ptyd/client.h"

/* The modes are read up to where a replay would begin, but not later than it is kept; so in steps of this size. */
#define STEP ((size_t)16 << 10)

/* How far a replay may begin later than it could, for an escape sequence to end. */
#define SKIP_MAX ((size_t)4 << 10)

/* Read the modes of the output up to `pos`. */
static void follow(struct pty_session *session, struct pty_modes *modes, uint64_t *done, uint64_t pos)
{
	static char piece[STEP];

	while (*done < pos) {
		size_t want = pos - *done < STEP ? (size_t)(pos - *done) : STEP;
		size_t n = pty_ring_read(&session->ring, *done, piece, want);

		/* `pos` is not between two characters: it was only a wish. */
		if (n == 0)
			break;
		pty_modes_feed(modes, piece, n);
		*done += n;
	}
}

/* Read the modes of the next character. */
static void follow_one(struct pty_session *session)
{
	char character[4];
	size_t n = 0;

	for (size_t want = 1; n == 0 && want <= sizeof(character); want++)
		n = pty_ring_read(&session->ring, session->modes_end, character, want);
	pty_modes_feed(&session->modes, character, n);
	session->modes_end += n;
}

void pty_replay_add(struct pty_session *session, const char *text, size_t len)
{
	/* What is about to be overwritten is read now. */
	if (session->ring.end + len > session->modes_end + PTY_RING_SIZE)
		follow(session, &session->modes, &session->modes_end, session->ring.end - PTY_REPLAY);
	pty_ring_add(&session->ring, text, len);
}

/* On the alternate screen a program is on that paints what it wants to be seen: it does so again when it believes that the size has changed. */
static void repaint(struct pty_session *session)
{
	struct pty_modes now = session->modes;
	uint64_t end = session->modes_end;
	pid_t foreground = session->state == PTY_LIVE ? tcgetpgrp(session->tty.fd) : -1;

	follow(session, &now, &end, session->ring.end);
	if (pty_modes_alternate(&now) && foreground > 1)
		kill(-foreground, SIGWINCH);
}

void pty_replay_begin(struct pty_session *session, struct pty_client *client)
{
	client->pos = pty_ring_replay(&session->ring, PTY_REPLAY);
	if (client->pos == 0)
		return;
	follow(session, &session->modes, &session->modes_end, client->pos);
	/* Not in the midst of a sequence, whose rest would be shown as text. */
	while (!pty_modes_between(&session->modes) && session->modes_end < session->ring.end && session->modes_end < client->pos + SKIP_MAX)
		follow_one(session);
	client->pos = session->modes_end;
	pty_modes_write(&session->modes, &client->prelude);
	repaint(session);
}
