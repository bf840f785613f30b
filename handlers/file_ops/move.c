#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/tree.h"
#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/guard.h"
#include "handlers/file_ops/handlers.h"

static bool same_file(const struct abx_path *a, const struct abx_path *b)
{
	return a->fd >= 0 && b->fd >= 0 && a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
}

static bool is_below(const struct abx_path *tree, const struct abx_path *path)
{
	size_t len = strlen(tree->resolved);

	return strncmp(path->resolved, tree->resolved, len) == 0 && path->resolved[len] == '/';
}

static int into_itself(const struct abx_path *to, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_VALUE, "destination: a directory cannot be moved into itself: %s", to->resolved);
}

static int exists(const struct abx_path *to, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_FILE_EXISTS, "destination: File exists: %s", to->resolved);
}

/* What is wrong with the destination, before its parents are made. */
static int check_destination(const struct abx_path *from, const struct abx_path *to, struct abx_err *err)
{
	bool from_dir = S_ISDIR(from->st.st_mode);

	if (from_dir && is_below(from, to))
		return into_itself(to, err);
	if (to->fd >= 0 && !same_file(from, to) && (S_ISDIR(to->st.st_mode) || from_dir))
		return exists(to, err);
	return 0;
}

/* Rename; a directory only ever to where nothing is. Returns 0 or an errno. */
static int rename_path(const struct abx_path *from, const struct abx_path *to)
{
	if (S_ISDIR(from->st.st_mode)) {
		if (renameat2(from->parent_fd, from->name, to->parent_fd, to->name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EINVAL && errno != ENOSYS)
			return errno;
	}
	return renameat(from->parent_fd, from->name, to->parent_fd, to->name) == 0 ? 0 : errno;
}

static int move(const struct abx_request *req, const struct abx_path *from, const struct abx_path *to, struct abx_err *err)
{
	int why;

	/* Two names of one file: a rename would leave both. */
	if (same_file(from, to)) {
		if (unlinkat(from->parent_fd, from->name, 0) < 0 && errno != ENOENT)
			return abx_err_errno(err, errno, "source: %s", from->resolved);
		return 0;
	}
	why = rename_path(from, to);
	switch (why) {
	case 0:
		return 0;
	case EXDEV:
		return abx_tree_transfer(from, to, req->roots, err);
	case EINVAL:
		return into_itself(to, err);
	case EEXIST:
	case ENOTEMPTY:
	case EISDIR:
	case ENOTDIR:
		return exists(to, err);
	case ENOENT:
		return abx_err_set(err, ABX_E_NO_FILE, "source: No such file or directory: %s", from->resolved);
	default:
		return abx_err_errno(err, why, "%s", from->resolved);
	}
}

static int resolve(struct abx_request *req, const char *name, unsigned flags, struct abx_path *ret_path, struct abx_err *err)
{
	if (abx_path_resolve(req->roots, abx_arg_string(req, name), flags, ret_path, err) < 0)
		return abx_err_prefix(err, "%s", name);
	return 0;
}

int h_files_move(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_path struct abx_path from = ABX_PATH_INIT, to = ABX_PATH_INIT;

	if (resolve(req, "source", ABX_PATH_NOFOLLOW, &from, err) < 0)
		return -1;
	if (guard_removal(req, &from, err) < 0)
		return abx_err_prefix(err, "source");
	if (resolve(req, "destination", ABX_PATH_MISSING, &to, err) < 0 || check_destination(&from, &to, err) < 0)
		return -1;
	if (to.parent_fd < 0) {
		abx_path_release(&to);
		if (resolve(req, "destination", ABX_PATH_PARENTS, &to, err) < 0 || check_destination(&from, &to, err) < 0)
			return -1;
	}
	if (strcmp(from.resolved, to.resolved) != 0 && move(req, &from, &to, err) < 0)
		return guard_denied(req, err);
	abx_jw_object(&jw);
	answer_path(&jw, "source", from.resolved);
	answer_path(&jw, "destination", to.resolved);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
