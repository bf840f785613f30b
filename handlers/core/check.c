#include <string.h>

#include "handlers/core/core.h"

/* The answer to /capabilities/check: not allowed when `code` is set. */
static int answer(struct abx_request *req, const char *code, const char *reason, const char *rule, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);

	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "endpoint", abx_arg_string(req, "endpoint"));
	abx_jw_kbool(&jw, "allowed", code == NULL);
	abx_jw_kstring(&jw, "code", code);
	abx_jw_kstring(&jw, "reason", reason);
	if (rule && *rule)
		abx_jw_kstring(&jw, "rule", rule);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}

/* Only where the path lies is asked, not whether something is there. */
static int check_path(struct abx_request *req, const char *given, struct abx_err *err)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_err refused = ABX_ERR_INIT;

	if (abx_path_resolve(req->roots, given, ABX_PATH_MISSING, &path, &refused) < 0 &&
	    refused.kind == ABX_E_PATH)
		return answer(req, abx_error_code(refused.kind), refused.message, refused.rule, err);
	return answer(req, NULL, NULL, NULL, err);
}

int h_capabilities_check(struct abx_request *req, struct abx_err *err)
{
	const struct abx_endpoint *endpoint = abx_endpoint_find(abx_arg_string(req, "endpoint"));
	abx_auto_strbuf struct abx_strbuf why = ABX_STRBUF_INIT;
	struct core_verdict verdict;
	const char *path;

	if (!endpoint) {
		abx_strbuf_addf(&why, "There is no endpoint '%s'", abx_arg_string(req, "endpoint"));
		return answer(req, "unknown_endpoint", why.buf, NULL, err);
	}
	core_judge(req, endpoint, &verdict);
	if (!verdict.enabled) {
		abx_policy_explain_disabled(endpoint, verdict.rule, &why);
		return answer(req, verdict.code, why.buf, verdict.rule, err);
	}
	if (!verdict.allowed) {
		abx_strbuf_addf(&why, "Endpoint '%s' needs a scope that '%s' does not have", endpoint->id,
				req->identity->id);
		return answer(req, verdict.code, why.buf, verdict.rule, err);
	}
	path = abx_arg_string(req, "path");
	return path && *path ? check_path(req, path, err) : answer(req, NULL, NULL, NULL, err);
}
