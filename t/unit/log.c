#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/json.h"
#include "common/utf8.h"
#include "t/tap.h"

/* Standard error, while it goes elsewhere. */
struct capture {
	int saved, reader;
};

static void redirect(struct capture *c, int reader, int writer)
{
	fflush(stderr);
	c->saved = dup(STDERR_FILENO);
	c->reader = reader;
	dup2(writer, STDERR_FILENO);
	close(writer);
}

static void capture_pipe(struct capture *c)
{
	int fds[2];

	if (pipe(fds) < 0)
		abort();
	redirect(c, fds[0], fds[1]);
}

static void restore(struct capture *c)
{
	dup2(c->saved, STDERR_FILENO);
	close(c->saved);
	if (c->reader >= 0)
		close(c->reader);
}

/* What there is to read now, of what fits into a pipe. */
static void drain(const struct capture *c, struct abx_strbuf *out)
{
	struct pollfd p = { .fd = c->reader, .events = POLLIN };
	char chunk[4096];

	abx_strbuf_reset(out);
	while (poll(&p, 1, 0) == 1 && p.revents & POLLIN) {
		ssize_t n = read(c->reader, chunk, sizeof(chunk));
		if (n <= 0)
			return;
		abx_strbuf_add(out, chunk, (size_t)n);
	}
}

/* Whether `text` begins as "2026-10-12T00:00:00.123+00:00 " does. */
static bool has_time(const char *text)
{
	static const char pattern[] = "dddd-dd-ddTdd:dd:dd.ddd+00:00 ";

	for (size_t i = 0; pattern[i]; i++)
		if (pattern[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i])
			return false;
	return true;
}

#define TIME_LENGTH 30

static void test_text(void)
{
	abx_auto_strbuf struct abx_strbuf got = ABX_STRBUF_INIT;
	struct capture c;

	capture_pipe(&c);
	abx_log(ABX_LOG_INFO, "before %s", "init");
	drain(&c, &got);
	restore(&c);
	if (!ok(has_time(got.buf), "a line begins with the time"))
		note("%s", got.buf);
	is_str(got.len > TIME_LENGTH ? got.buf + TIME_LENGTH : "", "info  abx: before init\n",
	       "before the init it is level info, text, abx");

	abx_log_init("abx-test", ABX_LOG_WARNING, false);
	capture_pipe(&c);
	abx_log(ABX_LOG_DEBUG, "no");
	abx_log(ABX_LOG_INFO, "no");
	abx_log(ABX_LOG_ERROR, "a\nb\tc\x1b[31m\x7f\xc2\x9b\xff\xc3\xa9");
	drain(&c, &got);
	restore(&c);
	is_str(got.len > TIME_LENGTH ? got.buf + TIME_LENGTH : "", "error abx-test: a?b?c?[31m??\xef\xbf\xbd\xc3\xa9\n",
	       "levels below are left out; control characters and bad bytes are replaced");
	ok(!abx_log_wants(ABX_LOG_INFO) && abx_log_wants(ABX_LOG_WARNING) && abx_log_wants(ABX_LOG_ERROR),
	   "what is wanted can be asked");
}

static void test_levels(void)
{
	static const char *const names[] = { "debug", "info", "warning", "error" };
	static const char *const others[] = { "", "Info", "warn", "errors", "0", " info" };
	enum abx_log_level level;

	for (size_t i = 0; i < ABX_N(names); i++) {
		is_int(abx_log_level_parse(names[i], &level), 0, "%s", names[i]);
		is_int(level, (long long)i, "is its level");
	}
	for (size_t i = 0; i < ABX_N(others); i++)
		is_int(abx_log_level_parse(others[i], &level), -1, "'%s' is none", others[i]);
	is_int(level, ABX_LOG_ERROR, "and leaves the output alone");
}

/* Log one line of JSON and parse it. */
static json_t *last_line(const struct capture *c)
{
	abx_auto_strbuf struct abx_strbuf got = ABX_STRBUF_INIT;
	struct abx_err err = ABX_ERR_INIT;

	drain(c, &got);
	bool one = got.len && got.len <= 4096 && strchr(got.buf, '\n') == got.buf + got.len - 1;
	ok(one, "one line of at most 4096 bytes (%zu)", got.len);
	return abx_json_parse(got.buf, got.len, &err);
}

static const char *member(const json_t *line, const char *name)
{
	return json_string_value(json_object_get(line, name));
}

