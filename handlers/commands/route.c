/* Routes of a template's own code: their functions run in its worker. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/credentials.h"
#include "common/gate.h"
#include "common/sse.h"
#include "common/uri.h"
#include "handlers/commands/call.h"
#include "handlers/commands/handlers.h"
#include "policy/code.h"

/* ---- the question */

static void write_pair(struct abx_json_writer *jw, const char *name, size_t name_len, const char *value, size_t value_len)
{
	abx_jw_array(jw);
	abx_jw_stringn(jw, name, name_len);
	abx_jw_stringn(jw, value, value_len);
	abx_jw_array_end(jw);
}

/* HTTP_ACCEPT_LANGUAGE as it is mostly written, Accept-Language. */
static void write_header(struct abx_json_writer *jw, const char *variable, const char *value)
{
	char name[256];
	size_t len = (size_t)(value - variable);
	bool first = true;

	if (len >= sizeof(name))
		return;
	for (size_t i = 0; i < len; i++) {
		name[i] = variable[i] == '_' ? '-' : first ? variable[i] : (char)tolower((unsigned char)variable[i]);
		first = variable[i] == '_';
	}
	write_pair(jw, name, len, value + 1, strlen(value + 1));
}

/* Whether one of the credentials is good: it is nothing for the template's code then, which would put it into a log sooner or later. */
static bool has_credential(const struct abx_request *req)
{
	struct abx_credential_text text = ABX_CREDENTIAL_TEXT_INIT;
	struct abx_credentials creds = { 0 };
	struct abx_err unused = ABX_ERR_INIT;
	bool good;

	if (req->service->policy->local)
		return false;
	abx_credentials_collect(req, &text, &creds);
	good = abx_policy_authenticate(req->service->policy, &creds, &unused) || unused.kind == ABX_E_AMBIGUOUS_CREDENTIALS;
	abx_credentials_forget(&text);
	return good;
}

static void write_headers(struct abx_json_writer *jw, const struct abx_request *req)
{
	bool hide = has_credential(req);

	abx_jw_key(jw, "headers");
	abx_jw_array(jw);
	for (char *const *p = req->io->params; *p; p++) {
		const char *equals = strchr(*p, '='), *name = *p;

		if (!equals || (hide && (strncmp(name, "HTTP_AUTHORIZATION=", 19) == 0 || strncmp(name, "HTTP_X_ACCESS_TOKEN=", 20) == 0)))
			continue;
		if (strncmp(name, "HTTP_", 5) == 0)
			write_header(jw, name + 5, equals);
		else if ((strncmp(name, "CONTENT_TYPE=", 13) == 0 || strncmp(name, "CONTENT_LENGTH=", 15) == 0) && equals[1] && strcmp(equals, "=0") != 0)
			write_header(jw, name, equals);
	}
	abx_jw_array_end(jw);
}

static int write_query(struct abx_json_writer *jw, const struct abx_request *req, struct abx_err *err)
{
	struct abx_query query;

	if (abx_query_parse(req->query, &query, err) < 0)
		return -1;
	abx_jw_key(jw, "query");
	abx_jw_array(jw);
	for (size_t i = 0; i < query.n; i++)
		write_pair(jw, query.params[i].name, query.params[i].name_len, query.params[i].value, query.params[i].value_len);
	abx_jw_array_end(jw);
	abx_query_release(&query);
	return 0;
}

static void write_params(struct abx_json_writer *jw, const struct abx_request *req)
{
	abx_jw_key(jw, "path_params");
	abx_jw_object(jw);
	for (size_t i = 0; i < req->n_params; i++) {
		char name[ABX_CODE_ID_MAX + 1];

		snprintf(name, sizeof(name), "%.*s", (int)req->params[i].name_len, req->params[i].name);
		abx_jw_kstring(jw, name, req->params[i].value);
	}
	abx_jw_object_end(jw);
}

static int write_question(struct abx_json_writer *jw, const struct abx_request *req, struct abx_err *err)
{
	abx_jw_object(jw);
	abx_jw_kstring(jw, "kind", "route");
	abx_jw_kstring(jw, "id", req->endpoint->id);
	abx_jw_kstring(jw, "method", req->method);
	abx_jw_kstring(jw, "path", req->path);
	write_params(jw, req);
	if (write_query(jw, req, err) < 0)
		return -1;
	write_headers(jw, req);
	abx_jw_kstring(jw, "remote", abx_request_variable(req, "REMOTE_ADDR"));
	abx_jw_kstring(jw, "request_id", req->request_id);
	call_write_identity(jw, req);
	abx_jw_object_end(jw);
	return 0;
}

/* ---- the head of the answer */

/* Headers that are the server's own business, by their beginnings. */
static bool is_own(const char *name)
{
	static const char *const own[] = { "Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "Keep-Alive", "Server", "Status", "Trailer",
					   "Transfer-Encoding", "Upgrade", "X-Accel-", "X-Content-Type-Options", "X-LIGHTTPD-", "X-Request-Id", "X-Sendfile" };

	for (size_t i = 0; i < ABX_N(own); i++)
		if (strncasecmp(name, own[i], strlen(own[i])) == 0 && (own[i][strlen(own[i]) - 1] == '-' || !name[strlen(own[i])] || i == ABX_N(own) - 1))
			return true;
	return false;
}

