/*
 * abxd: makes the run directory, the policy and every listening socket; starts, restarts, drains and reaps what serves requests. It is one
 * thread around one epoll set, and parses no request.
 */
#ifndef ABX_SERVER_H
#define ABX_SERVER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/board.h"
#include "common/endpoint.h"
#include "common/err.h"
#include "policy/settings.h"

struct abx_policy;
struct abx_server;
struct abx_code;
struct abx_document;

/* ---- what an epoll event is about: the kind, and an index */

enum abx_source { ABX_SOURCE_SIGNAL, ABX_SOURCE_CONTROL, ABX_SOURCE_LISTEN, ABX_SOURCE_WEB_LOG, ABX_SOURCE_PROBE, ABX_SOURCE_WORKER,
	ABX_SOURCE_WORKER_LOG };

/* Watch `fd` for input. 0 or -1. */
int abx_server_watch(struct abx_server *server, int fd, enum abx_source source, unsigned index, struct abx_err *err);
void abx_server_unwatch(struct abx_server *server, int fd);

/* Lower *deadline (INT64_MAX: none) to `moment`, where 0 is no moment. */
static inline void abx_deadline_add(int64_t *deadline, int64_t moment)
{
	if (moment && moment < *deadline)
		*deadline = moment;
}

/* ---- how long to wait before the next start of something that keeps dying */

struct abx_backoff {
	int64_t started_ms; /* of the last start */
	int64_t retry_ms;   /* when to start again; 0: not waiting */
	unsigned failures;  /* deaths in a row that came within a second of the start */
};

/* It has died: set retry_ms to now, or to 10 ms, 20 ms, … 1 s from now when it keeps dying young. */
void abx_backoff_died(struct abx_backoff *backoff);

/* Whether the time has come; it is not waiting any longer then. */
bool abx_backoff_due(struct abx_backoff *backoff);

/* ---- rundir.c */

struct abx_rundir {
	char *path;  /* absolute */
	char *spool; /* absolute */
	int fd;      /* the directory, locked (flock) for as long as we live; -1: not open */
	int spool_fd;
	bool made, spool_made; /* by us: removed as a whole */
	uid_t web_uid;         /* who connects to the sockets and writes to the spool directory; -1: we ourselves */
	gid_t web_gid;
};

/* Open or make it and the spool directory. Fills in settings->run_dir and spool_dir. */
int abx_rundir_open(struct abx_rundir *dir, struct abx_settings *settings, struct abx_err *err);

/* Whether the name of the run directory still leads to it. Made again when it was gone: then false, and all names in it are to be made again. */
bool abx_rundir_check(struct abx_rundir *dir);

/* Write a small file, replacing one that is there; `name` may have one directory part, which is made. */
int abx_rundir_write(struct abx_rundir *dir, const char *name, const char *text, struct abx_err *err);

/* Send standard error to <run>/abxd.log from now on: a daemon's log. */
int abx_rundir_open_log(struct abx_rundir *dir, struct abx_err *err);

/* Keep that log from growing for ever. */
void abx_rundir_trim_log(void);

/* Remove what we made in it, and itself if we made it. */
void abx_rundir_remove(struct abx_rundir *dir);

/* A new listening socket <run>/<group>.sock, replacing a name that is there. Returns the descriptor or -1. */
int abx_rundir_socket(struct abx_rundir *dir, const char *group, ino_t *ret_ino, struct abx_err *err);

/* Whether the name <run>/<group>.sock still leads to this inode. */
bool abx_rundir_has_socket(const struct abx_rundir *dir, const char *group, ino_t ino);

/* ---- group.c: the responders */

#define ABX_RESPONDERS 64

enum abx_responder_state { ABX_RESPONDER_NONE, ABX_RESPONDER_STARTING, ABX_RESPONDER_READY, ABX_RESPONDER_DRAINING };

struct abx_responder {
	enum abx_responder_state state;
	enum abx_group group;
	pid_t pid;
	int control_fd;
	bool accepts; /* a draining one that has not said yet that it takes no more calls */
	bool asked; /* it was sent a new policy and has not said yet whether it takes it */
	int64_t kill_ms; /* when a draining one has to end its streams, or is killed */
	bool ended;      /* it was told to end them */
};

enum abx_listen_watch {
	ABX_LISTEN_NONE,
	ABX_LISTEN_FIRST, /* the first connection starts the responder */
	ABX_LISTEN_REFUSE /* the responder does not come up: connections are closed, so that callers get an error and do not hang */
};

struct abx_group_state {
	char *program; /* NULL: not installed, so not mounted */
	int listen_fd;
	ino_t ino; /* of the socket's name */
	enum abx_listen_watch watch;
	struct abx_responder *current;  /* takes calls, or is about to */
	struct abx_responder *incoming; /* a new generation that replaces `current` once it is ready */
	struct abx_backoff backoff;
	bool tried; /* the first responder has come up, or has died */
};

