#include <string.h>

#include "common/command.h"
#include "common/credentials.h"
#include "common/uri.h"
#include "handlers/terminal/handlers.h"
#include "handlers/terminal/ptyd.h"

/*
 * Where the session's WebSocket is (`003`). With a server token and no identities of the policy the token is in it, so that a page can open it: no responder keeps a
 * token, but the caller has just sent it.
 */
static void add_url(const struct abx_request *req, const char *id, struct abx_json_writer *jw)
{
	const struct abx_policy *policy = req->service->policy;
	abx_auto_strbuf struct abx_strbuf url = ABX_STRBUF_INIT, token = ABX_STRBUF_INIT;

	abx_strbuf_addf(&url, "ws://localhost:%d/pty?session_id=%s", policy->pty_port, id);
	if (!policy->local && policy->n_identities == 1 && strcmp(policy->identities[0].id, "admin") == 0) {
		abx_credentials_own_token(req, &token);
		abx_strbuf_adds(&url, "&token=");
		abx_uri_encode(token.buf, token.len, false, &url);
	}
	abx_jw_kstring(jw, "ws_url", url.buf);
	explicit_bzero(token.buf, token.len);
	explicit_bzero(url.buf, url.len);
}

/*
 * The directory to start in and, where the shell's files are confined, the trees that it may write; their number, or -1. The kernel knows no globs, so what the
 * policy allows by one is left out.
 */
static ssize_t gather_fds(const struct abx_request *req, int cwd_fd, int fds[ABX_PTY_FDS], struct abx_err *err)
{
	size_t n = 0;

	fds[n++] = cwd_fd;
	for (size_t i = 0; (req->rule->confine & ABX_CONFINE_FILESYSTEM) && i < req->roots->n; i++) {
		if (req->roots->roots[i].only)
			continue;
		/* One is the connection's. */
		if (n == ABX_PTY_FDS - 1)
			return abx_err_set(err, ABX_E_INTERNAL, "Cannot confine the shell: more than %d allowed directories", ABX_PTY_FDS - 2);
		fds[n++] = req->roots->roots[i].fd;
	}
	return (ssize_t)n;
}

int h_pty_create(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_path struct abx_path cwd = ABX_PATH_INIT;
	const struct abx_confine_limits *limits = &req->rule->confine_limits;
	json_auto_t *request = json_pack("{s:s, s:O, s:O, s:O, s:[iIII], s:s, s:O*}", "op", "create", "shell", abx_arg_json(req, "shell"),
					 "cols", abx_arg_json(req, "cols"), "rows", abx_arg_json(req, "rows"), "confine",
					 (int)req->rule->confine, (json_int_t)limits->max_memory_bytes, (json_int_t)limits->max_processes,
					 (json_int_t)limits->max_cpu_seconds, "spool", req->service->policy->spool_dir, "env",
					 abx_arg_json(req, "env"));
	int fds[ABX_PTY_FDS];

	if (!request)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (abx_command_cwd(req, &cwd, err) < 0)
		return -1;
	ssize_t n_fds = gather_fds(req, cwd.fd, fds, err);
	if (n_fds < 0)
		return -1;
	json_auto_t *session = ptyd_ask(request, fds, (size_t)n_fds, err);
	if (!session)
		return -1;
	const char *id = json_string_value(json_object_get(session, "id"));
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "session_id", id);
	add_url(req, id, &jw);
	abx_jw_kint(&jw, "pid", json_integer_value(json_object_get(session, "pid")));
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
