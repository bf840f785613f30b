#include "common/tree.h"
#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/guard.h"
#include "handlers/file_ops/handlers.h"

int h_files_delete(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_path struct abx_path path = ABX_PATH_INIT;

	if (abx_path_resolve(req->roots, abx_arg_string(req, "path"), ABX_PATH_NOFOLLOW, &path, err) < 0 ||
	    guard_removal(req, &path, err) < 0)
		return -1;
	if (abx_tree_delete(&path, req->roots, err) < 0)
		return guard_denied(req, err);
	abx_jw_object(&jw);
	answer_path(&jw, "path", path.resolved);
	abx_jw_kbool(&jw, "deleted", true);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