/* Find the programs and make the sockets. */
int abx_groups_open(struct abx_server *server, struct abx_err *err);

/* Start the groups that start by themselves; wait for the first connection of the others. */
void abx_groups_start(struct abx_server *server);

void abx_groups_control(struct abx_server *server, unsigned index);
void abx_groups_connection(struct abx_server *server, enum abx_group group);

/* `pid` has died and is not reaped yet. If it was a responder: end what it left, plan the next one, and return true. */
bool abx_groups_died(struct abx_server *server, pid_t pid, int code, int status);

/* Start what is due, kill what drains too long. */
void abx_groups_tick(struct abx_server *server, int64_t *deadline);

/* Make the sockets again whose names are gone; their groups get a new generation. */
void abx_groups_check_names(struct abx_server *server);

/* The base directory, or one that the policy allows beside it, may have been removed and made again: file_ops, which is locked into the old one, gets a new generation. */
void abx_groups_check_base(struct abx_server *server);

/*
 * Have a group follow the policy that is published now: a new generation of its responder takes over, or, where processes and sessions live in it, it is
 * sent the policy and goes on.
 */
void abx_group_reload(struct abx_server *server, enum abx_group group);

/* Whether every group follows the published policy, in every call that begins from now on. */
bool abx_groups_settled(const struct abx_server *server);

/* Send a signal to every responder; whether there was one. */
bool abx_groups_kill(struct abx_server *server, int sig);

/* Whether all groups that start by themselves take calls. */
bool abx_groups_ready(const struct abx_server *server);

/* Whether each of them has come up once, or has tried and died. */
bool abx_groups_tried(const struct abx_server *server);

/* End the children that a dead responder has left; it is not reaped yet. */
void abx_groups_end_leftovers(struct abx_server *server, pid_t owner);

/* Whether a responder of the group lives. */
bool abx_group_lives(const struct abx_server *server, enum abx_group group);

/* ---- program.c */

/* The file name of a group's program, to be freed. NULL when out of memory. */
char *abx_group_program_name(enum abx_group group);

/* A program beside our own, as in a build directory, else where they are installed; to be freed. NULL: nowhere. */
char *abx_find_program(const char *name);

/* Start a responder with the descriptors of enum abx_supervised_fd; `more_fd`, that for ABX_FD_PTY or ABX_FD_CALLS, may be -1. Returns its pid, or -1 with errno. */
pid_t abx_spawn_program(const struct abx_server *server, const char *program, int listen_fd, int control_fd, int more_fd);

/* ---- ptyd.c: the pty daemon */

struct abx_ptyd {
	char *program; /* NULL: not installed */
	bool wanted;   /* an endpoint of terminal is on */
	int listen_fd; /* the pty port; -1: closed */
	int fd, terminal_fd; /* the ends of the pair by which abx-terminal asks it */
	pid_t pid;     /* 0: not running */
	int control_fd;
	struct abx_backoff backoff;
};

/* Find the program and take the port. */
int abx_ptyd_open(struct abx_server *server, struct abx_err *err);

/* Whether this policy wants it: looked at by abx_ptyd_open and abx_ptyd_reload. */
void abx_ptyd_follow(struct abx_server *server, const struct abx_policy *policy);
void abx_ptyd_reload(struct abx_server *server);
bool abx_ptyd_died(struct abx_server *server, pid_t pid, int code, int status);
void abx_ptyd_tick(struct abx_server *server, int64_t *deadline);
bool abx_ptyd_kill(const struct abx_server *server, int sig);

/* ---- code.c and worker.c: a template's own code, and the process that runs it */

struct abx_worker {
	struct abx_code *code; /* NULL: there is none, and nothing else here counts */
	char **argv, *cwd;     /* how to start it again */
	pid_t pid;             /* 0: not running */
	bool accepted;         /* it serves */
	bool told;             /* it was refused, and everybody was told why */
	int calls_fd, their_calls_fd; /* the ends of the pair that calls go over: abx-commands', every worker's */
	int control_fd;        /* -1: closed */
	size_t heard;          /* bytes of its table that have come, and are those of the server's */
	char invocation[33];   /* marks what it starts */
	int log_fd;            /* its standard error; the first one's is ours: -1 */
	size_t line_len;
	char line[400], last_line[400]; /* that it wrote before it was accepted */
	struct abx_backoff backoff;
	int64_t kill_ms;       /* when it is killed at the server's end; 0: not asked to end yet */
};

/* Take over what the descriptor of --code holds: before a policy is read. */
int abx_code_take(struct abx_server *server, int fd, struct abx_err *err);

/* Watch the worker that is there. */
int abx_worker_open(struct abx_server *server, struct abx_err *err);
void abx_worker_control(struct abx_server *server);
void abx_worker_log(struct abx_server *server);

/* Tell it of the secrets of a new policy. */
void abx_worker_reload(struct abx_server *server);

