#include <errno.h>
#include <sys/stat.h>

#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/handlers.h"

/* How often the path is looked at again because somebody else made or removed something there. */
#define TRIES 5

/* 0: there is a directory; 1: something was there, look again; -1 */
static int make(struct abx_request *req, const char *name, struct abx_path *path, struct abx_err *err)
{
	if (abx_path_resolve(req->roots, name, ABX_PATH_PARENTS, path, err) < 0)
		return -1;
	if (path->fd >= 0 && !S_ISDIR(path->st.st_mode))
		return abx_err_errno(err, EEXIST, "%s", path->resolved);
	if (path->fd >= 0 || (path->parent_fd >= 0 && mkdirat(path->parent_fd, path->name, 0777) == 0))
		return 0;
	if (path->parent_fd >= 0 && errno != EEXIST && errno != ENOENT)
		return abx_err_errno(err, errno, "%s", path->resolved);
	return 1;
}

int h_files_mkdir(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	const char *name = abx_arg_string(req, "path");
	int result = make(req, name, &path, err);

	for (int i = 0; i < TRIES && result > 0; i++) {
		abx_path_release(&path);
		result = make(req, name, &path, err);
	}
	if (result > 0)
		return abx_err_set(err, ABX_E_NO_FILE, "No such file or directory: %s", name);
	if (result < 0)
		return -1;
	abx_jw_object(&jw);
	answer_path(&jw, "path", path.resolved);
	abx_jw_kbool(&jw, "created", true);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
