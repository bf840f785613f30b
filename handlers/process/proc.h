/*
 * Background processes: their table, and the one thread (manager.c) that owns them. It reads their output, sees their ends, reaps them and keeps their
 * deadlines. Requests hold a process while they look at it; what changes is looked at under the lock.
 */
#ifndef PROCESS_PROC_H
#define PROCESS_PROC_H

#include <pthread.h>

#include "common/request.h"
#include "common/spawn_child.h"
#include "common/utf8.h"
#include "common/workdir.h"
#include "handlers/process/ring.h"

#define PROCS_MAX        100                 /* running at a time */
#define PROCS_ENDED_MAX  100                 /* records of ended ones that are kept: so many, */
#define PROCS_INPUT_ROOM (1 << 20)           /* bytes that a process's standard input takes before it reads */
#define PROCS_ENDED_US   (600 * 1000000LL)   /* and each for so long */

enum proc_state {
	PROC_RUNNING,
	PROC_ENDING, /* it has ended, and its last output is being read */
	PROC_ENDED   /* it was reaped: its pid may be anybody's */
};

struct proc;

/* What the manager watches of a process. */
enum proc_source_kind { PROC_OUT = ABX_STDOUT, PROC_ERR = ABX_STDERR, PROC_EXIT, PROC_SOURCE__N };

struct proc_source {
	struct proc *proc;
	enum proc_source_kind kind;
	int fd; /* -1: there is nothing (more) to watch */
};

/* A request that waits for news of a process. */
struct proc_waiter {
	int fd; /* an eventfd */
	struct proc_waiter *next;
};

struct proc {
	/* These never change. */
	pid_t pid;
	char *command;
	double started_at;
	bool capture, input;
	/* These are the lock's. */
	struct proc *next;
	unsigned users;          /* requests and threads that hold it, and the table */
	enum proc_state state;
	int exit_code;           /* of an ended one */
	struct abx_child child;  /* until it is reaped; its pipes for output are in the sources */
	struct proc_source sources[PROC_SOURCE__N];
	struct abx_utf8 decoders[2]; /* by enum abx_stream */
	struct ring ring;
	unsigned kills;          /* that are under way: it is not reaped before they are done */
	bool doomed;             /* it is being killed by a thread of ours */
	bool writing;            /* a request writes to its standard input: nobody else touches that */
	int64_t due_us;          /* running: its deadline; ending: when its pipes are let go; ended: when it is forgotten */
	struct proc_waiter *waiters;
	struct abx_workdir temp; /* its temporary directory, or none; removed after its end */
};

/* The table. */
struct procs {
	pthread_mutex_t lock;
	struct proc *first;      /* the order of their starts */
	size_t starting;         /* places that are taken for processes which are about to start */
	int epoll_fd, wake_fd;   /* the manager's; -1: it was not started yet */
};

extern struct procs procs;

void procs_lock(void);
void procs_unlock(void);

struct proc_options {
	const char *command; /* as the caller wrote it */
	bool capture;
	size_t max_output;   /* bytes of output that are kept */
	double timeout;      /* seconds; 0: none */
	struct abx_workdir *temp; /* its temporary directory, taken over when it is started */
};

/* Start a process. -1: ABX_E_TABLE_FULL when PROCS_MAX are running, or as abx_child_start. */
int procs_start(const struct abx_start *start, const struct proc_options *options, pid_t *ret_pid, struct abx_err *err);

/* The process that the path's {pid} names, held for the caller until procs_put. NULL: ABX_E_VALUE for what is no number, ABX_E_NO_PROCESS. */
struct proc *procs_get(const struct abx_request *req, struct abx_err *err);
void procs_put(struct proc **proc);
#define auto_proc __attribute__((cleanup(procs_put)))

/* Read the path's {pid}. -1: ABX_E_VALUE. A number that no pid can have becomes 0. */
int procs_parse_pid(const struct abx_request *req, pid_t *ret_pid, struct abx_err *err);

/* Forget the ended processes whose time is over, and the oldest ones past PROCS_ENDED_MAX. With the lock. */
void procs_expire(int64_t now_us);

/* SIGKILL a process with its group and descendants, and return when that is done. false: it had ended before. Without the lock. */
bool proc_kill(struct proc *proc);

/* Whether it runs, as far as anybody can see: it may have ended a moment ago. With the lock. */
bool proc_is_alive(const struct proc *proc);

/* "running" or "exited", and the member "exit_code". With the lock. */
const char *proc_state_name(const struct proc *proc);
void proc_write_exit_code(const struct proc *proc, struct abx_json_writer *jw);

enum proc_news { PROC_NEWS, PROC_LATE, PROC_CLIENT_GONE, PROC_STOPPED };

/*
 * Wait for news of a process. Between begin and end, with the lock, which proc_wait gives up while it waits: until something changed (output, the end, standard input
 * free again, or `input_fd` can be written), until the moment `until_us` has come, the client (`client_fd`) has gone, or the server stops. -1: ABX_E_ERRNO.
 */
int proc_wait_begin(struct proc *proc, struct proc_waiter *waiter, struct abx_err *err);
enum proc_news proc_wait(struct proc_waiter *waiter, int input_fd, int client_fd, int64_t until_us);
void proc_wait_end(struct proc *proc, struct proc_waiter *waiter);

/* Something changed: wake who waits for it. With the lock. */
void proc_wake(struct proc *proc);

/* ---- between the table and the manager */

/* Start the manager, once. -1: it cannot be. With the lock. */
int manager_start(struct abx_err *err);

/* Let the manager watch a new process. -1: it cannot. With the lock. */
int manager_watch(struct proc *proc, struct abx_err *err);

/* Something changed that the manager has to look at. */
void manager_wake(void);

#endif
