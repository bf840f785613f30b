/*
 * Native commands: named commands of the abx server that are functions in a shared object (C or C++).
 *
 * A file *.so in the directory of commands (ABX_COMMANDS_DIR) is loaded once, when abx-commands starts, and its commands are listed by GET /commands and run by POST
 * /commands/{name}, like those of manifests, without a process being started. Build it with
 *
 *     cc -shared -fPIC -o hello.so hello.c          (this header needs no library)
 *
 * and have it export one function, abx_command_entry:
 *
 *     #include <abx/command.h>
 *
 *     static int hello(struct abx_call *call)
 *     {
 *             return abx_call_return_text(call, abx_call_text(call, "name", NULL), -1);
 *     }
 *
 *     static const struct abx_command_arg args[] = {
 *             { "name", "string", 0, "\"World\"", "Whom to greet." },
 *     };
 *     static const struct abx_command_def commands[] = {
 *             { "hello", "Say hello.", args, 1, 0, 0, 0, hello, 0 },
 *     };
 *     static const struct abx_command_module module = ABX_COMMAND_MODULE(commands, 1, 0);
 *
 *     ABX_COMMAND_EXPORT const struct abx_command_module *abx_command_entry(void)
 *     {
 *             return &module;
 *     }
 *
 * Versions. ABX_COMMAND_ABI is checked when the object is loaded: one of another version stops the start of the server with a message. Within a version structures only grow at
 * their ends, and both sides say how large theirs are, so that an object keeps working with later servers of the same version, and with earlier ones as long as
 * what it uses was there.
 *
 * Lifetime. What abx_command_entry returns, and all that it points to, is read when the object is loaded and has to stay as it is for good. An object is never unloaded.
 *
 * Threads. `init` is called once, alone, before the first call. `run` is called by many threads at once, also for the same command: guard what they share. The
 * functions of a call may be called by the thread that `run` was called in, until it returns; abx_call_cancelled by any thread until then. A thread has 1 MiB of stack.
 *
 * Time. A call has the command's timeout, or else the one of the endpoint commands_run (300 s unless a policy says less). When it is over, the caller gets 500
 * TimeoutError, whatever the function does. The function itself goes on: nothing can end it from outside, so it should ask abx_call_cancelled in its loops and
 * return soon when that is true. While 16 calls of a command, or 128 of all, have been left behind like that, further ones are refused with 429 ResourceError.
 *
 * Faults. The function runs inside abx-commands, with the server's own rights: the policy's `confine` cannot hold it, and where it is asked for, native commands are refused. A
 * crash takes that one process down, which is back at once; the calls that it had are answered with an error. An exception of C++ that leaves `run` is a crash.
 *
 * Manners. All signals are blocked: leave them so. Do not call exit, fork, chdir, setenv or umask, change the locale, or close descriptors that are not yours; open yours
 * with O_CLOEXEC. Standard output and error are the server's log.
 */
