/* The gate, from the transport's variables to the bytes of the answer. */
#include "t/unit/request.h"

#include "handlers/file_ops/handlers.h"

static int (*stat_does)(struct abx_request *req, struct abx_err *err);

/* The handlers of this program: the rows refer to them weakly. */
int h_files_stat(struct abx_request *req, struct abx_err *err)
{
	return stat_does(req, err);
}

int h_upload(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	const char *data;
	size_t len;

	if (abx_arg_base64(req, "content_base64", &data, &len, err) < 0)
		return -1;
	abx_jw_stringn(&jw, data, len);
	return abx_response_json(&req->res, 200, &body, err);
}

static int echo_path(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);

	abx_jw_string(&jw, abx_arg_string(req, "path"));
	return abx_response_json(&req->res, 200, &body, err);
}

static int fail_late(struct abx_request *req, struct abx_err *err)
{
	abx_response_begin(&req->res, 200, ABX_RESPONSE_JSON, 10);
	abx_response_write(&req->res, "12345", 5);
	return abx_err_set(err, ABX_E_INTERNAL, "too late");
}

static int stop_short(struct abx_request *req, struct abx_err *err ABX_UNUSED)
{
	abx_response_begin(&req->res, 200, ABX_RESPONSE_JSON, 10);
	abx_response_write(&req->res, "12345", 5);
	return 0;
}

static int say_nothing(struct abx_request *req ABX_UNUSED, struct abx_err *err ABX_UNUSED)
{
	return 0;
}

static int with_members(struct abx_request *req, struct abx_err *err)
{
	req->error_members = json_pack("{s:s, s:i}", "stdout", "so far", "n", 3);
	return abx_err_set(err, ABX_E_TIMEOUT, "Command timed out after 1s");
}

static void answer_is(const struct abx_service *service, const char *method, const char *target, const char *body,
		      const char *const *more, int status, const char *want)
{
	struct abx_memory_io mem;

	serve(service, &mem, method, target, body, more);
	is_int(status_of(&mem), status, "%s %.60s: status", method, target);
	is_str(body_of(&mem), want, "%s %.60s: body", method, target);
	abx_strbuf_release(&mem.out);
}

static void test_errors(void)
{
	char *env[] = { NULL };
	struct abx_service service = make_service(ABX_GROUP_FILE_OPS, env);
	struct abx_memory_io mem;

	stat_does = echo_path;
	answer_is(&service, "GET", "/files/stat?path=a%20b", NULL, NULL, 200, "\"a b\"");
	answer_is(&service, "GET", "/files/stat/?path=x", NULL, NULL, 200, "\"x\"");
	answer_is(&service, "GET", "/files/stat", NULL, NULL, 400,
		  "{\"error\": \"path: is required\", \"type\": \"ValueError\"}");
	answer_is(&service, "GET", "/files/stat?path=", NULL, NULL, 400,
		  "{\"error\": \"path: must not be empty\", \"type\": \"ValueError\"}");
	answer_is(&service, "GET", "/files/stat?path=a%00b", NULL, NULL, 400,
		  "{\"error\": \"path: must not hold a NUL character\", \"type\": \"ValueError\"}");
	answer_is(&service, "GET", "/files/stat?path=a&path=b", NULL, NULL, 400,
		  "{\"error\": \"Duplicate query parameter: path\", \"type\": \"ValueError\", \"code\": "
		  "\"duplicate_parameter\"}");
	answer_is(&service, "GET", "/files//stat?path=x", NULL, NULL, 404,
		  "{\"error\": \"Not found: /files//stat\", \"type\": \"ValueError\"}");
	answer_is(&service, "GET", "/health", NULL, NULL, 404,
		  "{\"error\": \"Not found: /health\", \"type\": \"ValueError\"}");
	answer_is(&service, "POST", "/upload", "[1]", NULL, 400,
		  "{\"error\": \"Request body must be a JSON object, not array\", \"type\": \"ValueError\"}");
	answer_is(&service, "POST", "/upload", "", NULL, 400,
		  "{\"error\": \"path: is required\", \"type\": \"ValueError\"}");
	answer_is(&service, "POST", "/upload", "{\"path\": \"x\", \"content_base64\": \"a\"}", NULL, 400,
		  "{\"error\": \"content_base64: is not valid base64 (standard alphabet, padded)\", \"type\": "
		  "\"ValueError\"}");
	answer_is(&service, "POST", "/upload", "{\"path\": \"x\", \"content_base64\": \"aGk=\"}", NULL, 200, "\"hi\"");
	answer_is(&service, "POST", "/upload", "{\"path\": null, \"content_base64\": \"aGk=\"}", NULL, 400,
		  "{\"error\": \"path: is required\", \"type\": \"ValueError\"}");
	answer_is(&service, "POST", "/upload", "{\"path_base64\": \"/w==\", \"content_base64\": \"aGk=\"}", NULL, 200,
		  "\"hi\"");

	serve(&service, &mem, "PUT", "/files/stat", NULL, NULL);
	is_int(status_of(&mem), 405, "another method is 405");
	ok(has_header(&mem, "Allow: GET\r\n"), "with Allow");
	ok(strstr(body_of(&mem), "\"code\": \"method_not_allowed\"") != NULL, "and the code");
	abx_strbuf_release(&mem.out);
	free_service(&service);
}

