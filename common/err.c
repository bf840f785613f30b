#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

static const struct kind {
	int status;
	const char *type, *code;
} kinds[ABX_E__COUNT] = {
	[ABX_E_NONE] = { 500, "RuntimeError", NULL },
	[ABX_E_VALUE] = { 400, "ValueError", NULL },
	[ABX_E_DUPLICATE_PARAMETER] = { 400, "ValueError", "duplicate_parameter" },
	[ABX_E_AMBIGUOUS_CREDENTIALS] = { 400, "ValueError", "ambiguous_credentials" },
	[ABX_E_GIT] = { 400, "GitError", NULL },
	[ABX_E_UNAUTHORIZED] = { 401, "AuthError", "unauthorized" },
	[ABX_E_FORBIDDEN] = { 403, "PermissionError", NULL },
	[ABX_E_ORIGIN] = { 403, "PermissionError", "origin_not_allowed" },
	[ABX_E_MISSING_SCOPE] = { 403, "PermissionError", "missing_scope" },
	[ABX_E_PATH] = { 403, "PermissionError", "path_not_allowed" },
	[ABX_E_COMMAND] = { 403, "PermissionError", "command_not_allowed" },
	[ABX_E_EXTENSION] = { 403, "PermissionError", "extension_not_allowed" },
	[ABX_E_LANGUAGE] = { 403, "PermissionError", "language_not_allowed" },
	[ABX_E_URL] = { 403, "PermissionError", "url_not_allowed" },
	[ABX_E_VARIABLE] = { 403, "PermissionError", "variable_not_allowed" },
	[ABX_E_ROUTE] = { 404, "ValueError", NULL },
	[ABX_E_DISABLED] = { 404, "ValueError", "endpoint_disabled" },
	[ABX_E_NO_COMMAND] = { 404, "ValueError", NULL },
	[ABX_E_NO_FILE] = { 404, "FileNotFoundError", NULL },
	[ABX_E_NO_PROCESS] = { 404, "ProcessLookupError", NULL },
	[ABX_E_METHOD] = { 405, "ValueError", "method_not_allowed" },
	[ABX_E_DEADLINE] = { 408, "TimeoutError", NULL },
	[ABX_E_CONFLICT] = { 409, "ValueError", NULL },
	[ABX_E_FILE_EXISTS] = { 409, "FileExistsError", NULL },
	[ABX_E_TOO_LARGE] = { 413, "ValueError", "payload_too_large" },
	[ABX_E_RANGE] = { 416, "ValueError", NULL },
	[ABX_E_RATE] = { 429, "RateLimitError", "rate_limited" },
	[ABX_E_CONCURRENCY] = { 429, "ResourceError", "rate_limited" },
	[ABX_E_TABLE_FULL] = { 429, "ResourceError", NULL },
	[ABX_E_INTERNAL] = { 500, "RuntimeError", NULL },
	[ABX_E_SHELL_SYNTAX] = { 500, "ValueError", NULL },
	[ABX_E_TIMEOUT] = { 500, "TimeoutError", NULL },
	[ABX_E_ERRNO] = { 500, "OSError", NULL }, /* any errno that is not in the table below */
	[ABX_E_NOT_IMPLEMENTED] = { 501, "NotImplementedError", "not_implemented" },
	[ABX_E_UNAVAILABLE] = { 503, "RuntimeError", NULL },
	[ABX_E_GONE] = { 499, "ConnectionAbortedError", NULL },
};