static void test_json(void)
{
	struct capture c;

	abx_log_init("abx-test", ABX_LOG_INFO, true);
	capture_pipe(&c);
	abx_log(ABX_LOG_WARNING, "say \"%s\"\n\xff", "x\\y");
	json_auto_t *line = last_line(&c);
	restore(&c);
	is_str(member(line, "level"), "warning", "level");
	is_str(member(line, "program"), "abx-test", "program");
	is_str(member(line, "message"), "say \"x\\y\"?\xef\xbf\xbd", "message");
	const char *moment = member(line, "time");
	ok(moment && strlen(moment) == TIME_LENGTH - 1 && strncmp(moment + 23, "+00:00", 6) == 0, "time");
	is_int((long long)json_object_size(line), 4, "and nothing else");
}

static const struct abx_log_call example = {
	.request_id = "r-1",
	.identity = "admin",
	.remote = "10.0.0.1",
	.endpoint = "files_stat",
	.method = "GET",
	.path = "/files/stat",
	.error = "bad \"x\"",
	.status = 400,
	.duration_ms = 1.23456,
};

static void test_call_json(void)
{
	struct abx_log_call bare = {
		.request_id = "r-2", .remote = "::1", .method = "GET", .path = "/x", .status = 404, .duration_ms = 3
	};
	struct capture c;

	capture_pipe(&c);
	abx_log_call(&example);
	json_auto_t *line = last_line(&c);
	abx_log_call(&bare);
	json_auto_t *other = last_line(&c);
	restore(&c);
	is_str(member(line, "request_id"), "r-1", "request_id");
	is_str(member(line, "identity"), "admin", "identity");
	is_str(member(line, "remote"), "10.0.0.1", "remote");
	is_str(member(line, "endpoint"), "files_stat", "endpoint");
	is_str(member(line, "method"), "GET", "method");
	is_str(member(line, "path"), "/files/stat", "path");
	is_str(member(line, "error"), "bad \"x\"", "error");
	is_str(member(line, "level"), "info", "level");
	is_int(json_integer_value(json_object_get(line, "status")), 400, "status");
	ok(json_real_value(json_object_get(line, "duration_ms")) == 1.235, "duration_ms");
	ok(json_is_null(json_object_get(other, "identity")) && json_is_null(json_object_get(other, "endpoint")) &&
		   json_is_null(json_object_get(other, "error")),
	   "what is not known is null");
}

static void test_call_text(void)
{
	abx_auto_strbuf struct abx_strbuf got = ABX_STRBUF_INIT;
	struct abx_log_call forged = {
		.request_id = "r", .remote = "::1", .method = "GET", .path = "/a\r\nforged", .status = 200
	};
	struct capture c;

	abx_log_init("abx-test", ABX_LOG_INFO, false);
	capture_pipe(&c);
	abx_log_call(&example);
	drain(&c, &got);
	is_str(got.len > TIME_LENGTH ? got.buf + TIME_LENGTH : "",
	       "info  abx-test: 400 1.235ms GET /files/stat endpoint=files_stat identity=admin remote=10.0.0.1 "
	       "request_id=r-1 error=bad \"x\"\n",
	       "a call as text");
	abx_log_call(&forged);
	drain(&c, &got);
	restore(&c);
	is_str(got.len > TIME_LENGTH ? got.buf + TIME_LENGTH : "",
	       "info  abx-test: 200 0.000ms GET /a??forged remote=::1 request_id=r\n", "a path cannot begin a line");
}

static void test_call_levels(void)
{
	static const struct {
		const char *endpoint;
		int status;
		const char *level;
	} rows[] = {
		{ "upload", 200, "info" },  { "upload", 404, "info" },  { "upload", 499, "info" },
		{ "upload", 500, "error" }, { "upload", 507, "error" }, { "health", 200, "debug" },
		{ "health", 405, "info" },  { "health", 503, "error" }, { NULL, 200, "info" },
	};

	for (size_t i = 0; i < ABX_N(rows); i++) {
		abx_auto_strbuf struct abx_strbuf got = ABX_STRBUF_INIT;
		struct abx_log_call call = example;
		struct capture c;
		char want[16];
		call.endpoint = rows[i].endpoint;
		call.status = rows[i].status;
		abx_log_init("abx-test", ABX_LOG_DEBUG, false);
		capture_pipe(&c);
		abx_log_call(&call);
		drain(&c, &got);
		abx_log_init("abx-test", ABX_LOG_ERROR, false);
		abx_log_call(&call);
		size_t len = got.len;
		abx_auto_strbuf struct abx_strbuf second = ABX_STRBUF_INIT;
		drain(&c, &second);
		restore(&c);
		snprintf(want, sizeof(want), "%-5s ", rows[i].level);
		ok(len > TIME_LENGTH && strncmp(got.buf + TIME_LENGTH, want, strlen(want)) == 0, "%s %d is %s",
		   rows[i].endpoint ? rows[i].endpoint : "(none)", rows[i].status, rows[i].level);
		is_int(second.len > 0, strcmp(rows[i].level, "error") == 0, "and is left out accordingly");
	}
}