static void test_late_failures(void)
{
	char *env[] = { NULL };
	struct abx_service service = make_service(ABX_GROUP_FILE_OPS, env);
	static int (*const bad[])(struct abx_request *, struct abx_err *) = { fail_late, stop_short, say_nothing };
	struct abx_memory_io mem;

	for (size_t i = 0; i < ABX_N(bad); i++) {
		stat_does = bad[i];
		serve(&service, &mem, "GET", "/files/stat?path=x", NULL, NULL);
		ok(mem.aborted, "a response that does not come whole breaks the connection (%zu)", i);
		abx_strbuf_release(&mem.out);
	}
	stat_does = with_members;
	answer_is(&service, "GET", "/files/stat?path=x", NULL, NULL, 500,
		  "{\"error\": \"Command timed out after 1s\", \"type\": \"TimeoutError\", \"stdout\": \"so far\", \"n\": 3}");
	free_service(&service);
}

static void test_standard_headers(void)
{
	char *env[] = { NULL };
	struct abx_service service = make_service(ABX_GROUP_FILE_OPS, env);
	const char *sane[] = { "HTTP_X_REQUEST_ID=abc-1.2:3", NULL }, *odd[] = { "HTTP_X_REQUEST_ID=a b", NULL };
	struct abx_memory_io mem;

	stat_does = echo_path;
	serve(&service, &mem, "GET", "/files/stat?path=x", NULL, sane);
	ok(has_header(&mem, "X-Request-Id: abc-1.2:3\r\n"), "a sane request id is kept");
	ok(has_header(&mem, "Cache-Control: no-store\r\n"), "no-store");
	ok(has_header(&mem, "X-Content-Type-Options: nosniff\r\n"), "nosniff");
	ok(has_header(&mem, "Content-Type: application/json; charset=utf-8\r\n"), "the content type");
	ok(has_header(&mem, "Content-Length: 3\r\n"), "the length");
	abx_strbuf_release(&mem.out);
	serve(&service, &mem, "GET", "/files/stat?path=x", NULL, odd);
	ok(!strstr(mem.out.buf, "a b") && strstr(mem.out.buf, "X-Request-Id: "), "an odd one is replaced");
	abx_strbuf_release(&mem.out);
	free_service(&service);
}

