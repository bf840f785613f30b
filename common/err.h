/*
 * The error object: one failure, set once, carried up, turned into a response in one place.
 *
 * A function that can fail takes `struct abx_err *err` last and returns 0 or -1 (or a pointer or
 * NULL). On success it leaves *err alone; on failure it has set it. Library code never logs.
 */
#ifndef ABX_ERR_H
#define ABX_ERR_H

#include "common/auto.h"

/*
 * What went wrong. Each value has one HTTP status, one `type` (the exception name a client knows)
 * and at most one `code` (contract, section 3): the table in err.c.
 */
enum abx_error {
	ABX_E_NONE = 0,
	ABX_E_VALUE,                 /* 400 ValueError */
	ABX_E_DUPLICATE_PARAMETER,   /* 400 duplicate_parameter */
	ABX_E_AMBIGUOUS_CREDENTIALS, /* 400 ambiguous_credentials */
	ABX_E_GIT,                   /* 400 GitError */
	ABX_E_UNAUTHORIZED,          /* 401 AuthError */
	ABX_E_FORBIDDEN,             /* 403 PermissionError, no code */
	ABX_E_ORIGIN,                /* 403 origin_not_allowed */
	ABX_E_MISSING_SCOPE,         /* 403 missing_scope */
	ABX_E_PATH,                  /* 403 path_not_allowed */
	ABX_E_COMMAND,               /* 403 command_not_allowed */
	ABX_E_EXTENSION,             /* 403 extension_not_allowed */
	ABX_E_LANGUAGE,              /* 403 language_not_allowed */
	ABX_E_URL,                   /* 403 url_not_allowed */
	ABX_E_VARIABLE,              /* 403 variable_not_allowed */
	ABX_E_ROUTE,                 /* 404 ValueError: no such path */
	ABX_E_DISABLED,              /* 404 endpoint_disabled */
	ABX_E_NO_COMMAND,            /* 404 ValueError: no such command */
	ABX_E_NO_FILE,               /* 404 FileNotFoundError */
	ABX_E_NO_PROCESS,            /* 404 ProcessLookupError */
	ABX_E_METHOD,                /* 405 method_not_allowed */
	ABX_E_DEADLINE,              /* 408 TimeoutError */
	ABX_E_CONFLICT,              /* 409 ValueError */
	ABX_E_FILE_EXISTS,           /* 409 FileExistsError */
	ABX_E_TOO_LARGE,             /* 413 payload_too_large */
	ABX_E_RANGE,                 /* 416 ValueError */
	ABX_E_RATE,                  /* 429 RateLimitError rate_limited */
	ABX_E_CONCURRENCY,           /* 429 ResourceError rate_limited */
	ABX_E_TABLE_FULL,            /* 429 ResourceError */
	ABX_E_INTERNAL,              /* 500 RuntimeError */
	ABX_E_SHELL_SYNTAX,          /* 500 ValueError: a command that cannot be split into words */
	ABX_E_TIMEOUT,               /* 500 TimeoutError */
	ABX_E_ERRNO,                 /* status and type follow err->os_errno */
	ABX_E_NOT_IMPLEMENTED,       /* 501 not_implemented */
	ABX_E_UNAVAILABLE,           /* 503 RuntimeError */
	ABX_E_GONE,                  /* the client left: nobody is told, the connection is broken */
	ABX_E__COUNT
};

/* Room for the name of a policy's rule. */
#define ABX_RULE_SIZE 192

struct abx_err {
	enum abx_error kind;
	int os_errno;      /* the errno behind ABX_E_ERRNO, else 0 */
	char rule[ABX_RULE_SIZE]; /* the policy rule that decided, or "" */
	char message[512]; /* UTF-8 where the inputs were; the response writer mends the rest */
};

#define ABX_ERR_INIT { .kind = ABX_E_NONE }

/* Set *err. Returns -1, so that a failure is one statement: return abx_err_set(err, …). */
int abx_err_set(struct abx_err *err, enum abx_error kind, const char *fmt, ...) ABX_PRINTF(3, 4);

/* As abx_err_set, and names the policy rule that decided. */
int abx_err_rule(struct abx_err *err, enum abx_error kind, const char *rule, const char *fmt, ...)
	ABX_PRINTF(4, 5);

/*
 * Set *err from a system call's errno. The message reads "<formatted>: <strerror>". The status and
 * type follow the errno: ENAMETOOLONG and ELOOP are 400 ValueError, ENOSPC and EDQUOT 507 OSError, the others 500 with
 * the name of the Python exception for that errno (contract, section 8 "Files").
 */
int abx_err_errno(struct abx_err *err, int os_errno, const char *fmt, ...) ABX_PRINTF(3, 4);

/* Put "<formatted>: " before the message that is there. Returns -1. */
int abx_err_prefix(struct abx_err *err, const char *fmt, ...) ABX_PRINTF(2, 3);

/* The HTTP status, exception name, and code (NULL when it has none) of a failure. */
int abx_err_status(const struct abx_err *err);
const char *abx_err_type(const struct abx_err *err);
const char *abx_err_code(const struct abx_err *err);

/* The `code` of a kind of error, or NULL: for /capabilities/check. */
const char *abx_error_code(enum abx_error kind);

#endif