/* Whether there is none, or it serves. */
bool abx_worker_ready(const struct abx_server *server);
bool abx_worker_died(struct abx_server *server, pid_t pid, int code, int status);
void abx_worker_tick(struct abx_server *server, int64_t *deadline);

/* At the server's end: `drained` once abx-commands has no more calls. Whether it still lives. */
bool abx_worker_stop(struct abx_server *server, bool drained, int64_t *deadline);
void abx_worker_close(struct abx_server *server);

/* ---- web.c: lighttpd */

/* Descriptors that lighttpd may have; as an ordinary user, the limit that we have if it is lower. */
#define ABX_WEB_FDS 8192

struct abx_web {
	char *program;
	int listen_fd; /* -1: there is no web server of ours */
	char bind[64]; /* what it listens on, numeric */
	int port;
	pid_t pid; /* 0: not running */
	bool came_up; /* /health has answered once */
	struct abx_backoff backoff;
	int log_fd;
	size_t log_len;
	char log[1024], last_line[256];
	int probe_fd;
	int64_t probe_ms; /* when to ask for /health again */
};

/* Listen on a TCP port. Returns the descriptor or -1: ABX_E_CONFLICT when it is taken. */
int abx_listen(const char *host, int port, struct abx_err *err);

/* Find lighttpd and take the port. Fills in settings->port when it is 0. */
int abx_web_open(struct abx_server *server, struct abx_err *err);
int abx_web_start(struct abx_server *server, struct abx_err *err);
void abx_web_log(struct abx_server *server);
void abx_web_probe(struct abx_server *server);
bool abx_web_died(struct abx_server *server, pid_t pid, int code, int status);
void abx_web_tick(struct abx_server *server, int64_t *deadline);

/* The URL under which callers on this machine or others reach it, to be freed. NULL when out of memory. */
char *abx_web_url(const struct abx_server *server);

/* ---- webconf.c */

/* Write lighttpd's configuration, the groups' include files and the error documents to the run directory. */
int abx_webconf_write(struct abx_server *server, struct abx_err *err);

/* ---- policy.c */

/* Read the document that the settings name, and with it the tokens in the environment, whose secrets are then overwritten. Makes server->env. */
int abx_server_read_policy(struct abx_server *server, struct abx_err *err);

/* Decide from settings and document, and publish. */
int abx_server_publish_policy(struct abx_server *server, struct abx_err *err);

/* Read the document again. A bad one leaves everything as it is, and says so in the log, in <run>/reload.status and in the warnings of /capabilities. */
void abx_server_reload_policy(struct abx_server *server);

/* A group does not follow the new policy. */
void abx_server_reload_failed(struct abx_server *server, const char *what);

/* Write <run>/reload.status once all groups have followed. */
void abx_server_reload_tick(struct abx_server *server);

/* ---- reap.c */

/* SIGKILL every process whose parent we are, and whose INVOCATION_ID is ours; again until there is none or `deadline` has passed. */
void abx_kill_descendants(const struct abx_server *server, int64_t deadline);

/* "exited with status 3", "was killed by signal 9". */
void abx_describe_death(int code, int status, char *out, size_t size);

/* ---- server.c */

struct abx_server {
	struct abx_settings settings;
	struct abx_document *document; /* NULL: none */
	struct abx_policy *policy;     /* as it is published */
	unsigned reloads;
	bool reloading;
	char *reload_error; /* of the last reload; NULL: it went well */
	char **env; /* what responders get */
	const char *peer_user; /* of the image's own web server; NULL: it is ours */
	bool daemon;
	int report_fd; /* to the waiting parent of a daemon; -1: none */
	struct abx_board *board;
	int board_fd, policy_fd, signal_fd, epoll_fd;
	struct abx_rundir dir;
	struct abx_group_state groups[ABX_GROUP__COUNT];
	struct abx_responder responders[ABX_RESPONDERS];
	struct abx_web web;
	uint64_t trees; /* tells whether the directories that file_ops may touch are still the same; 0: not looked at yet */
	struct abx_ptyd ptyd;
	struct abx_worker worker;
	bool reported; /* ready, or failed */
	int exit_status;
	int64_t start_ms, check_ms;
	int stop_step;   /* 0: running */
	int64_t stop_began_ms;
	int64_t stop_ms; /* when the next step is due */
};

/* Make everything and start it. */
int abx_server_open(struct abx_server *server, struct abx_err *err);

/* Serve until a signal ends it. Returns the exit status. */
int abx_server_run(struct abx_server *server);

/* Remove everything. */
void abx_server_close(struct abx_server *server);

/* It cannot start: tell why, and stop with this exit status. */
void abx_server_fail(struct abx_server *server, int status, const char *text);

/* Tell whoever waits for the start how it went, once: status 0 and the ready line, or the exit status and what is wrong. */
void abx_server_report(struct abx_server *server, int status, const char *text);

#endif
