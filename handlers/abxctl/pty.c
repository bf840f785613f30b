/* abxctl pty: a terminal of the server in this one. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "common/json.h"
#include "common/paths.h"
#include "common/uri.h"
#include "common/utf8.h"
#include "handlers/abxctl/http.h"
#include "handlers/abxctl/websocket.h"

/* Control-] leaves the session as it is. */
#define DETACH_KEY 0x1d

/* Control-D: what a shell takes for the end of its input. */
#define END_OF_INPUT "\004"

struct terminal {
	struct websocket *ws;
	char session[64];
	bool interactive; /* standard input is a terminal */
	bool input_ended, detached, signalled;
	int exit_status; /* -1: the shell has not ended */
	int signals;
	struct termios before;
	struct abx_utf8 decoder; /* of what is typed */
};

/* ---- the terminal here */

static void set_raw(struct terminal *term)
{
	struct termios raw;

	if (!term->interactive || tcgetattr(STDIN_FILENO, &term->before) < 0)
		return;
	raw = term->before;
	cfmakeraw(&raw);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static void restore(const struct terminal *term)
{
	if (term->interactive)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &term->before);
}

/* The size of this terminal, if it has one that a session can have. */
static bool get_size(struct winsize *ret_size)
{
	return ioctl(STDIN_FILENO, TIOCGWINSZ, ret_size) == 0 && ret_size->ws_col > 0 && ret_size->ws_row > 0 &&
	       ret_size->ws_col <= 1000 && ret_size->ws_row <= 1000;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -1 : signalfd(-1, &set, SFD_CLOEXEC);
}

/* ---- to the server */

static int send_message(struct terminal *term, const struct abx_strbuf *text)
{
	return text->failed ? -1 : websocket_send(term->ws, text->buf, text->len);
}

static int send_size(struct terminal *term)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct winsize size;

	if (!term->interactive || !get_size(&size))
		return 0;
	abx_strbuf_addf(&text, "{\"type\": \"resize\", \"cols\": %d, \"rows\": %d}", size.ws_col, size.ws_row);
	return send_message(term, &text);
}

static int send_input(struct terminal *term, const char *data, size_t len)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT, typed = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);

	abx_utf8_feed(&term->decoder, data, len, &typed);
	if (typed.len == 0)
		return 0;
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "type", "input");
	abx_jw_key(&jw, "data");
	abx_jw_stringn(&jw, typed.buf, typed.len);
	abx_jw_object_end(&jw);
	return send_message(term, &text);
}

/* Returns -1 when the connection is broken. */
static int take_input(struct terminal *term)
{
	char data[16384];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));
	const char *key = n > 0 && term->interactive ? memchr(data, DETACH_KEY, (size_t)n) : NULL;

	if (n <= 0) {
		term->input_ended = true;
		return send_input(term, END_OF_INPUT, 1);
	}
	term->detached = key != NULL;
	return send_input(term, data, key ? (size_t)(key - data) : (size_t)n);
}

/* ---- from the server */

static void take_event(struct terminal *term, const json_t *message)
{
	const char *event = json_string_value(json_object_get(message, "event"));
	int code = (int)json_integer_value(json_object_get(message, "exit_code"));

	if (event && strcmp(event, "exited") == 0)
		term->exit_status = code < 0 ? 128 - code : code;
}

static int take_messages(struct terminal *term)
{
	const char *text;
	size_t len;

	websocket_read(term->ws);
	while (websocket_next(term->ws, &text, &len)) {
		struct abx_err err = ABX_ERR_INIT;
		json_auto_t *message = abx_json_parse(text, len, &err);
		const char *type = json_string_value(json_object_get(message, "type"));
		const json_t *data = json_object_get(message, "data");

		if (type && strcmp(type, "event") == 0)
			take_event(term, message);
		else if (data && abx_write_all(STDOUT_FILENO, json_string_value(data), json_string_length(data)) < 0)
			return -1;
	}
	return 0;
}