/* Credentials: what arrives, as lighttpd hands it over, and the status. */
static void test_credentials(void)
{
	static const struct {
		const char *vars[4];
		int status;
		const char *what;
	} cases[] = {
		{ { NULL }, 401, "none" },
		{ { "HTTP_X_ACCESS_TOKEN=s3cret", "ABX_HAS_TOKEN=1" }, 200, "X-Access-Token" },
		{ { "HTTP_X_ACCESS_TOKEN=s3cret" }, 401, "X_Access_Token" },
		{ { "HTTP_X_ACCESS_TOKEN=wrong", "ABX_HAS_TOKEN=1" }, 401, "a wrong token" },
		{ { "HTTP_X_ACCESS_TOKEN=s3cre", "ABX_HAS_TOKEN=1" }, 401, "a prefix of the token" },
		{ { "HTTP_X_ACCESS_TOKEN=s3cret, s3cret", "ABX_HAS_TOKEN=1" }, 200, "the same twice" },
		{ { "HTTP_X_ACCESS_TOKEN=s3cret, other", "ABX_HAS_TOKEN=1" }, 400, "two different ones" },
		{ { "HTTP_AUTHORIZATION=Bearer s3cret" }, 200, "bearer" },
		{ { "HTTP_AUTHORIZATION=bEaReR s3cret" }, 200, "the scheme in any case" },
		{ { "HTTP_AUTHORIZATION=Bearer  s3cret" }, 200, "two blanks" },
		{ { "HTTP_AUTHORIZATION=s3cret" }, 401, "no scheme" },
		{ { "HTTP_AUTHORIZATION=Basic s3cret" }, 401, "another scheme" },
		{ { "HTTP_AUTHORIZATION=Bearer s3cret, Bearer s3cret" }, 200, "the same bearer twice" },
		{ { "HTTP_AUTHORIZATION=Bearer s3cret, Bearer other" }, 400, "two bearers" },
		{ { "HTTP_AUTHORIZATION=Basic eDp5, Bearer s3cret" }, 400, "two schemes" },
		{ { "HTTP_AUTHORIZATION=Digest username=\"a\", realm=\"b c\"" }, 401, "a digest is one header" },
		{ { "HTTP_X_ACCESS_TOKEN=gateway", "ABX_HAS_TOKEN=1", "HTTP_AUTHORIZATION=Bearer s3cret" },
		  200, "a gateway's own token beside our bearer" },
		{ { "HTTP_X_ACCESS_TOKEN=s3cret", "ABX_HAS_TOKEN=1", "HTTP_AUTHORIZATION=Bearer gateway" },
		  200, "the other way round" },
	};
	char token[] = "ABX_SERVER_TOKEN=s3cret";
	char *env[] = { token, NULL };
	struct abx_service service = make_service(ABX_GROUP_FILE_OPS, env);
	struct abx_memory_io mem;

	stat_does = echo_path;
	for (size_t i = 0; i < ABX_N(cases); i++) {
		serve(&service, &mem, "GET", "/files/stat?path=x", NULL, cases[i].vars);
		is_int(status_of(&mem), cases[i].status, "credentials: %s", cases[i].what);
		if (cases[i].status == 401)
			is_str(body_of(&mem), "{\"error\": \"unauthorized\", \"type\": \"AuthError\"}", "the 401 body");
		ok(!strstr(mem.out.buf, "s3cret"), "and no token in the answer");
		abx_strbuf_release(&mem.out);
	}
	/* Order of the checks: a route that does not exist is told to everyone, everything else only with a credential. */
	answer_is(&service, "GET", "/nowhere", NULL, NULL, 404, "{\"error\": \"Not found: /nowhere\", \"type\": \"ValueError\"}");
	answer_is(&service, "GET", "/files/stat?path=a&path=b", NULL, NULL, 401,
		  "{\"error\": \"unauthorized\", \"type\": \"AuthError\"}");
	answer_is(&service, "POST", "/upload", "not json", NULL, 401,
		  "{\"error\": \"unauthorized\", \"type\": \"AuthError\"}");
	free_service(&service);
}

static void test_disabled(void)
{
	char *none[] = { NULL };
	char groups[] = "ABX_SERVER_ENABLED_GROUPS=dev_tools";
	char *enabled[] = { groups, NULL };
	struct abx_service service = make_service(ABX_GROUP_DEV_TOOLS, none);
	struct abx_memory_io mem;

	answer_is(&service, "POST", "/code/run", "{}", NULL, 404,
		  "{\"error\": \"Endpoint 'code_run' is disabled: group 'dev_tools' is opt-in. Enable the group "
		  "(ABX_SERVER_ENABLED_GROUPS=dev_tools, policy groups: [dev_tools]) or this endpoint (policy "
		  "endpoints.code_run.enabled: true)\", \"type\": \"ValueError\", \"code\": \"endpoint_disabled\", "
		  "\"endpoint\": \"code_run\", \"rule\": \"default:opt-in:dev_tools\"}");
	free_service(&service);
	/* A group that is not mounted arrives at core. */
	service = make_service(ABX_GROUP_CORE, enabled);
	serve(&service, &mem, "POST", "/code/run", "{}", NULL);
	is_int(status_of(&mem), 404, "a group that is not mounted is 404");
	ok(strstr(body_of(&mem), "\"rule\": \"mount:dev_tools\"") != NULL, "with the rule mount:dev_tools");
	abx_strbuf_release(&mem.out);
	free_service(&service);
}

static void test_body_limit(void)
{
	char *env[] = { NULL };
	struct abx_service service = make_service(ABX_GROUP_FILE_OPS, env);
	char method[] = "REQUEST_METHOD=POST", uri[] = "REQUEST_URI=/upload", none[] = "X=1";
	char *params[] = { method, uri, none, NULL };
	size_t max = ABX_BODY_MAX;
	char *body = malloc(max + 1);
	struct abx_memory_io mem;

	memset(body, ' ', max + 1);
	memcpy(body, "{\"path\": \"x\", \"content_base64\": \"aGk=\"", 38);
	body[max - 1] = '}';
	for (size_t extra = 0; extra <= 1; extra++) {
		abx_memory_io_init(&mem, params, body, max + extra);
		abx_gate_serve(&service, &mem.io);
		is_int(status_of(&mem), extra ? 413 : 200, "a body of 10 MiB and %zu bytes without a length", extra);
		abx_strbuf_release(&mem.out);
	}
	/* A body that is shorter than announced is not taken for a whole one. */
	abx_memory_io_init(&mem, params, "{}", 2);
	params[2] = strdup("CONTENT_LENGTH=100");
	abx_gate_serve(&service, &mem.io);
	is_int(status_of(&mem), 400, "a body that ended early");
	abx_strbuf_release(&mem.out);
	free(params[2]);
	free(body);
	free_service(&service);
}

