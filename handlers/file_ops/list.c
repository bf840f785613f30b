#include "common/tree.h"
#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/guard.h"
#include "handlers/file_ops/handlers.h"

static int list_entry(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err)
{
	struct answer_stream *stream = ctx;
	struct abx_json_writer *jw = &stream->jw;

	abx_jw_object(jw);
	answer_path(jw, "name", entry->relative);
	abx_jw_kstring(jw, "type", answer_list_type(entry->is_dir));
	abx_jw_kint(jw, "size", entry->st.st_size);
	answer_time(jw, "modified", entry->st.st_mtim);
	abx_jw_object_end(jw);
	return answer_stream_flush(stream, err);
}

int h_files_list(struct abx_request *req, struct abx_err *err)
{
	abx_auto_path struct abx_path top = ABX_PATH_INIT;
	auto_answer_stream struct answer_stream stream;
	struct abx_tree tree = {
		.top = &top,
		.roots = req->roots,
		.max_depth = abx_arg_bool(req, "recursive") ? (unsigned)req->rule->limits.max_depth : 1,
		.flags = ABX_TREE_STAT,
		.visit = list_entry,
		.ctx = &stream,
	};

	answer_stream_init(&stream, req);
	if (guard_directory(req, "path", &top, err) < 0)
		return -1;
	abx_jw_object(&stream.jw);
	abx_jw_key(&stream.jw, "entries");
	abx_jw_array(&stream.jw);
	if (abx_tree_walk(&tree, err) < 0)
		return -1;
	abx_jw_array_end(&stream.jw);
	abx_jw_object_end(&stream.jw);
	return answer_stream_end(&stream, err);
}
