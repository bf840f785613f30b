#include "handlers/file_ops/guard.h"

#include "common/tree.h"

int guard_directory(struct abx_request *req, const char *name, struct abx_path *ret_path, struct abx_err *err)
{
	const char *path = abx_arg_string(req, name);

	if (abx_path_resolve(req->roots, path, 0, ret_path, err) < 0)
		return -1;
	if (!S_ISDIR(ret_path->st.st_mode))
		return abx_err_set(err, ABX_E_NO_FILE, "Not a directory: %s", path);
	return 0;
}

int guard_denied(const struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf rule = ABX_STRBUF_INIT;

	if (err->kind != ABX_E_PATH || err->rule[0])
		return -1;
	abx_strbuf_addf(&rule, "policy:endpoints.%s", req->endpoint->id);
	return abx_err_rule(err, ABX_E_PATH, rule.buf, "%s", err->message);
}

int guard_removal(const struct abx_request *req, const struct abx_path *path, struct abx_err *err)
{
	if (abx_path_check_removal(path, req->roots, err) < 0 || abx_path_check_removal(path, &req->service->roots, err) < 0)
		return -1;
	return abx_tree_check_denied(path, req->roots, err) < 0 ? guard_denied(req, err) : 0;
}