static void origin_is(const struct abx_service *service, const char *origin, const char *host, const char *forwarded,
		      int status, bool cors)
{
	char origin_var[128], host_var[128], forwarded_var[128];
	const char *vars[] = { origin_var, host_var, forwarded ? forwarded_var : NULL, NULL };
	struct abx_memory_io mem;

	snprintf(origin_var, sizeof(origin_var), "HTTP_ORIGIN=%s", origin);
	snprintf(host_var, sizeof(host_var), "HTTP_HOST=%s", host);
	if (forwarded)
		snprintf(forwarded_var, sizeof(forwarded_var), "HTTP_X_FORWARDED_HOST=%s", forwarded);
	serve(service, &mem, "GET", "/files/stat?path=x", NULL, vars);
	is_int(status_of(&mem), status, "Origin %s, Host %s, forwarded %s", origin, host, forwarded ? forwarded : "-");
	ok(cors == (strstr(mem.out.buf, "Access-Control-Allow-Origin") != NULL), "CORS headers: %d", cors);
	abx_strbuf_release(&mem.out);
}

static void test_origins(void)
{
	char allowed[] = "ABX_ALLOWED_ORIGINS=https://app.example, http://localhost:3000";
	char token[] = "ABX_SERVER_TOKEN=t";
	char *none[] = { NULL }, *listed[] = { allowed, NULL }, *with_token[] = { token, NULL };
	struct abx_service service = make_service(ABX_GROUP_FILE_OPS, none);
	const char *preflight[] = { "HTTP_ORIGIN=https://app.example", "HTTP_ACCESS_CONTROL_REQUEST_METHOD=POST", NULL };
	struct abx_memory_io mem;

	stat_does = echo_path;
	origin_is(&service, "http://evil.example", "127.0.0.1:9000", NULL, 403, false);
	origin_is(&service, "null", "127.0.0.1:9000", NULL, 403, false);
	origin_is(&service, "http://127.0.0.1:9000", "127.0.0.1:9000", NULL, 200, false);
	origin_is(&service, "http://127.0.0.1:9001", "127.0.0.1:9000", NULL, 403, false);
	origin_is(&service, "http://[::1]:9000", "[::1]:9000", NULL, 200, false);
	origin_is(&service, "https://9000-x.example", "127.0.0.1:9000", "9000-x.example", 200, false);
	origin_is(&service, "https://9000-x.example", "9000-x.example:443", NULL, 200, false);
	origin_is(&service, "http://127.0.0.1:9000.evil.example", "127.0.0.1:9000", NULL, 403, false);
	serve(&service, &mem, "OPTIONS", "/files/stat", NULL, preflight);
	is_int(status_of(&mem), 405, "without the setting a preflight is 405");
	abx_strbuf_release(&mem.out);
	free_service(&service);

	service = make_service(ABX_GROUP_FILE_OPS, listed);
	origin_is(&service, "https://app.example", "127.0.0.1:9000", NULL, 200, true);
	origin_is(&service, "http://localhost:3000", "127.0.0.1:9000", NULL, 200, true);
	origin_is(&service, "https://app.example.evil", "127.0.0.1:9000", NULL, 403, false);
	serve(&service, &mem, "OPTIONS", "/files/stat", NULL, preflight);
	is_int(status_of(&mem), 204, "a listed origin's preflight is 204");
	ok(has_header(&mem, "Access-Control-Allow-Origin: https://app.example\r\n"), "with its origin");
	abx_strbuf_release(&mem.out);
	free_service(&service);

	service = make_service(ABX_GROUP_FILE_OPS, with_token);
	serve(&service, &mem, "GET", "/files/stat?path=x", NULL, (const char *[]){ "HTTP_ORIGIN=http://evil.example", NULL });
	is_int(status_of(&mem), 401, "with a token, an origin alone decides nothing");
	abx_strbuf_release(&mem.out);
	free_service(&service);
}


int main(void)
{
	abx_log_init("t", ABX_LOG_ERROR, false);
	test_errors();
	test_late_failures();
	test_standard_headers();
	test_credentials();
	test_disabled();
	test_body_limit();
	test_origins();
	return done_testing();
}