/* Whether it can stand in a header line; a byte that is not ASCII can. */
static bool is_header(const json_t *pair, const char **ret_name, const char **ret_value)
{
	const json_t *value = json_array_get(pair, 1);

	*ret_name = json_string_value(json_array_get(pair, 0));
	*ret_value = json_string_value(value);
	if (!*ret_name || !**ret_name || !*ret_value || strlen(*ret_value) != json_string_length(value))
		return false;
	for (const char *p = *ret_name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("!#$%&'*+-.^_`|~", *p))
			return false;
	for (const char *p = *ret_value; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return true;
}

static int add_headers(struct call *call, const json_t *list, const char **ret_type, struct abx_err *err)
{
	const char *name, *value;
	const json_t *pair;
	size_t i;

	json_array_foreach(list, i, pair) {
		if (!is_header(pair, &name, &value))
			return call_nonsense(call, "a header that cannot be sent", err);
		if (strcasecmp(name, "Content-Type") == 0)
			*ret_type = value;
		else if (!is_own(name))
			abx_response_header(&call->req->res, name, value);
	}
	return 0;
}

struct head {
	bool stream;
	int64_t length; /* -1: not told */
};

/* Take the head and send it. */
static int take_head(struct call *call, const struct abx_worker_frame *frame, struct head *ret_head, struct abx_err *err)
{
	json_auto_t *json = call_json(call, frame, err);
	const json_t *length = json_object_get(json, "length");
	json_int_t status = json_integer_value(json_object_get(json, "status"));
	struct abx_response *res = &call->req->res;
	const char *type = NULL;

	if (!json)
		return -1;
	*ret_head = (struct head){ .stream = json_is_true(json_object_get(json, "stream")), .length = json_is_integer(length) ? json_integer_value(length) : -1 };
	if (status < 200 || status > 599 || ret_head->length < -1)
		return call_nonsense(call, "a head with no status or length that there is", err);
	if (add_headers(call, json_object_get(json, "headers"), &type, err) < 0)
		return -1;
	if (!type)
		type = ret_head->stream ? "text/event-stream" : ABX_RESPONSE_JSON;
	if (ret_head->stream) {
		abx_response_header(res, "X-Accel-Buffering", "no");
		call_stream(call);
	}
	if (abx_response_begin(res, (int)status, type, ret_head->stream ? -1 : ret_head->length) < 0 || (ret_head->stream && res->io->ops->flush(res->io) < 0))
		return abx_err_set(err, ABX_E_GONE, "The client left before the answer");
	return 0;
}

/* ---- the body */

static int send_piece(struct call *call, size_t len, bool flush, struct abx_err *err)
{
	struct abx_response *res = &call->req->res;

	if (call_pass_on(call, len, err) < 0)
		return -1;
	if (flush && res->io->ops->flush(res->io) < 0)
		return abx_err_set(err, ABX_E_GONE, "The client left the stream");
	call_sent(call);
	return 0;
}

static int send_body(struct call *call, const struct head *head, struct abx_err *err)
{
	struct abx_worker_frame frame;

	for (;;) {
		if (call_next(call, &frame, err) < 0)
			return -1;
		if (frame.kind == 'Z') {
			call->answered = true;
			return 0;
		}
		if (frame.kind != 'D')
			return call_nonsense(call, "a body has pieces and an end", err);
		if (send_piece(call, frame.len, head->stream, err) < 0)
			return -1;
	}
}

/* A stream that the server's end cuts short says so. */
static int end_stream(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf json = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&json);

	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "error", err->message);
	abx_jw_kstring(&jw, "type", abx_err_type(err));
	abx_jw_object_end(&jw);
	if (abx_sse_event(&req->res, "error", &json) < 0)
		return -1;
	err->kind = ABX_E_NONE;
	return 0;
}

static int take_answer(struct call *call, struct abx_err *err)
{
	struct abx_worker_frame frame;
	struct head head;

	if (call_next(call, &frame, err) < 0)
		return -1;
	if (frame.kind == 'F')
		return call_fail(call, &frame, err);
	if (frame.kind != 'H')
		return call_nonsense(call, "a route's answer begins with its head", err);
	if (take_head(call, &frame, &head, err) < 0)
		return -1;
	if (send_body(call, &head, err) == 0)
		return 0;
	return head.stream && err->kind == ABX_E_UNAVAILABLE ? end_stream(call->req, err) : -1;
}

int h_custom_route(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf question = ABX_STRBUF_INIT, what = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&question);
	auto_call struct call call = CALL_INIT;

	if (abx_gate_admit(req, err) < 0 || abx_gate_arguments(req, NULL, err) < 0 || write_question(&jw, req, err) < 0)
		return -1;
	abx_strbuf_addf(&what, "Route '%s'", req->endpoint->id);
	if (call_begin(&call, req, &question, (double)req->rule->limits.timeout_seconds, what.buf, err) < 0)
		return -1;
	return take_answer(&call, err);
}
