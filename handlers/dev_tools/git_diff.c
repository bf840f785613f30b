#include <stdio.h>
#include <string.h>

#include "handlers/dev_tools/git_parse.h"
#include "handlers/dev_tools/git_repo.h"
#include "handlers/dev_tools/handlers.h"

#define NUMBERS_MAX  ((size_t)64 << 20)
#define EXCLUDES_MAX 1024

struct stats {
	int64_t files, insertions, deletions;
};

/* Add up the numbers. A file with a conflict comes twice: as such, and as it is in the working tree. */
static int add_up(const struct abx_spawn_result *numbers, struct stats *stats, struct abx_err *err)
{
	struct git_text rest = { numbers->out.buf, numbers->out.len }, before = { "", 0 };
	struct git_numstat file;
	int more;

	for (; (more = git_numstat_next(&rest, &file)) > 0; before = file.path) {
		stats->files += file.path.len != before.len || memcmp(file.path.data, before.data, before.len) != 0;
		stats->insertions += file.insertions > 0 ? file.insertions : 0;
		stats->deletions += file.deletions > 0 ? file.deletions : 0;
	}
	if (more < 0)
		return abx_err_set(err, ABX_E_GIT,
				   "git diff printed what cannot be understood, or more than %zu bytes of numbers",
				   NUMBERS_MAX);
	return 0;
}

/*
 * How many files a whole diff is of. git has numbers also of a binary file that was touched and has not changed,
 * since it is not to write what it found into the index; the diff does not show such a file. Lines of files begin
 * with a sign, so what looks like a header is one. /
 */
static int64_t count_files(const struct abx_strbuf *diff)
{
	static const char *const headers[] = { "diff --git ", "diff --cc ", "* Unmerged path " };
	int64_t n = 0;

	for (const char *line = diff->buf, *end = line + diff->len; line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		for (size_t i = 0; i < ABX_N(headers); i++)
			n += strncmp(line, headers[i], strlen(headers[i])) == 0;
		line = newline ? newline + 1 : end;
	}
	return n;
}

/* The diff. What was cut ends behind a whole line, and then a further one says so. */
static void write_diff(struct abx_json_writer *jw, const struct abx_spawn_result *diff, size_t max)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX(max + 128);
	const char *newline = memrchr(diff->out.buf, '\n', diff->out.len);

	abx_jw_key(jw, "diff");
	if (!diff->truncated) {
		abx_jw_stringn(jw, diff->out.buf, diff->out.len);
		return;
	}
	abx_strbuf_add(&text, diff->out.buf, newline ? (size_t)(newline - diff->out.buf) + 1 : 0);
	abx_strbuf_addf(&text, "... diff truncated: it is longer than %zu bytes ...\n", max);
	abx_jw_stringn(jw, text.buf, text.len);
	jw->out->failed |= text.failed;
}

static int answer(struct abx_request *req, const struct abx_spawn_result *numbers, const struct abx_spawn_result *diff,
		  size_t max, struct abx_err *err)
{
	/* Every byte of the diff may have to be escaped. */
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX(max * 6 + 4096);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	struct stats stats = { 0 };

	if (add_up(numbers, &stats, err) < 0)
		return -1;
	abx_jw_object(&jw);
	write_diff(&jw, diff, max);
	abx_jw_key(&jw, "stats");
	abx_jw_object(&jw);
	abx_jw_kint(&jw, "files_changed", diff->truncated ? stats.files : count_files(&diff->out));
	abx_jw_kint(&jw, "insertions", stats.insertions);
	abx_jw_kint(&jw, "deletions", stats.deletions);
	abx_jw_object_end(&jw);
	if (diff->truncated)
		abx_jw_kbool(&jw, "truncated", true);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}

/* Pathspecs that leave files out, NULL-terminated. */
struct excludes {
	char **at;
	size_t n;
};

static void excludes_release(struct excludes *excludes)
{
	for (size_t i = 0; i < excludes->n; i++)
		free(excludes->at[i]);
	free(excludes->at);
}

static int exclude(const struct git_text *name, struct excludes *excludes, struct abx_err *err)
{
	char **grown = realloc(excludes->at, (excludes->n + 1) * sizeof(*grown));

	if (!grown)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	excludes->at = grown;
	if (excludes->n == EXCLUDES_MAX)
		return abx_err_set(err, ABX_E_PATH, "More than %d changed files are denied", EXCLUDES_MAX);
	if (asprintf(&grown[excludes->n], ":(top,literal,exclude)%.*s", (int)name->len, name->data) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	excludes->n++;
	return 0;
}

/* Of changed files that the policy denies nothing is shown. */
static int exclude_hidden(const struct abx_request *req, const struct git_repo *repo,
			  const struct abx_spawn_result *numbers, struct excludes *excludes, struct abx_err *err)
{
	struct git_text rest = { numbers->out.buf, numbers->out.len };
	struct git_numstat file;

	while (git_numstat_next(&rest, &file) > 0) {
		if (git_repo_hides(req, repo, &file.path) && exclude(&file.path, excludes, err) < 0)
			return -1;
		if (git_repo_hides(req, repo, &file.original) && exclude(&file.original, excludes, err) < 0)
			return -1;
	}
	return 0;
}

static int run_diff(struct abx_request *req, const struct git_repo *repo, const char *const *format,
		    const struct excludes *excludes, size_t max_output, struct abx_spawn_result *result,
		    struct abx_err *err)
{
	static const char *const always[] = {
		"diff",       "--no-ext-diff",     "--no-textconv",
		"--no-color", "--submodule=short", "--ignore-submodules=dirty",
	};
	abx_auto_free const char **args = calloc(ABX_N(always) + excludes->n + 8, sizeof(*args));
	const char *file = abx_arg_string(req, "file");
	size_t n = ABX_N(always);

	if (!args)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	memcpy(args, always, sizeof(always));
	for (; *format; format++)
		args[n++] = *format;
	if (abx_arg_bool(req, "staged"))
		args[n++] = "--staged";
	args[n++] = "--";
	args[n++] = file ? file : ":(top)";
	for (size_t i = 0; i < excludes->n; i++)
		args[n++] = excludes->at[i];
	abx_spawn_result_release(result);
	return git_run(req, repo, args, max_output, result, err);
}

int h_git_diff(struct abx_request *req, struct abx_err *err)
{
	static const char *const as_numbers[] = { "--numstat", "-z", NULL }, *const as_patch[] = { "--patch", NULL };
	abx_auto_result struct abx_spawn_result numbers = ABX_SPAWN_RESULT_INIT, diff = ABX_SPAWN_RESULT_INIT;
	__attribute__((cleanup(excludes_release))) struct excludes excludes = { 0 };
	git_auto_repo struct git_repo repo = GIT_REPO_INIT;
	size_t max = (size_t)req->rule->limits.max_output_bytes;

	/* Two runs, because a combined diff of a conflict comes before the numbers, or in their place. */
	if (git_repo_open(req, abx_arg_string(req, "path"), &repo, err) < 0 ||
	    run_diff(req, &repo, as_numbers, &excludes, NUMBERS_MAX, &numbers, err) < 0 ||
	    exclude_hidden(req, &repo, &numbers, &excludes, err) < 0)
		return -1;
	if (excludes.n > 0 && run_diff(req, &repo, as_numbers, &excludes, NUMBERS_MAX, &numbers, err) < 0)
		return -1;
	if (run_diff(req, &repo, as_patch, &excludes, max, &diff, err) < 0)
		return -1;
	return answer(req, &numbers, &diff, max, err);
}