static const struct errno_kind {
	int os_errno, status;
	const char *type;
} errno_kinds[] = {
	{ EACCES, 500, "PermissionError" },
	{ EPERM, 500, "PermissionError" },
	{ ENOENT, 500, "FileNotFoundError" },
	{ EEXIST, 500, "FileExistsError" },
	{ ENOTDIR, 500, "NotADirectoryError" },
	{ EISDIR, 500, "IsADirectoryError" },
	{ EPIPE, 500, "BrokenPipeError" },
	{ ESHUTDOWN, 500, "BrokenPipeError" },
	{ ECONNRESET, 500, "ConnectionResetError" },
	{ ECONNREFUSED, 500, "ConnectionRefusedError" },
	{ ECONNABORTED, 500, "ConnectionAbortedError" },
	{ EINTR, 500, "InterruptedError" },
	{ EAGAIN, 500, "BlockingIOError" },
	{ EALREADY, 500, "BlockingIOError" },
	{ EINPROGRESS, 500, "BlockingIOError" },
	{ ECHILD, 500, "ChildProcessError" },
	{ ESRCH, 500, "ProcessLookupError" },
	{ ETIMEDOUT, 500, "TimeoutError" },
	{ ENAMETOOLONG, 400, "ValueError" },
	{ ELOOP, 400, "ValueError" },
	{ ENOSPC, 507, "OSError" },
	{ EDQUOT, 507, "OSError" },
};

/* End a text of `want` bytes, of which no more than size - 1 were written, where no character is cut in two. */
static void end_text(char *buf, size_t size, int want)
{
	if (want < 0)
		buf[0] = '\0';
	else if ((size_t)want >= size)
		buf[abx_utf8_floor(buf, size - 1)] = '\0';
}

/* The arguments may be parts of *err itself, so the text is made aside. */
static ABX_PRINTF(4, 0) void set(struct abx_err *err, enum abx_error kind, const char *rule, const char *fmt, va_list ap)
{
	char text[sizeof(err->message)], rule_text[sizeof(err->rule)];

	end_text(text, sizeof(text), vsnprintf(text, sizeof(text), fmt, ap));
	end_text(rule_text, sizeof(rule_text), snprintf(rule_text, sizeof(rule_text), "%s", rule));
	err->kind = kind;
	err->os_errno = 0;
	memcpy(err->rule, rule_text, sizeof(rule_text));
	memcpy(err->message, text, sizeof(text));
}

int abx_err_set(struct abx_err *err, enum abx_error kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set(err, kind, "", fmt, ap);
	va_end(ap);
	return -1;
}

int abx_err_rule(struct abx_err *err, enum abx_error kind, const char *rule, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set(err, kind, rule, fmt, ap);
	va_end(ap);
	return -1;
}

int abx_err_errno(struct abx_err *err, int os_errno, const char *fmt, ...)
{
	char reason[128];
	va_list ap;

	va_start(ap, fmt);
	set(err, ABX_E_ERRNO, "", fmt, ap);
	va_end(ap);
	err->os_errno = os_errno;
	size_t len = strlen(err->message), room = sizeof(err->message) - len;
	int n = snprintf(err->message + len, room, ": %s", strerror_r(os_errno, reason, sizeof(reason)));
	end_text(err->message + len, room, n);
	return -1;
}

int abx_err_prefix(struct abx_err *err, const char *fmt, ...)
{
	char text[sizeof(err->message)];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	end_text(text, sizeof(text), n);
	size_t len = strlen(text), room = sizeof(text) - len;
	end_text(text + len, room, snprintf(text + len, room, ": %s", err->message));
	memcpy(err->message, text, sizeof(text));
	return -1;
}

static const struct errno_kind *errno_kind(const struct abx_err *err)
{
	if (err->kind != ABX_E_ERRNO)
		return NULL;
	for (size_t i = 0; i < ABX_N(errno_kinds); i++)
		if (errno_kinds[i].os_errno == err->os_errno)
			return &errno_kinds[i];
	return NULL;
}

int abx_err_status(const struct abx_err *err)
{
	const struct errno_kind *by_errno = errno_kind(err);

	return by_errno ? by_errno->status : kinds[err->kind].status;
}

const char *abx_err_type(const struct abx_err *err)
{
	const struct errno_kind *by_errno = errno_kind(err);

	return by_errno ? by_errno->type : kinds[err->kind].type;
}

const char *abx_err_code(const struct abx_err *err)
{
	return abx_error_code(err->kind);
}

const char *abx_error_code(enum abx_error kind)
{
	return kinds[kind].code;
}
