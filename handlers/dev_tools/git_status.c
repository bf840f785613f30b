#include "common/base64.h"
#include "common/utf8.h"
#include "handlers/dev_tools/git_parse.h"
#include "handlers/dev_tools/git_repo.h"
#include "handlers/dev_tools/handlers.h"

#define OUTPUT_MAX ((size_t)64 << 20)

/* A name, and its bytes beside it where they are no text. */
static void write_name(struct abx_json_writer *jw, const char *key, const struct git_text *name)
{
	abx_auto_strbuf struct abx_strbuf base64_key = ABX_STRBUF_INIT;
	abx_auto_free char *base64 = NULL;

	abx_jw_key(jw, key);
	abx_jw_stringn(jw, name->data, name->len);
	if (abx_utf8_is_valid(name->data, name->len))
		return;
	base64 = malloc(ABX_BASE64_ENCODED(name->len));
	if (!base64) {
		jw->out->failed = true;
		return;
	}
	abx_strbuf_addf(&base64_key, "%s_base64", key);
	abx_jw_key(jw, base64_key.buf);
	abx_jw_stringn(jw, base64, abx_base64_encode(name->data, name->len, base64));
}

static void write_entry(struct abx_json_writer *jw, const struct git_entry *entry)
{
	abx_jw_object(jw);
	write_name(jw, "path", &entry->path);
	abx_jw_kstring(jw, "status", git_state_name(entry->state));
	if (entry->original.data)
		write_name(jw, "original_path", &entry->original);
	abx_jw_object_end(jw);
}

/* The records of git as {"branch", "clean", "files"}. `files` is written first, since `clean` follows from it. */
static int write_status(const struct abx_spawn_result *result, struct abx_json_writer *jw, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf files = ABX_STRBUF_INIT_MAX(jw->out->max);
	struct abx_json_writer list = ABX_JSON_WRITER_INIT(&files);
	struct git_text rest = { result->out.buf, result->out.len }, branch = { "HEAD", 4 };
	struct git_entry entry;
	enum git_record record;
	bool clean = true;

	abx_jw_array(&list);
	while ((record = git_status_next(&rest, &entry)) == GIT_RECORD_ENTRY || record == GIT_RECORD_BRANCH) {
		if (record == GIT_RECORD_BRANCH) {
			branch = entry.path;
			continue;
		}
		clean = false;
		write_entry(&list, &entry);
	}
	abx_jw_array_end(&list);
	if (record == GIT_RECORD_BROKEN && !result->truncated)
		return abx_err_set(err, ABX_E_GIT, "git status printed what cannot be understood");
	abx_jw_object(jw);
	abx_jw_key(jw, "branch");
	abx_jw_stringn(jw, branch.data, branch.len);
	abx_jw_kbool(jw, "clean", clean);
	abx_jw_key(jw, "files");
	abx_strbuf_add(jw->out, files.buf, files.len);
	jw->comma = true;
	if (result->truncated)
		abx_jw_kbool(jw, "truncated", true);
	abx_jw_object_end(jw);
	jw->out->failed |= files.failed;
	return 0;
}

int h_git_status(struct abx_request *req, struct abx_err *err)
{
	static const char *const args[] = {
		"status", "--porcelain=v2", "--branch", "--null", "--untracked-files=all", "--ignore-submodules=dirty", NULL,
	};
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)1 << 30);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	git_auto_repo struct git_repo repo = GIT_REPO_INIT;

	if (git_repo_open(req, abx_arg_string(req, "path"), &repo, err) < 0 || git_run(req, &repo, args, OUTPUT_MAX, &result, err) < 0 ||
	    write_status(&result, &jw, err) < 0)
		return -1;
	return abx_response_json(&req->res, 200, &body, err);
}
