#include "common/gate.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "common/audit.h"
#include "common/clock.h"
#include "common/credentials.h"
#include "common/log.h"
#include "common/origin.h"
#include "common/route.h"

/* Room for a body that announced no length (it cannot happen behind lighttpd, which buffers and counts). */
#define BODY_STEP ((size_t)64 << 10)

static int authenticate(struct abx_request *req, struct abx_err *err)
{
	struct abx_credential_text text = ABX_CREDENTIAL_TEXT_INIT;
	struct abx_credentials creds = { 0 };

	if (!req->service->policy->local)
		abx_credentials_collect(req, &text, &creds);
	req->identity = abx_policy_authenticate(req->service->policy, &creds, err);
	abx_credentials_forget(&text);
	return req->identity ? 0 : -1;
}

/*
 * What is another group's ends up here, in core, where no include file of lighttpd.conf names that group; a route of a template's own code, in core or in the group
 * of its path, where the web server does not know it.
 */
static bool is_at_home(const struct abx_request *req)
{
	return req->service->group == abx_endpoint_home(req->endpoint) ||
	       (req->service->group != ABX_GROUP_CORE && !abx_endpoint_is_custom(req->endpoint));
}

static int check_enabled(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf why = ABX_STRBUF_INIT, rule = ABX_STRBUF_INIT;

	if (req->rule->enabled && is_at_home(req))
		return 0;
	/* lighttpd picks a group by the path without "." and "..", which are names like others in a parameter: these name nothing. */
	if (req->rule->enabled && abx_request_group_is_mounted(req, abx_endpoint_home(req->endpoint)))
		return abx_err_set(err, ABX_E_ROUTE, "Not found: %s", req->path);
	if (req->rule->enabled)
		abx_strbuf_addf(&rule, "mount:%s", abx_groups[abx_endpoint_home(req->endpoint)].name);
	else
		abx_strbuf_adds(&rule, req->rule->rule);
	abx_policy_explain_disabled(req->endpoint, rule.buf, &why);
	return abx_err_rule(err, ABX_E_DISABLED, rule.buf, "%s", why.buf);
}

static int check_scopes(struct abx_request *req, struct abx_err *err)
{
	if (!req->identity || abx_policy_scopes_allow(req->identity->scopes, req->rule->scopes))
		return 0;
	return abx_err_rule(err, ABX_E_MISSING_SCOPE, abx_rule_scopes_name(req->rule),
			    "Endpoint '%s' needs a scope that '%s' does not have", req->endpoint->id, req->identity->id);
}

int abx_gate_authorize(struct abx_request *req, struct abx_err *err)
{
	req->rule = abx_policy_rule(req->service->policy, req->endpoint);
	req->roots = abx_service_roots(req->service, req->endpoint);
	if (check_enabled(req, err) < 0)
		return -1;
	return check_scopes(req, err);
}

static int too_large(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_TOO_LARGE, "Request body is larger than %zu bytes", ABX_BODY_MAX);
}

static int no_room(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory for the request body");
}

static int read_body(struct abx_request *req, struct abx_err *err)
{
	size_t expected = (size_t)abx_request_length(req), alloc = expected + 1;

	if (expected > ABX_BODY_MAX)
		return too_large(err);
	if (abx_block_alloc(&req->block, alloc) < 0)
		return no_room(err);
	req->body = req->block.data;
	for (;;) {
		ssize_t n = req->io->ops->read(req->io, req->body + req->body_len, req->block.size - req->body_len);

		if (n < 0)
			return abx_err_set(err, ABX_E_VALUE, "The request body ended early");
		if (n == 0)
			break;
		req->body_len += (size_t)n;
		if (req->body_len > ABX_BODY_MAX)
			return too_large(err);
		if (req->body_len == req->block.size && abx_block_grow(&req->block, req->block.size + BODY_STEP) < 0)
			return no_room(err);
		req->body = req->block.data;
	}
	if (req->body_len < expected)
		return abx_err_set(err, ABX_E_VALUE, "The request body ended early");
	return 0;
}

/* The size is looked at before the arguments, the bytes are the handler's. */
static int check_raw_body(struct abx_request *req, struct abx_err *err)
{
	int64_t length = abx_request_length(req), limit = req->rule->limits.max_bytes;

	req->raw_body = true;
	if (limit > 0 && length > limit)
		return abx_err_set(err, ABX_E_TOO_LARGE, "The body has %lld bytes; the limit is %lld", (long long)length,
				   (long long)limit);
	return 0;
}

static int take_arguments(struct abx_request *req, const char *const *cut, struct abx_err *err)
{
	json_t *body = NULL;

	if (req->endpoint->raw_args && abx_request_has_raw_body(req)) {
		if (check_raw_body(req, err) < 0)
			return -1;
	} else if (req->endpoint->method != ABX_GET) {
		if (read_body(req, err) < 0)
			return -1;
		body = abx_json_parse_body(req->body, req->body_len, cut, &req->text, err);
		if (!body)
			return -1;
	}
	return abx_args_check(req, body, err);
}

