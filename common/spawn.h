/*
 * The spawn door: the only way to a child process.
 *
 * A child gets a process group of its own, default signals and mask, no descriptor but 0, 1 and 2, a raised oom_score_adj, INVOCATION_ID in its
 * environment, and standard input from /dev/null unless data is given. It is noted on the board before it starts. One loop watches its pidfd, its pipes, the request's socket and the deadline.
 */
#ifndef ABX_SPAWN_H
#define ABX_SPAWN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/board.h"
#include "common/err.h"
#include "common/peer.h"
#include "common/shlex.h"
#include "common/strbuf.h"

/* The variable that marks a child and its descendants. */
#define ABX_INVOCATION "INVOCATION_ID="

/* Once per process, before the first spawn. `env` is the base of every child's environment (borrowed for ever). */
int abx_spawn_init(struct abx_board *board, char *const *env, struct abx_err *err);

/* From now on no child gets the variables of these names (NULL-terminated), nor can they be set for one. -1 when out of memory. */
int abx_spawn_hide(char *const *names);

/* Whether the variable is the server's own business: its name begins with ABX_, or was hidden. `name` may go on with '='. */
bool abx_env_is_private(const char *name);

/* A child's environment under construction. */
struct abx_env {
	char **vars; /* "NAME=value", NULL-terminated */
	size_t n;
};

/* The base environment and what POST /env has set. -1 when out of memory. */
int abx_env_init(struct abx_env *env);

/* Set a variable, replacing one of that name. -1 when out of memory. */
int abx_env_set(struct abx_env *env, const char *name, const char *value);
const char *abx_env_get(const struct abx_env *env, const char *name);

/* Leave out every variable whose name begins with `prefix`. */
void abx_env_drop(struct abx_env *env, const char *prefix);
void abx_env_release(struct abx_env *env);
#define abx_auto_env __attribute__((cleanup(abx_env_release)))

enum abx_stream { ABX_STDOUT, ABX_STDERR };

/*
 * Who takes a child's output while it runs, and sends it to the client. All functions are called in the thread of abx_spawn_run. While something waits to
 * be sent no more output is read, so that a client which reads slowly slows the child down; one that takes nothing for a minute has gone.
 */
struct abx_spawn_sink {
	/* The child was started: nothing was sent yet. -1: the client has gone. */
	int (*begin)(struct abx_spawn_sink *sink);
	/* Bytes as they were read. data NULL: this stream has ended. */
	void (*take)(struct abx_spawn_sink *sink, enum abx_stream stream, const char *data, size_t len);
	/* Nothing was sent for idle_ms. */
	void (*idle)(struct abx_spawn_sink *sink);
	/* Send some of what waits; the client's socket has room for 16 KiB. -1: the client has gone. */
	int (*send)(struct abx_spawn_sink *sink);
	int64_t idle_ms;
	bool waiting; /* something waits to be sent; kept by the sink itself */
};

/* What to run, and how long and how much of it to keep. */
struct abx_spawn {
	char *const *argv;        /* argv[0] without a slash is looked up in the child's PATH, as execvpe(3) does */
	const struct abx_env *env;
	int cwd_fd;               /* a directory */
	double timeout;           /* seconds; 0: none */
	size_t max_output;        /* bytes kept per stream; what comes after is read and dropped */
	int client_fd;            /* the request's socket, or -1: when the client has gone the child and its descendants are killed */
	struct abx_peer peer;     /* the client itself, where client_fd may not tell that it has gone; all zero: not looked at */
	const void *input;        /* standard input, or NULL: /dev/null */
	size_t input_len;
	bool raw;                 /* keep the output byte for byte: it is read by a parser, and not by a caller */
	const struct abx_confinement *confine; /* what the kernel holds it to (common/confine.h), or NULL */
	struct abx_spawn_sink *sink; /* where the output goes, all of it; then client_fd is needed. NULL: to the result */
};

enum abx_spawn_end { ABX_SPAWN_EXITED, ABX_SPAWN_TIMED_OUT, ABX_SPAWN_CLIENT_GONE, ABX_SPAWN_STOPPED };

struct abx_spawn_result {
	enum abx_spawn_end end;
	int exit_code;              /* of an exited child; killed by signal N is -N */
	struct abx_strbuf out, err; /* as the bytes came, made valid UTF-8 (unless raw); cut on a character's edge */
	bool truncated;             /* bytes beyond max_output were dropped, on either stream */
};

/*
 * Run a child to its end. 0: it was started, and *ret_result (released by the caller with abx_spawn_result_release) says how it ended. -1: it was
 * not started; ABX_E_ERRNO with ENOENT for a program that does not exist, ABX_E_TABLE_FULL when the board is full, ABX_E_INTERNAL when it
 * could not be confined.
 * The end is: reaped and both pipes drained, or reaped and a short grace passed while a descendant holds a pipe open. Such a pipe is then
 * read and dropped in the background until its end, so that the descendant does not die of SIGPIPE. Timeout, a gone client, and a stop of the server
 * kill the group and every descendant that carries the invocation id, before the child is reaped.
 */
int abx_spawn_run(const struct abx_spawn *spawn, struct abx_spawn_result *ret_result, struct abx_err *err);
void abx_spawn_result_release(struct abx_spawn_result *result);
#define abx_auto_result       __attribute__((cleanup(abx_spawn_result_release)))
#define ABX_SPAWN_RESULT_INIT { .out = ABX_STRBUF_INIT, .err = ABX_STRBUF_INIT }

/* From now on no child is started, and every running abx_spawn_run ends with ABX_SPAWN_STOPPED. Async-signal-safe. */
void abx_spawn_stop_all(void);

/* A descriptor that can be read from once abx_spawn_stop_all was called (never read it): for streams without a child. */
int abx_spawn_stop_fd(void);

/*
 * SIGKILL every process whose environment carries INVOCATION_ID=<prefix>…, again until none is found (at most a few rounds). Used with a
 * child's id, and by abxd with the server's instance digits.
 */
void abx_kill_marked(const char *prefix);

/*
 * Whether `pid` is a process of the server itself, as far as the board and /proc show it: abxd, the programs that it runs, the web server. What they
 * have started for a request is none.
 */
bool abx_process_is_server(pid_t pid);

#endif
