#include "common/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/strbuf.h"
#include "common/utf8.h"

/* What a pipe takes in one piece (PIPE_BUF): lines of several processes do not mix. */
#define LINE_MAX_BYTES 4096

/* Longest parts of a line. All of them with every character escaped still make a line that fits. */
#define MESSAGE_MAX 1900
#define PATH_MAX_    800
#define ERROR_MAX    400
#define NAME_MAX_    128

static const char *const level_names[] = { "debug", "info", "warning", "error" };

static struct {
	const char *program;
	enum abx_log_level level;
	bool json;
} config = { .program = "abx", .level = ABX_LOG_INFO };

static atomic_ulong n_dropped;

void abx_log_init(const char *program, enum abx_log_level level, bool json)
{
	config.program = program;
	config.level = level;
	config.json = json;
}

bool abx_log_wants(enum abx_log_level level)
{
	return level >= config.level;
}

int abx_log_level_parse(const char *name, enum abx_log_level *ret_level)
{
	for (size_t i = 0; i < ABX_N(level_names); i++)
		if (strcmp(name, level_names[i]) == 0) {
			*ret_level = (enum abx_log_level)i;
			return 0;
		}
	return -1;
}

/* Write to a descriptor that may be a full pipe, socket or terminal, and never wait for its reader. */
static bool write_now(int fd, const char *line, size_t len)
{
	struct iovec iov = { .iov_len = len };
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	struct stat st;

	memcpy(&iov.iov_base, &line, sizeof(line));
	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISREG(st.st_mode))
		return write(fd, line, len) == (ssize_t)len;
	if (S_ISSOCK(st.st_mode))
		return send(fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
	/* A reader that is gone would raise SIGPIPE. */
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT) || p.revents & (POLLERR | POLLHUP | POLLNVAL))
		return false;
	/* Another thread or process may have filled the pipe since; where the kernel can, it is told not to wait. */
	ssize_t n = pwritev2(fd, &iov, 1, -1, RWF_NOWAIT);
	if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM))
		n = write(fd, line, len);
	return n == (ssize_t)len;
}

/*
 * Append no more than `max` bytes of `text`, as UTF-8 without control characters: a caller's text
 * cannot forge a line or steer a terminal.
 */
static void add_clean(struct abx_strbuf *out, const char *text, size_t max)
{
	abx_auto_strbuf struct abx_strbuf mended = ABX_STRBUF_INIT_MAX(3 * max);

	size_t given = strnlen(text, max);
	if (given == max)
		given = abx_utf8_floor(text, given);
	/* One byte can become three, so the text is cut again once it is mended. */
	abx_utf8_lossy(text, given, &mended);
	size_t len = abx_utf8_floor(mended.buf, mended.len < max ? mended.len : max);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)mended.buf[i], next = (unsigned char)mended.buf[i + 1];
		if (c == 0xc2 && next < 0xa0)
			i++;
		if (c < 0x20 || c == 0x7f || (c == 0xc2 && next < 0xa0))
			abx_strbuf_addc(out, '?');
		else
			abx_strbuf_addc(out, (char)c);
	}
}

/* The moment, with milliseconds. */
static void add_time(struct abx_strbuf *out)
{
	char iso[ABX_CLOCK_ISO_SIZE];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	abx_clock_iso(iso, (struct timespec){ .tv_sec = now.tv_sec });
	abx_strbuf_addf(out, "%.19s.%03ld+00:00", iso, now.tv_nsec / 1000000);
}

static void add_member(struct abx_json_writer *jw, const char *key, const char *text, size_t max)
{
	abx_auto_strbuf struct abx_strbuf clean = ABX_STRBUF_INIT;

	if (!text) {
		abx_jw_kstring(jw, key, NULL);
		return;
	}
	add_clean(&clean, text, max);
	abx_jw_kstring(jw, key, clean.buf);
}

