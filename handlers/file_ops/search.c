#include "common/clock.h"
#include "common/glob.h"
#include "common/tree.h"
#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/guard.h"
#include "handlers/file_ops/handlers.h"

/* What the caller may ask for when no policy says otherwise. */
#define DEPTH_MAX 32

struct search {
	struct answer_stream stream;
	const char *pattern;
	int64_t wanted, found, deadline_ms;
	bool timed_out;
};

static int consider(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err)
{
	struct search *search = ctx;
	struct abx_json_writer *jw = &search->stream.jw;

	if (abx_clock_ms() >= search->deadline_ms) {
		search->timed_out = true;
		return 1;
	}
	if (entry->is_dir || !abx_glob_match(search->pattern, entry->name))
		return 0;
	search->found++;
	abx_jw_object(jw);
	answer_path(jw, "name", entry->name);
	answer_path(jw, "path", entry->path);
	abx_jw_object_end(jw);
	if (answer_stream_flush(&search->stream, err) < 0)
		return -1;
	return search->found == search->wanted;
}

static int take_limits(const struct abx_request *req, struct abx_tree *tree, struct search *search, struct abx_err *err)
{
	int64_t depth = abx_arg_int(req, "max_depth"), most = req->rule->limits.max_depth;

	search->wanted = abx_arg_int(req, "max_results");
	if (search->wanted < 1)
		return abx_err_set(err, ABX_E_VALUE, "max_results: must be at least 1");
	if (depth < 1)
		return abx_err_set(err, ABX_E_VALUE, "max_depth: must be at least 1");
	/* The built-in limit is what a caller gets who does not ask; one of a policy's own holds for all. */
	if (!(req->rule->given & ABX_KEY_MAX_DEPTH))
		most = DEPTH_MAX;
	tree->max_depth = (unsigned)(depth < most ? depth : most);
	return 0;
}

static void search_release(struct search *search)
{
	answer_stream_release(&search->stream);
}

int h_files_search(struct abx_request *req, struct abx_err *err)
{
	abx_auto_path struct abx_path top = ABX_PATH_INIT;
	__attribute__((cleanup(search_release))) struct search search = {
		.pattern = abx_arg_string(req, "pattern"),
		.deadline_ms = abx_clock_ms() + req->rule->limits.timeout_seconds * 1000,
	};
	struct abx_tree tree = { .top = &top, .roots = req->roots, .visit = consider, .ctx = &search };

	answer_stream_init(&search.stream, req);
	if (take_limits(req, &tree, &search, err) < 0 || guard_directory(req, "path", &top, err) < 0)
		return -1;
	abx_jw_object(&search.stream.jw);
	abx_jw_key(&search.stream.jw, "results");
	abx_jw_array(&search.stream.jw);
	if (abx_tree_walk(&tree, err) < 0)
		return -1;
	abx_jw_array_end(&search.stream.jw);
	abx_jw_kbool(&search.stream.jw, "timed_out", search.timed_out);
	abx_jw_object_end(&search.stream.jw);
	return answer_stream_end(&search.stream, err);
}
