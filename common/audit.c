#include "common/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"

#define PATH_BYTES 2048 /* of a call's path */
#define NAME_BYTES 256  /* of the other strings that a caller chooses */

struct abx_audit {
	int fd;
	bool all;
	atomic_bool failing; /* the last line could not be written */
};

struct abx_audit *abx_audit_open(const char *path, bool all, struct abx_err *err)
{
	abx_auto_fd int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	struct abx_audit *audit;

	if (fd < 0) {
		abx_err_errno(err, errno, "The audit file %s", path);
		return NULL;
	}
	audit = calloc(1, sizeof(*audit));
	if (!audit) {
		abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		return NULL;
	}
	audit->fd = abx_steal_fd(&fd);
	audit->all = all;
	return audit;
}

void abx_audit_close(struct abx_audit *audit)
{
	if (!audit)
		return;
	close(audit->fd);
	free(audit);
}

/* Whether somebody was refused, and not just mistaken. */
static bool is_denial(enum abx_error kind)
{
	return (kind >= ABX_E_UNAUTHORIZED && kind <= ABX_E_VARIABLE) || kind == ABX_E_AMBIGUOUS_CREDENTIALS ||
	       kind == ABX_E_DISABLED || kind == ABX_E_RATE || kind == ABX_E_CONCURRENCY;
}

static void add_text(struct abx_json_writer *jw, const char *key, const char *text, size_t max)
{
	abx_jw_key(jw, key);
	if (text)
		abx_jw_stringn(jw, text, strnlen(text, max));
	else
		abx_jw_null(jw);
}

static void make_line(struct abx_strbuf *line, const struct abx_log_call *call, const struct abx_err *err)
{
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(line);
	char time[ABX_CLOCK_ISO_SIZE];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	abx_clock_iso(time, now);
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "time", time);
	add_text(&jw, "request_id", call->request_id, NAME_BYTES);
	add_text(&jw, "identity", call->identity, NAME_BYTES);
	add_text(&jw, "remote", call->remote, NAME_BYTES);
	add_text(&jw, "endpoint", call->endpoint, NAME_BYTES);
	add_text(&jw, "method", call->method, NAME_BYTES);
	add_text(&jw, "path", call->path, PATH_BYTES);
	abx_jw_kint(&jw, "status", call->status);
	abx_jw_kstring(&jw, "code", err->kind ? abx_err_code(err) : NULL);
	abx_jw_kstring(&jw, "rule", err->rule[0] ? err->rule : NULL);
	abx_jw_key(&jw, "duration_ms");
	abx_jw_double(&jw, (double)(long long)(call->duration_ms * 1000 + 0.5) / 1000);
	abx_jw_object_end(&jw);
	abx_strbuf_addc(line, '\n');
}

void abx_audit_call(struct abx_audit *audit, const struct abx_log_call *call, const struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf line = ABX_STRBUF_INIT;
	bool failed;

	if (!audit || !(audit->all || is_denial(err->kind)))
		return;
	make_line(&line, call, err);
	failed = line.failed || write(audit->fd, line.buf, line.len) != (ssize_t)line.len;
	/* A full disk would fill the log as well. */
	if (failed && !atomic_exchange(&audit->failing, true))
		abx_log(ABX_LOG_ERROR, "the audit file cannot be written: %s", strerror(errno));
	if (!failed)
		atomic_store(&audit->failing, false);
}
