#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "handlers/abxctl/abxctl.h"
#include "handlers/abxctl/http.h"

/* A server is gone within 6 seconds of being asked; past this something is wrong with it. */
#define STOP_MS 15000

/* How long reload waits until all groups follow the new policy: each of them starts once more. */
#define RELOAD_MS 30000

/* How long status waits for an answer. */
#define STATUS_MS 5000

/* ---- start */

/* The abxd beside our own executable, or NULL. */
static char *find_sibling(void)
{
	char self[PATH_MAX], *slash, *path;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len <= 0)
		return NULL;
	self[len] = '\0';
	slash = strrchr(self, '/');
	if (!slash || asprintf(&path, "%.*s/abxd", (int)(slash - self), self) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

/*
 * abxd itself returns once the server answers, and says why when it does not: so we become it. It is given the
 * environment, token and all.
 */
int cmd_start(struct ctl *ctl)
{
	char name[] = "abxd", foreground[] = "--foreground", port[32];
	char *argv[] = { name, NULL, NULL, NULL };
	abx_auto_free char *sibling = find_sibling();
	int argc = 1;

	if (ctl->port) {
		snprintf(port, sizeof(port), "--port=%s", ctl->port);
		argv[argc++] = port;
	}
	if (ctl->foreground)
		argv[argc++] = foreground;
	if (sibling)
		execv(sibling, argv);
	else
		execvp(name, argv);
	if (!sibling && errno == ENOENT)
		return ctl_fail(CTL_FAILED, "abxd was found neither beside abxctl nor on PATH");
	return ctl_fail(CTL_FAILED, "cannot start %s: %s", sibling ? sibling : name, strerror(errno));
}

/* ---- stop, reload */

static int find_and_signal(int number, struct ctl_server *ret_server)
{
	struct abx_err err = ABX_ERR_INIT;
	int status = ctl_server_find(ret_server, &err);

	if (status != CTL_OK)
		return ctl_fail(status, "%s", err.message);
	if (pidfd_send_signal(ret_server->pidfd, number, NULL, 0) < 0 && errno != ESRCH)
		return ctl_fail(CTL_FAILED, "cannot signal abxd (pid %d): %s", (int)ret_server->pid, strerror(errno));
	return CTL_OK;
}

int cmd_stop(struct ctl *ctl ABX_UNUSED)
{
	ctl_auto_server struct ctl_server server = CTL_SERVER_INIT;
	int status = find_and_signal(SIGTERM, &server);
	struct pollfd end = { .fd = server.pidfd, .events = POLLIN };

	if (status != CTL_OK)
		return status;
	if (poll(&end, 1, STOP_MS) <= 0)
		return ctl_fail(CTL_FAILED, "abxd (pid %d) has not ended within %d seconds", (int)server.pid, STOP_MS / 1000);
	printf("stopped (pid %d)\n", (int)server.pid);
	return CTL_OK;
}

/* What abxd has written of its last reload (<run>/reload.status), or NULL. */
static json_t *read_reload_status(const struct ctl_server *server)
{
	abx_auto_free char *path = NULL;

	if (asprintf(&path, "%s/reload.status", server->dir) < 0)
		path = NULL;
	return path ? json_load_file(path, 0, NULL) : NULL;
}

static json_int_t reload_serial(const json_t *status)
{
	return json_integer_value(json_object_get(status, "serial"));
}

int cmd_reload(struct ctl *ctl ABX_UNUSED)
{
	ctl_auto_server struct ctl_server server = CTL_SERVER_INIT;
	json_auto_t *before = NULL, *after = NULL;
	struct abx_err err = ABX_ERR_INIT;
	int status = ctl_server_find(&server, &err);

	if (status != CTL_OK)
		return ctl_fail(status, "%s", err.message);
	before = read_reload_status(&server);
	if (pidfd_send_signal(server.pidfd, SIGHUP, NULL, 0) < 0)
		return ctl_fail(CTL_FAILED, "cannot signal abxd (pid %d): %s", (int)server.pid, strerror(errno));
	for (int64_t end = abx_clock_ms() + RELOAD_MS; abx_clock_ms() < end;) {
		struct pollfd gone = { .fd = server.pidfd, .events = POLLIN };

		json_decref(after);
		after = read_reload_status(&server);
		if (reload_serial(after) > reload_serial(before))
			break;
		if (poll(&gone, 1, 10) > 0)
			return ctl_fail(CTL_FAILED, "abxd (pid %d) has ended", (int)server.pid);
	}
	if (reload_serial(after) <= reload_serial(before))
		return ctl_fail(CTL_FAILED, "abxd (pid %d) has not answered within %d seconds; its log tells more", (int)server.pid,
				RELOAD_MS / 1000);
	if (!json_is_true(json_object_get(after, "ok")))
		return ctl_fail(CTL_FAILED, "the new policy is not taken: %s", json_string_value(json_object_get(after, "error")));
	printf("abxd (pid %d) has read its policy again (revision %s)\n", (int)server.pid,
	       json_string_value(json_object_get(after, "revision")));
	return CTL_OK;
}

/* ---- status */

static void print_groups(const json_t *capabilities)
{
	const json_t *summary = json_object_get(capabilities, "group_summary");
	json_t *groups = json_object_get(capabilities, "groups"), *on;
	const char *name;

	json_object_foreach(groups, name, on) {
		const json_t *counts = json_object_get(summary, name);

		if (json_is_true(on))
			printf("  %-10s up   %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " endpoints\n", name,
			       json_integer_value(json_object_get(counts, "enabled")),
			       json_integer_value(json_object_get(counts, "total")));
		else
			printf("  %-10s off\n", name);
	}
}

/* The same for programs: one object. */
static int print_status_json(const struct ctl *ctl, const struct ctl_server *server, const json_t *capabilities)
{
	json_auto_t *status = json_pack("{s:b, s:o, s:s?, s:s, s:O?, s:O?}", "running", 1,
					"pid", server->pid > 0 ? json_integer(server->pid) : json_null(), "run_dir", server->dir, "url", ctl->url,
					"groups", json_object_get(capabilities, "groups"),
					"group_summary", json_object_get(capabilities, "group_summary"));

	return status ? ctl_print_json(ctl, status) : ctl_fail(CTL_FAILED, "out of memory");
}

static int print_not_running(const struct ctl *ctl, const struct abx_err *err)
{
	json_auto_t *status = json_pack("{s:b, s:s}", "running", 0, "reason", err->message);

	if (ctl->json)
		ctl_print_json(ctl, status);
	else
		printf("not running: %s\n", err->message);
	return CTL_NOT_RUNNING;
}

static void print_status(const struct ctl *ctl, const struct ctl_server *server, const json_t *capabilities)
{
	puts("running");
	if (server->dir)
		printf("  %-10s %d\n  %-10s %s\n", "pid", (int)server->pid, "run dir", server->dir);
	printf("  %-10s %s\n", "url", ctl->url);
	if (capabilities)
		print_groups(capabilities);
}

/* Take the URL of the server that was found, unless the caller has named one. */
static void choose_url(struct ctl *ctl, const struct ctl_server *server)
{
	const char *given = getenv("ABX_TEMPLATE_URL");
	char *url = server->url && !(given && *given) ? strdup(server->url) : NULL;

	if (url) {
		free(ctl->url);
		ctl->url = url;
	}
}

static bool answers(const struct ctl *ctl)
{
	const struct http_request request = { .method = "GET", .target = "/health", .timeout_ms = STATUS_MS };
	http_auto_answer struct http_answer answer = HTTP_ANSWER_INIT;
	struct abx_err err = ABX_ERR_INIT;

	return http_send(ctl, &request, &answer, &err) == CTL_OK && answer.status == 200;
}

int cmd_status(struct ctl *ctl)
{
	const struct http_request request = { .method = "GET", .target = "/capabilities", .timeout_ms = STATUS_MS };
	ctl_auto_server struct ctl_server server = CTL_SERVER_INIT;
	const char *given = getenv("ABX_TEMPLATE_URL");
	struct abx_err err = ABX_ERR_INIT;
	int found = ctl_server_find(&server, &err), ignored;

	if (found == CTL_FAILED)
		return ctl_fail(found, "%s", err.message);
	choose_url(ctl, &server);
	/* One that is not found here may be elsewhere, if a URL was given. */
	if (found != CTL_OK && !(given && *given && answers(ctl)))
		return print_not_running(ctl, &err);
	json_auto_t *capabilities = http_call_json(ctl, &request, &ignored);
	if (ctl->json)
		return print_status_json(ctl, &server, capabilities);
	print_status(ctl, &server, capabilities);
	return CTL_OK;
}
