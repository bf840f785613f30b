#include "handlers/file_ops/guard.h"

#include <string.h>

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

/* Whether the tree is, or holds, one of the roots. Both paths are as the kernel spells them. */
static bool holds_root(const struct abx_roots *roots, const struct abx_path *path)
{
	size_t len = strlen(path->resolved);

	for (size_t i = 0; i < roots->n; i++) {
		const char *root = roots->roots[i].path;

		if (strncmp(root, path->resolved, len) == 0 && (!root[len] || root[len] == '/'))
			return true;
	}
	return false;
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
	if (path->parent_fd < 0 || holds_root(req->roots, path) || holds_root(&req->service->roots, path))
		return abx_err_set(err, ABX_E_PATH, "Path is not allowed: it is the base directory, or holds it: %s",
				   path->resolved);
	return abx_tree_check_denied(path, req->roots, err) < 0 ? guard_denied(req, err) : 0;
}
