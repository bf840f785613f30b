#include <stdio.h>
#include <string.h>

#include "common/request.h"
#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/handlers.h"

static const char *type_name(mode_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	if (S_ISLNK(mode))
		return "symlink";
	return "unknown";
}

static void write_stat(struct abx_json_writer *jw, const struct abx_path *path)
{
	char permissions[4];

	abx_jw_kstring(jw, "type", type_name(path->st.st_mode));
	abx_jw_kint(jw, "size", path->st.st_size);
	snprintf(permissions, sizeof(permissions), "%03o", path->st.st_mode & 0777u);
	abx_jw_kstring(jw, "permissions", permissions);
	answer_time(jw, "modified", path->st.st_mtim);
	answer_time(jw, "accessed", path->st.st_atim);
	/* As Python's st_ctime: Linux has no time of birth that every file system keeps. */
	answer_time(jw, "created", path->st.st_ctim);
	abx_jw_kbool(jw, "exists", true);
}

static void write_missing(struct abx_json_writer *jw)
{
	static const char *const empty[] = { "permissions", "modified", "accessed", "created" };

	abx_jw_kstring(jw, "type", "unknown");
	abx_jw_kint(jw, "size", 0);
	for (size_t i = 0; i < ABX_N(empty); i++)
		abx_jw_kstring(jw, empty[i], "");
	abx_jw_kbool(jw, "exists", false);
}

int h_files_stat(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_path struct abx_path path = ABX_PATH_INIT;

	if (abx_path_resolve(req->roots, abx_arg_string(req, "path"), ABX_PATH_NOFOLLOW | ABX_PATH_MISSING,
			     &path, err) < 0)
		return -1;
	abx_jw_object(&jw);
	answer_path(&jw, "name", path.name ? path.name : strrchr(path.resolved, '/') + 1);
	answer_path(&jw, "path", path.resolved);
	if (path.fd >= 0)
		write_stat(&jw, &path);
	else
		write_missing(&jw);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
