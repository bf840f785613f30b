#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/uri.h"
#include "handlers/abxctl/http.h"

/* Longest body that is read from standard input; the server says what it takes. */
#define INPUT_MAX ((size_t)64 << 20)

/* ---- get, post, delete */

/* What may not stand in a request line is escaped, so that paths can be typed as they are. */
static int make_target(const char *path, struct abx_strbuf *out)
{
	if (*path != '/')
		return ctl_fail(CTL_USAGE, "the path '%s' does not begin with '/'", path);
	for (const char *c = path; *c; c++) {
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || *c == '#')
			abx_strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)*c);
		else
			abx_strbuf_addc(out, *c);
	}
	return out->failed ? ctl_fail(CTL_USAGE, "the path is too long") : CTL_OK;
}

static int read_input(struct abx_strbuf *out)
{
	char piece[65536];
	size_t n;

	while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0 && !out->failed)
		abx_strbuf_add(out, piece, n);
	if (ferror(stdin))
		return ctl_fail(CTL_FAILED, "cannot read standard input");
	if (out->failed)
		return ctl_fail(CTL_FAILED, "standard input holds more than %zu MiB", INPUT_MAX >> 20);
	return CTL_OK;
}

static int request(const struct ctl *ctl, const char *method)
{
	abx_auto_strbuf struct abx_strbuf target = ABX_STRBUF_INIT, input = ABX_STRBUF_INIT_MAX(INPUT_MAX);
	http_auto_answer struct http_answer answer = HTTP_ANSWER_INIT;
	const char *body = ctl->argc > 1 ? ctl->argv[1] : NULL;
	int status = make_target(ctl->argv[0], &target);

	if (status == CTL_OK && body && strcmp(body, "-") == 0) {
		status = read_input(&input);
		body = input.buf;
	}
	if (status != CTL_OK)
		return status;
	/* Events of a stream are to be seen when they come. */
	const struct http_sink sink = { .file = stdout, .flush = true, .name = "to standard output" };
	const struct http_request call = { .method = method, .target = target.buf, .body = body, .sink = &sink,
					   .body_len = body == input.buf ? input.len : body ? strlen(body) : 0 };
	status = http_call(ctl, &call, &answer);
	if (status == CTL_OK && answer.is_json && answer.last_byte != '\n')
		putchar('\n');
	return status;
}

int cmd_get(struct ctl *ctl)
{
	return request(ctl, "GET");
}

int cmd_post(struct ctl *ctl)
{
	return request(ctl, "POST");
}

int cmd_delete(struct ctl *ctl)
{
	return request(ctl, "DELETE");
}

/* ---- capabilities, health, version */

int cmd_capabilities(struct ctl *ctl)
{
	const struct http_request call = { .method = "GET", .target = "/capabilities" };
	int status = CTL_OK;
	json_auto_t *body = http_call_json(ctl, &call, &status);

	return body ? ctl_print_json(ctl, body) : status;
}

/* Longest wait between two tries of a server that is not there yet. */
#define RETRY_MS 100

/* Without --wait: how long an answer may take. */
#define HEALTH_MS 10000

static void pause_ms(int64_t ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* One try. 0, or an exit status with *err set. */
static int try_health(const struct ctl *ctl, int64_t timeout_ms, struct abx_err *err)
{
	const struct http_request call = { .method = "GET", .target = "/health", .timeout_ms = timeout_ms };
	http_auto_answer struct http_answer answer = HTTP_ANSWER_INIT;
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	int status = http_send(ctl, &call, &answer, err);

	if (status != CTL_OK)
		return status;
	if (answer.status != 200) {
		http_describe(ctl, &answer, &text);
		abx_err_set(err, ABX_E_UNAVAILABLE, "%s", text.buf);
		return CTL_FAILED;
	}
	return CTL_OK;
}

int cmd_health(struct ctl *ctl)
{
	int64_t end = abx_clock_ms() + ctl->wait_ms, retry = 1;
	struct abx_err err = ABX_ERR_INIT;

	for (;;) {
		int64_t left = end - abx_clock_ms();
		int status = try_health(ctl, ctl->wait_ms == 0 ? HEALTH_MS : left > 1 ? left : 1, &err);

		if (status == CTL_OK) {
			puts(ctl->json ? "{\"status\": \"ok\"}" : "ok");
			return CTL_OK;
		}
		left = end - abx_clock_ms();
		if (left <= 0 || status == CTL_USAGE)
			return ctl_fail(status == CTL_USAGE ? CTL_USAGE : CTL_FAILED, "%s", err.message);
		retry = retry * 2 < RETRY_MS ? retry * 2 : RETRY_MS;
		pause_ms(retry < left ? retry : left);
	}
}

int cmd_version(struct ctl *ctl)
{
	puts(ctl->json ? "{\"version\": \"" PACKAGE_VERSION "\"}" : "abxctl " PACKAGE_VERSION);
	return CTL_OK;
}