#ifndef ABX_COMMAND_ABI_H
#define ABX_COMMAND_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define ABX_COMMAND_EXPORT extern "C" __attribute__((visibility("default")))
extern "C" {
#else
#define ABX_COMMAND_EXPORT __attribute__((visibility("default")))
#endif

#define ABX_COMMAND_ABI 1u

struct abx_call;

/* One argument. */
struct abx_command_arg {
	const char *name;
	const char *type;         /* "string", "integer", "float" or "boolean" */
	int required;             /* left out: 400 */
	const char *default_json; /* what it is when it is left out, as JSON ("\"World\"", "5"); NULL: nothing */
	const char *description;  /* NULL: "" */
};

/* One command. */
struct abx_command_def {
	const char *name;
	const char *description;              /* NULL: "" */
	const struct abx_command_arg *args;
	size_t n_args;
	const char *const *scopes;            /* all of them are needed; ended by NULL; NULL: none */
	int hidden;                           /* not listed, and runs all the same */
	double timeout;                       /* seconds; 0: the server's default */
	int (*run)(struct abx_call *call);    /* 0: what was given to abx_call_return_… is the result; else what was given to abx_call_fail is the error */
	void *data;                           /* for run, as call->data */
};

/* What an object consists of: make it with ABX_COMMAND_MODULE. */
struct abx_command_module {
	uint32_t abi;
	uint32_t command_size, arg_size;
	uint32_t n_commands;
	const struct abx_command_def *commands;
	int (*init)(char *message, size_t size); /* NULL: nothing to do. Not 0: the server does not start, and tells the message */
};

#define ABX_COMMAND_MODULE(commands, n_commands, init)                                                                         \
	{                                                                                                                      \
		ABX_COMMAND_ABI, (uint32_t)sizeof(struct abx_command_def), (uint32_t)sizeof(struct abx_command_arg), (n_commands), \
			(commands), (init)                                                                                     \
	}

/* The server's side. Use the functions below. */
struct abx_call_ops {
	uint32_t size;
	const char *(*text)(struct abx_call *call, const char *name, size_t *ret_len);
	int (*integer)(struct abx_call *call, const char *name, int64_t *ret);
	int (*number)(struct abx_call *call, const char *name, double *ret);
	int (*boolean)(struct abx_call *call, const char *name);
	int (*return_json)(struct abx_call *call, const char *json, size_t len);
	int (*return_text)(struct abx_call *call, const char *text, size_t len);
	int (*fail)(struct abx_call *call, const char *type, const char *message);
	int (*cancelled)(struct abx_call *call);
};

/* One call. Everything that it points to is the server's, and is there until `run` returns. */
struct abx_call {
	const struct abx_call_ops *ops;
	void *data;             /* of the command */
	const char *command;    /* its name */
	const char *args;       /* the arguments as one JSON object: coerced to their types, defaults filled in; a null of the caller's is there as null */
	size_t args_len;        /* args has a NUL behind it */
	const char *request_id; /* of the log */
	const char *identity;   /* who calls: "anonymous" where no credentials are asked for */
};

/* A string argument, with a NUL behind it, and its length (ret_len may be NULL) since it may hold NULs; NULL when it is not there, null or of another type. */
static inline const char *abx_call_text(struct abx_call *call, const char *name, size_t *ret_len)
{
	return call->ops->text(call, name, ret_len);
}

/* An integer, or `otherwise` when it is not there, null or of another type. */
static inline int64_t abx_call_integer(struct abx_call *call, const char *name, int64_t otherwise)
{
	int64_t value;

	return call->ops->integer(call, name, &value) == 0 ? value : otherwise;
}

/* A float or an integer, or `otherwise`. */
static inline double abx_call_number(struct abx_call *call, const char *name, double otherwise)
{
	double value;

	return call->ops->number(call, name, &value) == 0 ? value : otherwise;
}

/* 1 or 0, or -1 when it is not there, null or of another type. */
static inline int abx_call_boolean(struct abx_call *call, const char *name)
{
	return call->ops->boolean(call, name);
}

/*
 * Set the result: any JSON value, which is copied (len < 0: up to its NUL) and passed on byte for byte, NaN and numbers of any size included. The last one counts; without
 * one the result is null. What is no JSON, or larger than the limit of commands_run (64 MiB unless a policy says less), makes the call fail with 500. Returns 0,
 * or -1 when there was no memory, which run may return as it is.
 */
static inline int abx_call_return_json(struct abx_call *call, const char *json, ptrdiff_t len)
{
	return call->ops->return_json(call, json, len < 0 ? strlen(json) : (size_t)len);
}

/* The same with text that becomes a JSON string (text NULL: null). What is not UTF-8 in it becomes U+FFFD. */
static inline int abx_call_return_text(struct abx_call *call, const char *text, ptrdiff_t len)
{
	return text ? call->ops->return_text(call, text, len < 0 ? strlen(text) : (size_t)len) : call->ops->return_json(call, "null", 4);
}

/*
 * Say what went wrong: the caller gets 500 {"error": message, "type": type}. `type` is the name of an exception (NULL: "RuntimeError"). Both are copied.
 * Returns -1: return abx_call_fail(…).
 */
static inline int abx_call_fail(struct abx_call *call, const char *type, const char *message)
{
	return call->ops->fail(call, type, message);
}

/* Whether nobody waits for the result any more: the caller has left, the time is over, or the server stops. Costs a system call. */
static inline int abx_call_cancelled(struct abx_call *call)
{
	return call->ops->cancelled(call);
}

/* The object's one exported function. */
ABX_COMMAND_EXPORT const struct abx_command_module *abx_command_entry(void);

#ifdef __cplusplus
}
#endif

#endif
