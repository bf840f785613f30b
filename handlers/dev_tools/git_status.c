#include <string.h>

#include "common/base64.h"
#include "common/utf8.h"
#include "handlers/dev_tools/git_modules.h"
#include "handlers/dev_tools/git_parse.h"
#include "handlers/dev_tools/git_repo.h"
#include "handlers/dev_tools/handlers.h"

#define OUTPUT_MAX ((size_t)64 << 20)
#define BODY_MAX   ((size_t)1 << 30)

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

/*
 * What the policy lets be told of an entry: of a rename one name may be hidden, which leaves a file that came or
 * went.
 */
static void write_visible(const struct abx_request *req, const struct git_repo *repo, struct git_entry entry,
			  struct abx_json_writer *jw)
{
	if (git_repo_hides(req, repo, &entry.original))
		entry = (struct git_entry){ .state = GIT_ADDED, .path = entry.path };
	if (git_repo_hides(req, repo, &entry.path)) {
		if (entry.state != GIT_RENAMED)
			return;
		entry = (struct git_entry){ .state = GIT_DELETED, .path = entry.original };
	}
	write_entry(jw, &entry);
}

/* A submodule that git has told of is not told of twice. */
static void forget_module(const struct git_entry *entry, struct git_modules *modules)
{
	for (size_t i = 0; i < modules->n; i++) {
		struct git_module *module = &modules->at[i];

		if (strlen(module->path) == entry->path.len &&
		    memcmp(module->path, entry->path.data, entry->path.len) == 0)
			module->dirty = false;
	}
}

/* What git has printed, and submodules with changes, as a list. Sets *ret_branch to a piece of the output. */
static int write_files(const struct abx_request *req, const struct git_repo *repo,
		       const struct abx_spawn_result *result, struct git_modules *modules, struct abx_json_writer *jw,
		       struct git_text *ret_branch, struct abx_err *err)
{
	struct git_text rest = { result->out.buf, result->out.len };
	struct git_entry entry;
	enum git_record record;

	abx_jw_array(jw);
	while ((record = git_status_next(&rest, &entry)) == GIT_RECORD_ENTRY || record == GIT_RECORD_BRANCH) {
		if (record == GIT_RECORD_BRANCH) {
			*ret_branch = entry.path;
			continue;
		}
		forget_module(&entry, modules);
		write_visible(req, repo, entry, jw);
	}
	if (record == GIT_RECORD_BROKEN && !result->truncated)
		return abx_err_set(err, ABX_E_GIT, "git status printed what cannot be understood");
	for (size_t i = 0; i < modules->n; i++) {
		entry = (struct git_entry){ .state = GIT_MODIFIED,
					    .path = { modules->at[i].path, strlen(modules->at[i].path) } };
		if (modules->at[i].dirty)
			write_visible(req, repo, entry, jw);
	}
	abx_jw_array_end(jw);
	return 0;
}

int h_git_status(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX(BODY_MAX), files = ABX_STRBUF_INIT_MAX(BODY_MAX);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body), list = ABX_JSON_WRITER_INIT(&files);
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	git_auto_modules struct git_modules modules = GIT_MODULES_INIT;
	git_auto_repo struct git_repo repo = GIT_REPO_INIT;
	struct git_text branch = { "HEAD", 4 };

	if (git_repo_open(req, abx_arg_string(req, "path"), &repo, err) < 0 ||
	    git_run(req, &repo, git_status_args, OUTPUT_MAX, &result, err) < 0 ||
	    git_modules_look(req, &repo, &modules, err) < 0 ||
	    write_files(req, &repo, &result, &modules, &list, &branch, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_key(&jw, "branch");
	abx_jw_stringn(&jw, branch.data, branch.len);
	/* The list comes last, and says whether it is empty. */
	abx_jw_kbool(&jw, "clean", strcmp(files.buf, "[]") == 0);
	if (result.truncated)
		abx_jw_kbool(&jw, "truncated", true);
	abx_jw_key(&jw, "files");
	abx_strbuf_add(&body, files.buf, files.len);
	abx_jw_object_end(&jw);
	body.failed |= files.failed;
	return abx_response_json(&req->res, 200, &body, err);
}