/* The longest of everything, in characters that grow when they are escaped or replaced. */
static void test_long(void)
{
	static const char *const fills[] = { "\"", "x", "\xff", "\xc3\xa9", "\xf0\x9f\x98\x80" };
	struct capture c;

	for (size_t i = 0; i < 2 * ABX_N(fills); i++) {
		abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
		abx_log_init("abx-test", ABX_LOG_INFO, i < ABX_N(fills));
		/* With the odd byte first, every limit falls into the middle of a character. */
		abx_strbuf_addc(&text, 'y');
		while (text.len < 20000)
			abx_strbuf_adds(&text, fills[i % ABX_N(fills)]);
		const char *t = text.buf;
		struct abx_log_call call = { t, t, t, t, t, t, t, 500, 1e15 };
		for (int shift = 0; shift < 2; shift++) {
			abx_auto_strbuf struct abx_strbuf got = ABX_STRBUF_INIT;
			capture_pipe(&c);
			abx_log(ABX_LOG_ERROR, "%.*s%s", shift, "y", t);
			if (i < ABX_N(fills)) {
				json_auto_t *line = last_line(&c);
				ok(json_string_length(json_object_get(line, "message")) > 1000,
				   "a long message is cut, not lost (%zu)", i);
				abx_log_call(&call);
				json_auto_t *call_line = last_line(&c);
				is_int(json_integer_value(json_object_get(call_line, "status")), 500,
				       "so is a long call (%zu)", i);
			} else {
				drain(&c, &got);
				ok(got.len > 1000 && got.len <= 4096 && abx_utf8_is_valid(got.buf, got.len),
				   "a long message as text (%zu)", i);
				abx_log_call(&call);
				drain(&c, &got);
				ok(got.len > 1000 && got.len <= 4096 && abx_utf8_is_valid(got.buf, got.len),
				   "a long call as text (%zu)", i);
				bool mended = strstr(got.buf, "\xef\xbf\xbd");
				is_int(mended, fills[i % ABX_N(fills)][0] == '\xff', "cut between characters");
			}
			restore(&c);
		}
	}
}

/* Fill what standard error leads to, so that one byte more would wait. */
static void fill(void)
{
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	char zeros[4096] = "";

	if (fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK) < 0)
		abort();
	for (size_t size = sizeof(zeros); size; size /= 2)
		while (write(STDERR_FILENO, zeros, size) > 0)
			;
	if (fcntl(STDERR_FILENO, F_SETFL, flags) < 0)
		abort();
}

static void test_full(const char *what, struct capture *c)
{
	abx_auto_strbuf struct abx_strbuf got = ABX_STRBUF_INIT;

	fill();
	/* A write that waits would wait for ever: the alarm ends the test then. */
	alarm(20);
	for (int i = 0; i < 3; i++)
		abx_log(ABX_LOG_INFO, "lost %d", i);
	alarm(0);
	drain(c, &got);
	abx_strbuf_reset(&got);
	abx_log(ABX_LOG_INFO, "found");
	abx_log(ABX_LOG_INFO, "again");
	drain(c, &got);
	restore(c);
	const char *second = strchr(got.buf, '\n');
	if (!ok(got.len > TIME_LENGTH &&
			strncmp(got.buf + TIME_LENGTH, "info  abx-test: (3 lines dropped) found\n", 40) == 0,
		"%s: lines are dropped and counted", what))
		note("%s", got.buf);
	is_str(second && strlen(second) > TIME_LENGTH ? second + 1 + TIME_LENGTH : "", "info  abx-test: again\n",
	       "and told of once");
}

static void test_blocked(void)
{
	struct capture c;
	int fds[2];

	abx_log_init("abx-test", ABX_LOG_INFO, false);
	capture_pipe(&c);
	test_full("a full pipe", &c);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		abort();
	redirect(&c, fds[0], fds[1]);
	test_full("a full socket", &c);

	abx_log_init("abx-test", ABX_LOG_INFO, true);
	capture_pipe(&c);
	fill();
	abx_log(ABX_LOG_INFO, "lost");
	abx_auto_strbuf struct abx_strbuf zeros = ABX_STRBUF_INIT;
	drain(&c, &zeros);
	abx_log(ABX_LOG_INFO, "found");
	json_auto_t *line = last_line(&c);
	restore(&c);
	is_int(json_integer_value(json_object_get(line, "dropped")), 1, "the count is a member in JSON");
}