/* Begin a line; in JSON its object stays open. */
static void begin(struct abx_json_writer *jw, enum abx_log_level level, const char *message, unsigned long dropped)
{
	if (!config.json) {
		add_time(jw->out);
		abx_strbuf_addf(jw->out, " %-5s %s: ", level_names[level], config.program);
		if (dropped)
			abx_strbuf_addf(jw->out, "(%lu lines dropped) ", dropped);
		add_clean(jw->out, message, MESSAGE_MAX);
		return;
	}
	abx_auto_strbuf struct abx_strbuf moment = ABX_STRBUF_INIT;
	add_time(&moment);
	abx_jw_object(jw);
	abx_jw_kstring(jw, "time", moment.buf);
	abx_jw_kstring(jw, "level", level_names[level]);
	abx_jw_kstring(jw, "program", config.program);
	if (dropped)
		abx_jw_kint(jw, "dropped", (int64_t)dropped);
	add_member(jw, "message", message, MESSAGE_MAX);
}

/* End the line and write it. */
static void end(struct abx_json_writer *jw, unsigned long dropped)
{
	if (config.json)
		abx_jw_object_end(jw);
	abx_strbuf_addc(jw->out, '\n');
	if (jw->out->failed || !write_now(STDERR_FILENO, jw->out->buf, jw->out->len))
		atomic_fetch_add(&n_dropped, dropped + 1);
}

void abx_log(enum abx_log_level level, const char *fmt, ...)
{
	char message[MESSAGE_MAX + 1];
	va_list ap;

	if (!abx_log_wants(level))
		return;
	abx_auto_strbuf struct abx_strbuf line = ABX_STRBUF_INIT_MAX(LINE_MAX_BYTES);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&line);
	int saved = errno;
	va_start(ap, fmt);
	int n = vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(message))
		message[abx_utf8_floor(message, sizeof(message) - 1)] = '\0';
	unsigned long dropped = atomic_exchange(&n_dropped, 0);
	begin(&jw, level, n < 0 ? fmt : message, dropped);
	end(&jw, dropped);
	errno = saved;
}

static enum abx_log_level call_level(const struct abx_log_call *call)
{
	if (call->status >= 500)
		return ABX_LOG_ERROR;
	if (call->status < 400 && call->endpoint && strcmp(call->endpoint, "health") == 0)
		return ABX_LOG_DEBUG;
	return ABX_LOG_INFO;
}

static void add_call_json(struct abx_json_writer *jw, const struct abx_log_call *call)
{
	add_member(jw, "request_id", call->request_id, NAME_MAX_);
	add_member(jw, "identity", call->identity, NAME_MAX_);
	add_member(jw, "remote", call->remote, NAME_MAX_);
	add_member(jw, "endpoint", call->endpoint, NAME_MAX_);
	add_member(jw, "method", call->method, NAME_MAX_);
	add_member(jw, "path", call->path, PATH_MAX_);
	abx_jw_kint(jw, "status", call->status);
	abx_jw_key(jw, "duration_ms");
	/* Microseconds are as fine as the clock is worth; rounding keeps the number short. */
	abx_jw_double(jw, (double)(long long)(call->duration_ms * 1000 + 0.5) / 1000);
	add_member(jw, "error", call->error, ERROR_MAX);
}

static void add_call_text(struct abx_strbuf *out, const struct abx_log_call *call)
{
	const struct {
		const char *name, *value;
		size_t max;
	} fields[] = {
		{ "", call->method, NAME_MAX_ },
		{ "", call->path, PATH_MAX_ },
		{ "endpoint=", call->endpoint, NAME_MAX_ },
		{ "identity=", call->identity, NAME_MAX_ },
		{ "remote=", call->remote, NAME_MAX_ },
		{ "request_id=", call->request_id, NAME_MAX_ },
		{ "error=", call->error, ERROR_MAX },
	};

	abx_strbuf_addf(out, "%d %.3fms", call->status, call->duration_ms);
	for (size_t i = 0; i < ABX_N(fields); i++) {
		if (!fields[i].value)
			continue;
		abx_strbuf_addf(out, " %s", fields[i].name);
		add_clean(out, fields[i].value, fields[i].max);
	}
}

void abx_log_call(const struct abx_log_call *call)
{
	enum abx_log_level level = call_level(call);

	if (!abx_log_wants(level))
		return;
	abx_auto_strbuf struct abx_strbuf line = ABX_STRBUF_INIT_MAX(LINE_MAX_BYTES);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&line);
	int saved = errno;
	unsigned long dropped = atomic_exchange(&n_dropped, 0);
	begin(&jw, level, config.json ? "call" : "", dropped);
	if (config.json)
		add_call_json(&jw, call);
	else
		add_call_text(&line, call);
	end(&jw, dropped);
	errno = saved;
}
