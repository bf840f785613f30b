#include "common/err.h"

#include <errno.h>
#include <string.h>

#include "common/utf8.h"
#include "t/tap.h"

/* The contract's table, written down a second time. */
static const struct {
	enum abx_error kind;
	int status;
	const char *type, *code;
} kinds[] = {
	{ ABX_E_VALUE, 400, "ValueError", NULL },
	{ ABX_E_DUPLICATE_PARAMETER, 400, "ValueError", "duplicate_parameter" },
	{ ABX_E_AMBIGUOUS_CREDENTIALS, 400, "ValueError", "ambiguous_credentials" },
	{ ABX_E_UNAUTHORIZED, 401, "AuthError", "unauthorized" },
	{ ABX_E_FORBIDDEN, 403, "PermissionError", NULL },
	{ ABX_E_ORIGIN, 403, "PermissionError", "origin_not_allowed" },
	{ ABX_E_MISSING_SCOPE, 403, "PermissionError", "missing_scope" },
	{ ABX_E_PATH, 403, "PermissionError", "path_not_allowed" },
	{ ABX_E_COMMAND, 403, "PermissionError", "command_not_allowed" },
	{ ABX_E_EXTENSION, 403, "PermissionError", "extension_not_allowed" },
	{ ABX_E_LANGUAGE, 403, "PermissionError", "language_not_allowed" },
	{ ABX_E_URL, 403, "PermissionError", "url_not_allowed" },
	{ ABX_E_VARIABLE, 403, "PermissionError", "variable_not_allowed" },
	{ ABX_E_ROUTE, 404, "ValueError", NULL },
	{ ABX_E_DISABLED, 404, "ValueError", "endpoint_disabled" },
	{ ABX_E_NO_COMMAND, 404, "ValueError", NULL },
	{ ABX_E_NO_FILE, 404, "FileNotFoundError", NULL },
	{ ABX_E_NO_PROCESS, 404, "ProcessLookupError", NULL },
	{ ABX_E_METHOD, 405, "ValueError", "method_not_allowed" },
	{ ABX_E_DEADLINE, 408, "TimeoutError", NULL },
	{ ABX_E_CONFLICT, 409, "ValueError", NULL },
	{ ABX_E_FILE_EXISTS, 409, "FileExistsError", NULL },
	{ ABX_E_TOO_LARGE, 413, "ValueError", "payload_too_large" },
	{ ABX_E_RANGE, 416, "ValueError", NULL },
	{ ABX_E_RATE, 429, "RateLimitError", "rate_limited" },
	{ ABX_E_CONCURRENCY, 429, "ResourceError", "rate_limited" },
	{ ABX_E_TABLE_FULL, 429, "ResourceError", NULL },
	{ ABX_E_INTERNAL, 500, "RuntimeError", NULL },
	{ ABX_E_SHELL_SYNTAX, 500, "ValueError", NULL },
	{ ABX_E_TIMEOUT, 500, "TimeoutError", NULL },
	{ ABX_E_GONE, 499, "ConnectionAbortedError", NULL },
	{ ABX_E_NOT_IMPLEMENTED, 501, "NotImplementedError", "not_implemented" },
	{ ABX_E_UNAVAILABLE, 503, "RuntimeError", NULL },
};

static const struct {
	int os_errno, status;
	const char *type;
} errnos[] = {
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
	{ ECHILD, 500, "ChildProcessError" },
	{ ESRCH, 500, "ProcessLookupError" },
	{ ETIMEDOUT, 500, "TimeoutError" },
	{ EIO, 500, "OSError" },
	{ EROFS, 500, "OSError" },
	{ 9999, 500, "OSError" },
	{ ENAMETOOLONG, 400, "ValueError" },
	{ ELOOP, 400, "ValueError" },
	{ ENOSPC, 507, "OSError" },
	{ EDQUOT, 507, "OSError" },
};