static int take_signal(struct terminal *term)
{
	struct signalfd_siginfo info;

	if (read(term->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) && info.ssi_signo == SIGWINCH)
		return send_size(term);
	term->signalled = true;
	return 0;
}

/* Until the session ends, is left, or is lost. */
static void run(struct terminal *term)
{
	int failed = send_size(term);

	failed |= take_messages(term);
	while (!failed && !term->ws->ended && !term->detached && !term->signalled) {
		struct pollfd fds[3] = { { .fd = term->ws->fd, .events = POLLIN },
					 { .fd = term->input_ended ? -1 : STDIN_FILENO, .events = POLLIN },
					 { .fd = term->signals, .events = POLLIN } };

		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[2].revents)
			failed |= take_signal(term);
		if (fds[0].revents)
			failed |= take_messages(term);
		if (fds[1].revents && !failed && !term->ws->ended)
			failed |= take_input(term);
	}
}

static int report(const struct terminal *term)
{
	const char *come_back = "abxctl pty --session";
	int code = term->ws->close_code;

	if (term->exit_status >= 0)
		return term->exit_status;
	if (term->detached) {
		printf("detached; \"%s %s\" comes back\n", come_back, term->session);
		return CTL_OK;
	}
	if (code == 4001)
		return ctl_fail(CTL_FAILED, "the server does not know this ABX_SERVER_TOKEN");
	if (code == 4003)
		return ctl_fail(CTL_FAILED, "the terminal is not allowed: %s", term->ws->close_reason);
	if (code == 4004)
		return ctl_fail(CTL_FAILED, "there is no session %s", term->session);
	return ctl_fail(CTL_FAILED, "the connection was lost; \"%s %s\" comes back", come_back, term->session);
}

/* ---- the session */

static int create(const struct ctl *ctl, struct terminal *term)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	struct winsize size;
	int status = CTL_OK;

	abx_jw_object(&jw);
	if (ctl->shell)
		abx_jw_kstring(&jw, "shell", ctl->shell);
	if (term->interactive && get_size(&size)) {
		abx_jw_kint(&jw, "cols", size.ws_col);
		abx_jw_kint(&jw, "rows", size.ws_row);
	}
	abx_jw_object_end(&jw);
	const struct http_request call = { .method = "POST", .target = "/pty/sessions", .body = body.buf, .body_len = body.len };
	json_auto_t *answer = http_call_json(ctl, &call, &status);
	const char *id = json_string_value(json_object_get(answer, "session_id"));
	if (!answer)
		return status;
	if (!id)
		return ctl_fail(CTL_FAILED, "%s does not answer as expected: no session_id", ctl->url);
	snprintf(term->session, sizeof(term->session), "%s", id);
	return CTL_OK;
}

int cmd_pty(struct ctl *ctl)
{
	websocket_auto struct websocket ws = WEBSOCKET_INIT;
	abx_auto_strbuf struct abx_strbuf target = ABX_STRBUF_INIT;
	struct terminal term = { .ws = &ws, .exit_status = -1, .interactive = isatty(STDIN_FILENO) };
	struct abx_err err = ABX_ERR_INIT;
	int status = CTL_OK;

	if (ctl->session)
		snprintf(term.session, sizeof(term.session), "%s", ctl->session);
	else
		status = create(ctl, &term);
	if (status != CTL_OK)
		return status;
	abx_strbuf_adds(&target, "/pty?session_id=");
	abx_uri_encode(term.session, strlen(term.session), false, &target);
	status = websocket_open(ctl, target.buf, &ws, &err);
	if (status != CTL_OK)
		return ctl_fail(status, "%s", err.message);
	term.signals = open_signals();
	if (term.signals < 0)
		return ctl_fail(CTL_FAILED, "cannot watch for signals");
	set_raw(&term);
	run(&term);
	restore(&term);
	close(term.signals);
	return report(&term);
}
