/* Requests that the web server refused by itself: it asks core for the body (server.error-handler). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/gate.h"
#include "common/route.h"
#include "handlers/core/core.h"

/* Smaller bodies stay in the web server's memory. */
#define SPOOLED ((unsigned long long)64 << 10)

static const struct {
	int status;
	const char *message;
} messages[] = {
	{ 400, "The request is malformed" },
	{ 408, "The request did not arrive in time" },
	{ 411, "The request needs a Content-Length" },
	{ 413, "Request body is larger than the limit" },
	{ 414, "The request target is too long" },
	{ 417, "The expectation cannot be met" },
	{ 431, "The request's header fields are too large" },
	{ 500, "The responder of this path failed or was restarted; try again" },
	{ 501, "The method or transfer coding is not implemented" },
	{ 502, "The responder of this path broke off its answer; try again" },
	{ 503, "The responder of this path is not running; try again" },
	{ 504, "The responder of this path did not answer in time" },
	{ 505, "The HTTP version is not supported" },
	{ 507, "There is no room for the request's body in the spool directory (ABX_SPOOL_DIR)" },
};

/* The status is lighttpd's, so the body is written here and not from an error kind. */
static int answer(struct abx_request *req, int status, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT, message = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);

	if (status == 404)
		abx_strbuf_addf(&message, "Not found: %s", req->path);
	for (size_t i = 0; i < ABX_N(messages); i++)
		if (messages[i].status == status)
			abx_strbuf_adds(&message, messages[i].message);
	if (!message.len)
		abx_strbuf_adds(&message, abx_status_reason(status));
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "error", message.buf);
	abx_jw_kstring(&jw, "type", status < 500 ? "ValueError" : status == 507 ? "OSError" : "RuntimeError");
	if (status == 413)
		abx_jw_kstring(&jw, "code", abx_error_code(ABX_E_TOO_LARGE));
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, status, &body, err);
}

/*
 * lighttpd wants a length on every POST, and a plain `curl -X POST` sends none: such a call is one with an empty body. It was refused before
 * it was routed, so it goes to its group from here.
 */
static int serve_without_body(struct abx_request *req, struct abx_err *err)
{
	struct abx_err unused = ABX_ERR_INIT;
	char allow[32];

	req->method = abx_method_name(ABX_POST);
	if (abx_route(req, allow, &unused) == 0 && abx_endpoint_home(req->endpoint) != ABX_GROUP_CORE)
		return core_relay(req, abx_endpoint_home(req->endpoint), err);
	return abx_gate_pass(req, err);
}

/* The terminal's WebSocket while its port is closed on purpose: a path like any other. */
static bool is_closed_websocket(const struct abx_request *req)
{
	const struct abx_group_info *info = &abx_groups[ABX_GROUP_TERMINAL];

	for (size_t i = 0; i < *info->n_rows; i++) {
		const struct abx_endpoint *row = &info->rows[i];
		size_t len = strlen(row->path);

		if (row->method == ABX_WS && strncmp(req->path, row->path, len) == 0 && strcmp(req->path + len + (req->path[len] == '/'), "") == 0)
			return !abx_policy_rule(req->service->policy, row)->enabled;
	}
	return false;
}

/* lighttpd says 500 as well when it has no room for a body, and has removed by now what it had written of it. */
static bool is_spool_full(const struct abx_request *req)
{
	const char *text = abx_request_variable(req, "HTTP_CONTENT_LENGTH");
	unsigned long long length = text ? strtoull(text, NULL, 10) : 0;
	struct statvfs fs;

	return length >= SPOOLED && statvfs(req->service->policy->spool_dir, &fs) == 0 && (unsigned long long)fs.f_bavail * fs.f_frsize < length;
}

int core_server_error(struct abx_request *req, int status, struct abx_err *err)
{
	if (status == 503 && is_closed_websocket(req))
		status = 404;
	if (status == 500 && is_spool_full(req))
		status = 507;
	return status == 411 ? serve_without_body(req, err) : answer(req, status, err);
}