/* The reader is gone: neither a signal nor a wait. */
static void test_no_reader(void)
{
	struct capture c;
	int fds[2];

	signal(SIGPIPE, SIG_DFL);
	abx_log_init("abx-test", ABX_LOG_INFO, false);
	capture_pipe(&c);
	close(c.reader);
	c.reader = -1;
	abx_log(ABX_LOG_INFO, "nobody");
	restore(&c);
	ok(true, "a pipe without a reader kills nobody");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		abort();
	redirect(&c, -1, fds[1]);
	close(fds[0]);
	abx_log(ABX_LOG_INFO, "nobody");
	restore(&c);
	ok(true, "nor does a socket");
	capture_pipe(&c);
	close(STDERR_FILENO);
	errno = 77;
	abx_log(ABX_LOG_INFO, "nowhere");
	int kept = errno;
	abx_log_call(&example);
	int kept_by_call = errno;
	dup2(c.saved, STDERR_FILENO);
	restore(&c);
	is_int(kept, 77, "a closed descriptor does not even change errno");
	is_int(kept_by_call, 77, "nor for a call");
}

static void test_file(void)
{
	abx_auto_strbuf struct abx_strbuf got = ABX_STRBUF_INIT;
	char name[] = "/tmp/abx-log-XXXXXX", text[600];
	int fd = mkostemp(name, O_APPEND);
	struct capture c;

	unlink(name);
	int reader = dup(fd);
	redirect(&c, reader, fd);
	abx_log(ABX_LOG_INFO, "to a file");
	ssize_t n = pread(reader, text, sizeof(text), 0);
	restore(&c);
	abx_strbuf_add(&got, text, n > 0 ? (size_t)n : 0);
	const char *tail = got.len > 10 ? got.buf + got.len - 10 : "";
	is_str(tail, "to a file\n", "a regular file is written to");
}

#define N_THREADS 4
#define N_LINES   300

static void *log_lines(void *arg)
{
	for (int i = 0; i < N_LINES; i++)
		abx_log(ABX_LOG_INFO, "thread %s line %d end", (const char *)arg, i);
	return NULL;
}

static void *read_all(void *arg)
{
	abx_auto_strbuf struct abx_strbuf all = ABX_STRBUF_INIT;
	char chunk[4096];
	ssize_t n;

	while ((n = read(*(int *)arg, chunk, sizeof(chunk))) > 0)
		abx_strbuf_add(&all, chunk, (size_t)n);
	return abx_strbuf_detach(&all);
}

/* Threads write at once while another reads: each line is whole, and none is lost unseen. */
static void test_threads(void)
{
	static char names[N_THREADS][2] = { "0", "1", "2", "3" };
	abx_auto_strbuf struct abx_strbuf earlier = ABX_STRBUF_INIT;
	pthread_t threads[N_THREADS], reader;
	struct capture c;
	int lines = 0, dropped = 0;
	void *all = NULL;
	bool whole = true;

	abx_log_init("abx-test", ABX_LOG_INFO, true);
	capture_pipe(&c);
	abx_log(ABX_LOG_INFO, "what earlier tests dropped");
	drain(&c, &earlier);
	if (pthread_create(&reader, NULL, read_all, &c.reader) != 0)
		abort();
	for (int i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i], NULL, log_lines, names[i]) != 0)
			abort();
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	/* The last line tells of what was dropped, once there is room for it. */
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	poll(&p, 1, -1);
	abx_log(ABX_LOG_INFO, "last");
	/* Nothing else holds the writing end, so this ends the reader. */
	dup2(c.saved, STDERR_FILENO);
	pthread_join(reader, &all);
	restore(&c);
	for (const char *at = all, *end; at && (end = strchr(at, '\n')); at = end + 1) {
		struct abx_err err = ABX_ERR_INIT;
		json_auto_t *line = abx_json_parse(at, (size_t)(end - at), &err);
		whole = whole && line;
		lines++;
		dropped += (int)json_integer_value(json_object_get(line, "dropped"));
	}
	free(all);
	ok(whole, "every line is whole");
	is_int(lines + dropped, N_THREADS * N_LINES + 1, "each was written or counted");
}

int main(void)
{
	test_text();
	test_levels();
	test_json();
	test_call_json();
	test_call_text();
	test_call_levels();
	test_long();
	test_blocked();
	test_no_reader();
	test_file();
	test_threads();
	return done_testing();
}