/* Work for a caller who left while the request was queued would be done for nobody, and twice when the caller tries again. */
static bool caller_left(const struct abx_request *req)
{
	struct pollfd pfd = { .fd = req->io->client_fd, .events = POLLRDHUP };

	return req->endpoint->method != ABX_GET && pfd.fd >= 0 && poll(&pfd, 1, 0) > 0 &&
	       (pfd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

int abx_gate_arguments(struct abx_request *req, const char *const *cut, struct abx_err *err)
{
	if (take_arguments(req, cut, err) < 0)
		return -1;
	if (caller_left(req))
		return abx_err_set(err, ABX_E_GONE, "The client left before its call began");
	return 0;
}

int abx_gate_pass(struct abx_request *req, struct abx_err *err)
{
	char allow[32];

	if (abx_origin_preflight(req)) {
		abx_response_begin(&req->res, 204, NULL, -1);
		return 0;
	}
	if (abx_route(req, allow, err) < 0) {
		if (err->kind == ABX_E_METHOD)
			abx_response_header(&req->res, "Allow", allow);
		return -1;
	}
	/* A public endpoint looks at nothing but method and path. */
	if (req->endpoint->flags & ABX_EP_PUBLIC)
		return req->endpoint->fn(req, err);
	if (abx_origin_check(req, err) < 0 || (!(req->endpoint->flags & ABX_EP_OPEN) && authenticate(req, err) < 0) ||
	    abx_gate_authorize(req, err) < 0)
		return -1;
	if (req->endpoint->flags & ABX_EP_RAW_ARGS)
		return req->endpoint->fn(req, err);
	if (abx_gate_admit(req, err) < 0)
		return -1;
	if (req->endpoint->flags & ABX_EP_PLANNED)
		return abx_err_set(err, ABX_E_NOT_IMPLEMENTED, "Endpoint '%s' is not implemented yet", req->endpoint->id);
	if (abx_gate_arguments(req, req->endpoint->cut, err) < 0)
		return -1;
	return req->endpoint->fn(req, err);
}

/* The kinds of error whose body names the endpoint: what a policy decided. */
static bool is_denial(enum abx_error kind)
{
	return kind == ABX_E_DISABLED || kind == ABX_E_RATE || kind == ABX_E_CONCURRENCY ||
	       kind == ABX_E_NOT_IMPLEMENTED || (kind >= ABX_E_MISSING_SCOPE && kind <= ABX_E_VARIABLE);
}

static void fail(struct abx_request *req, const struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)512 << 20);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	struct abx_err unused = ABX_ERR_INIT;
	const char *key, *code = abx_err_code(err);
	json_t *value;

	if (req->res.state != ABX_RESPONSE_NEW || err->kind == ABX_E_GONE) {
		abx_response_abort(&req->res);
		return;
	}
	abx_jw_object(&jw);
	/* The path may be longer than an error's message. */
	if (err->kind == ABX_E_ROUTE) {
		abx_auto_strbuf struct abx_strbuf message = ABX_STRBUF_INIT;

		abx_strbuf_addf(&message, "Not found: %s", req->path);
		abx_jw_key(&jw, "error");
		abx_jw_stringn(&jw, message.buf, message.len);
	} else {
		abx_jw_kstring(&jw, "error", req->failure.message ? req->failure.message : err->message);
	}
	abx_jw_kstring(&jw, "type", req->failure.type[0] ? req->failure.type : abx_err_type(err));
	if (code && err->kind != ABX_E_UNAUTHORIZED)
		abx_jw_kstring(&jw, "code", code);
	if (req->endpoint && is_denial(err->kind))
		abx_jw_kstring(&jw, "endpoint", req->endpoint->id);
	if (err->rule[0])
		abx_jw_kstring(&jw, "rule", err->rule);
	json_object_foreach(req->error_members, key, value) {
		abx_jw_key(&jw, key);
		abx_jw_value(&jw, value);
	}
	abx_jw_object_end(&jw);
	/* The rest of a raw body is not taken any more, and the connection of no further use. */
	if (req->endpoint && req->endpoint->raw_args && abx_request_has_raw_body(req) && abx_request_length(req) > 0)
		abx_response_header(&req->res, "Connection", "close");
	if (err->kind == ABX_E_UNAUTHORIZED)
		abx_response_header(&req->res, "WWW-Authenticate", "Bearer");
	if (abx_response_json(&req->res, req->failure.status ? req->failure.status : abx_err_status(err), &body, &unused) < 0)
		abx_response_abort(&req->res);
}

/* The last bytes are about to go out: whoever reads them may call again at once. */
static void end_call(struct abx_response *res)
{
	abx_gate_leave((struct abx_request *)((char *)res - offsetof(struct abx_request, res)));
}

static void log_call(const struct abx_request *req, const struct abx_err *err)
{
	struct abx_log_call call = {
		.request_id = req->request_id,
		.identity = req->identity ? req->identity->id : NULL,
		.remote = abx_request_variable(req, "REMOTE_ADDR"),
		.endpoint = req->endpoint ? req->endpoint->id : NULL,
		.method = req->method,
		.path = req->path,
		.error = err->kind != ABX_E_NONE ? err->message : NULL,
		.status = req->res.status,
		.duration_ms = (double)(abx_clock_us() - req->started_us) / 1000,
	};

	abx_log_call(&call);
	abx_audit_call(req->service->audit, &call, err);
}

void abx_gate_conclude(struct abx_request *req, const struct abx_err *err)
{
	fail(req, err);
	abx_response_finish(&req->res);
	log_call(req, err);
	req->concluded = true;
	req->io->ops->end(req->io);
}

void abx_gate_serve(const struct abx_service *service, struct abx_io *io)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_request req;
	const char *refused;
	int result;

	abx_request_init(&req, service, io);
	req.res.ending = end_call;
	abx_response_header(&req.res, "X-Request-Id", req.request_id);
	abx_origin_mark(&req);
	/* lighttpd's error handler runs with the status that lighttpd had decided on; a client cannot set this variable. */
	refused = abx_request_variable(&req, "REDIRECT_STATUS");
	if (service->server_error && refused && strcmp(refused, "200") != 0)
		result = service->server_error(&req, atoi(refused), &err);
	else
		result = abx_gate_pass(&req, &err);
	if (!req.concluded) {
		if (result < 0)
			fail(&req, &err);
		abx_response_finish(&req.res);
		log_call(&req, &err);
	}
	abx_request_release(&req);
}