static void test_kinds(void)
{
	for (size_t i = 0; i < ABX_N(kinds); i++) {
		struct abx_err err = ABX_ERR_INIT;
		is_int(abx_err_set(&err, kinds[i].kind, "it %s", "failed"), -1, "setting returns -1");
		is_int(abx_err_status(&err), kinds[i].status, "status of kind %d", (int)kinds[i].kind);
		is_str(abx_err_type(&err), kinds[i].type, "type");
		is_str(abx_err_code(&err), kinds[i].code, "code");
		is_str(abx_error_code(kinds[i].kind), kinds[i].code, "code of the kind");
		is_str(err.message, "it failed", "message");
	}
	/* ABX_E_NONE and ABX_E_ERRNO are not in the table above. */
	is_int((long long)ABX_N(kinds), ABX_E__COUNT - 2, "every kind is in this test");
}

static void test_errnos(void)
{
	for (size_t i = 0; i < ABX_N(errnos); i++) {
		struct abx_err err = ABX_ERR_INIT;
		char want[256];
		is_int(abx_err_errno(&err, errnos[i].os_errno, "Cannot open %s", "x"), -1, "errno %d returns -1",
		       errnos[i].os_errno);
		snprintf(want, sizeof(want), "Cannot open x: %s", strerror(errnos[i].os_errno));
		is_str(err.message, want, "message");
		is_int(err.kind, ABX_E_ERRNO, "kind");
		is_int(err.os_errno, errnos[i].os_errno, "errno");
		is_int(abx_err_status(&err), errnos[i].status, "status");
		is_str(abx_err_type(&err), errnos[i].type, "type");
		is_str(abx_err_code(&err), NULL, "no code");
	}
}

static void test_rule_and_prefix(void)
{
	struct abx_err err = ABX_ERR_INIT;

	abx_err_errno(&err, ENOENT, "a");
	is_int(abx_err_rule(&err, ABX_E_PATH, "policy:endpoints.upload", "No %d", 1), -1,
	       "setting with a rule returns -1");
	is_str(err.rule, "policy:endpoints.upload", "the rule is kept");
	is_int(err.os_errno, 0, "the errno of before is gone");
	is_int(abx_err_prefix(&err, "While %s", "testing"), -1, "prefixing returns -1");
	is_str(err.message, "While testing: No 1", "the prefix stands before the message");
	is_int(err.kind, ABX_E_PATH, "the kind stays");
	is_str(err.rule, "policy:endpoints.upload", "the rule stays");
	abx_err_set(&err, ABX_E_VALUE, "Again: %s (%s)", err.message, err.rule);
	is_str(err.message, "Again: While testing: No 1 (policy:endpoints.upload)", "an error may be made from itself");
	is_str(err.rule, "", "and has no rule then");
	abx_err_rule(&err, ABX_E_PATH, "r", "x");
	abx_err_rule(&err, ABX_E_PATH, err.rule, "y");
	is_str(err.rule, "r", "also its rule");
}

/* Text of two-byte characters, cut at an odd place. */
static void test_long(void)
{
	struct abx_err err = ABX_ERR_INIT;
	char text[1200];

	for (size_t i = 0; i < sizeof(text) - 1; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[sizeof(text) - 2] = '\0';
	for (int shift = 0; shift < 2; shift++) {
		abx_err_rule(&err, ABX_E_VALUE, text, "%.*s%s", shift, "x", text);
		ok(strlen(err.message) >= sizeof(err.message) - 2, "a long message fills its room (%d)", shift);
		ok(abx_utf8_is_valid(err.message, strlen(err.message)), "and is not torn");
		ok(strlen(err.rule) >= sizeof(err.rule) - 2 && abx_utf8_is_valid(err.rule, strlen(err.rule)),
		   "nor is the rule");
		abx_err_prefix(&err, "%s", shift ? "p" : "pp");
		ok(strncmp(err.message, shift ? "p: x\xc3" : "pp: \xc3", 5) == 0 &&
			   abx_utf8_is_valid(err.message, strlen(err.message)),
		   "a prefix before a long message");
		abx_err_errno(&err, ENOENT, "%.*s%s", shift, "x", text);
		ok(abx_utf8_is_valid(err.message, strlen(err.message)), "an errno behind a long message");
		abx_err_prefix(&err, "%.*s%s", shift, "x", text);
		ok(abx_utf8_is_valid(err.message, strlen(err.message)), "a long prefix");
	}
}

int main(void)
{
	test_kinds();
	test_errnos();
	test_rule_and_prefix();
	test_long();
	return done_testing();
}
