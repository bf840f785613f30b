/* The sessions: a shell on a pseudo-terminal, its last output, and who looks on. */
#ifndef PTYD_SESSION_H
#define PTYD_SESSION_H

#include <stdbool.h>

#include "common/json.h"
#include "common/spawn_child.h"
#include "common/utf8.h"
#include "common/workdir.h"
#include "handlers/ptyd/loop.h"
#include "handlers/ptyd/modes.h"
#include "handlers/ptyd/ring.h"
#include "policy/policy.h"

/* Sessions whose shell lives; one more is refused. */
#define PTY_LIVE_MAX 10

/* How long an ended session is listed, and how many at most: a caller who opens and ends them in a loop does not fill the memory. */
#define PTY_ENDED_MS  60000
#define PTY_ENDED_MAX 32

/* A session that nobody is connected to, and in which nothing happens for so long, is closed. */
#define PTY_IDLE_MS (1800 * 1000)

/* What a client that connects gets of the output so far, and what is kept for clients that are behind. */
#define PTY_REPLAY    ((size_t)64 << 10)
#define PTY_RING_SIZE ((size_t)1 << 20)

/* No more is read from a terminal while all its clients are so far behind. */
#define PTY_BEHIND_MAX ((size_t)256 << 10)

/* No more is taken from the clients while so much waits to be read by the programs in the terminal. */
#define PTY_INPUT_MAX ((size_t)64 << 10)

enum pty_state {
	PTY_LIVE,
	PTY_EXITING, /* the shell has ended; the rest of its output is being read */
	PTY_ENDED
};

struct pty_client;
struct pty_control;

struct pty_session {
	struct pty_session *next;
	char id[13];
	enum pty_state state;
	bool removed; /* closed by a caller or for idleness: no longer known by its id */
	bool killing; /* end.c is at work on its processes: they must not be reaped meanwhile */
	struct abx_child child;
	struct pty_source tty;  /* the terminal's master side */
	struct pty_source exit; /* the shell's pidfd */
	int cols, rows, exit_code;
	double created_at;
	int64_t active_ms; /* when something last happened */
	int64_t ended_ms;  /* when the shell ended */
	int64_t reopen_ms; /* no program has the terminal open: when to look again; 0: not so */
	struct abx_utf8 decoder;
	struct pty_ring ring;
	struct pty_modes modes; /* of the output up to modes_end */
	uint64_t modes_end;
	struct abx_strbuf input; /* not taken by the terminal yet */
	struct pty_client *clients;
	struct pty_control *closer; /* waits for its end */
	struct abx_workdir temp; /* the TMPDIR of a shell whose files are confined */
};

/* What a session is made of. */
struct pty_plan {
	const char *shell;
	int cols, rows, cwd_fd;
	const json_t *env; /* on top of the server's; NULL: none */
	unsigned confine;  /* enum abx_confine: what the kernel holds the shell to */
	struct abx_confine_limits confine_limits;
	const int *trees;  /* where its files are confined: what it may write */
	size_t n_trees;
	const char *spool_dir; /* where its temporary directory is made then */
};

/* ---- session.c */

struct pty_session *pty_session_create(const struct pty_plan *plan, struct abx_err *err);

/* NULL: there is none of this id. */
struct pty_session *pty_session_find(const char *id);

/* The first of all sessions, the removed ones included; the others follow by `next`. */
struct pty_session *pty_session_first(void);

void pty_session_write(struct abx_json_writer *jw, const struct pty_session *session);

int pty_session_resize(struct pty_session *session, int cols, int rows, struct abx_err *err);

/* Type into it. What the terminal does not take yet is kept. */
void pty_session_input(struct pty_session *session, const char *data, size_t len);

/* SIGINT and SIGQUIT go to what runs in the foreground, the others to the shell's own group. */
void pty_session_signal(struct pty_session *session, int signal);

/* A client connects, or has gone. */
void pty_session_attach(struct pty_session *session, struct pty_client *client);
void pty_session_detach(struct pty_session *session, struct pty_client *client);

/* A client has taken output: go on reading if that was waited for. */
void pty_session_taken(struct pty_session *session);

/* Hang up and end all that runs in it; then it is gone. `closer`, which may be NULL, is told. */
void pty_session_close(struct pty_session *session, struct pty_control *closer);

/* end.c is done with it. */
void pty_session_killed(struct pty_session *session);

/* Whether it is to be closed for idleness. */
static inline bool pty_session_is_idle(const struct pty_session *session, int64_t now_ms)
{
	return session->state == PTY_LIVE && !session->removed && !session->clients && now_ms - session->active_ms >= PTY_IDLE_MS;
}

int64_t pty_sessions_tick(int64_t now_ms);

/* ---- replay.c */

/* Keep output. */
void pty_replay_add(struct pty_session *session, const char *text, size_t len);

/* Set where a new client begins, and what puts its terminal into the state of that moment. */
void pty_replay_begin(struct pty_session *session, struct pty_client *client);

/* ---- start.c */

/* Start the shell: fills in child and tty.fd. */
int pty_session_start(struct pty_session *session, const struct pty_plan *plan, struct abx_err *err);

/* ---- end.c */

int pty_end_open(struct abx_err *err);

/* End a session's processes in the background; pty_session_killed follows. -1: no thread for it can be had. */
int pty_end_session(struct pty_session *session);

/* End those of all sessions, and return when it is done. */
void pty_end_all(void);

/* Remove a session's temporary directory, if it has one, in the background. */
void pty_end_temp(struct pty_session *session);

/* ---- control.c */

/* The session that the request waits for is gone. */
void pty_control_closed(struct pty_control *control, const char *id);

#endif
