#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/command.h"
#include "handlers/dev_tools/handlers.h"
#include "policy/evaluate.h"

/* One argument, its NUL included, has room in so many bytes (MAX_ARG_STRLEN, execve(2)). */
#define ARGUMENT_MAX ((size_t)128 << 10)

static const char security_note[] = "Security relies on container isolation, not application-level restrictions";

struct language {
	const char *name, *program, *option, *package;
	/*
	 * Given with the option in place of code that is too long for an argument: reads the code from standard input
	 * and runs it as if it had been given.
	 */
	const char *loader;
	/* Code that begins with a dash would be taken for one more option; a blank before it changes nothing. */
	bool takes_options;
};

static const struct language languages[] = {
	{
		.name = "python",
		.program = "python3",
		.option = "-c",
		.package = "python3",
		.loader = "c = open(0, encoding='utf-8', newline='', closefd=False).read()\n"
			  "c = compile(c, '<string>', 'exec', dont_inherit=True)\n"
			  "exec(globals().pop('c'))\n",
	},
	{
		.name = "node",
		.program = "node",
		.option = "-e",
		.package = "nodejs",
		/* Called by another name, eval works in the global scope. */
		.loader = "(0, eval)(require('fs').readFileSync(0, 'utf8'))",
		.takes_options = true,
	},
	{
		.name = "bash",
		.program = "bash",
		.option = "-c",
		.package = "bash",
		.loader = "eval \"$(cat)\"",
		.takes_options = true,
	},
};

static const struct language *find_language(const char *name, struct abx_err *err)
{
	for (size_t i = 0; i < ABX_N(languages); i++)
		if (strcmp(languages[i].name, name) == 0)
			return &languages[i];
	abx_err_set(err, ABX_E_VALUE, "language: must be python, node or bash, not '%s'", name);
	return NULL;
}

static char *make_argument(const struct language *language, const char *code, size_t len)
{
	char *text = NULL;

	if (asprintf(&text, "%s%.*s", language->takes_options && len > 0 && *code == '-' ? " " : "", (int)len, code) <
	    0)
		return NULL;
	return text;
}

/* Run `code` as an argument, or through the loader. */
static int run_as(struct abx_request *req, const struct language *language, const char *code, size_t len,
		  bool as_argument, struct abx_spawn_result *result, struct abx_err *err)
{
	abx_auto_free char *program = strdup(language->program), *option = strdup(language->option);
	abx_auto_free char *text = as_argument ? make_argument(language, code, len) : strdup(language->loader);
	char *argv[] = { program, option, text, NULL };

	if (!program || !option || !text)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (as_argument)
		return abx_command_run(req, argv, NULL, result, err);
	return abx_command_run_input(req, argv, NULL, code, len, result, err);
}

static int run_code(struct abx_request *req, const struct language *language, const char *code, size_t len,
		    struct abx_spawn_result *result, struct abx_err *err)
{
	if (len < ARGUMENT_MAX) {
		if (run_as(req, language, code, len, true, result, err) == 0)
			return 0;
		/* The environment may leave less room than that. */
		if (err->kind != ABX_E_ERRNO || err->os_errno != E2BIG)
			return -1;
	}
	return run_as(req, language, code, len, false, result, err);
}

/* A run that is too long is the caller's own limit. A runtime that is not installed is in a package. */
static int explain(const struct language *language, struct abx_err *err)
{
	if (err->kind == ABX_E_TIMEOUT)
		err->kind = ABX_E_DEADLINE;
	if (err->kind != ABX_E_ERRNO || err->os_errno != ENOENT)
		return -1;
	abx_err_errno(err, ENOENT,
		      "The runtime of %s is not installed: there is no '%s' on PATH. Install the package %s",
		      language->name, language->program, language->package);
	return -1;
}

int h_code_run(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)1 << 30);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	const struct language *language = find_language(abx_arg_string(req, "language"), err);
	const char *code = "";
	size_t len = 0;
	int64_t started_us;

	if (!language || abx_rule_allows_language(req->rule, language->name, err) < 0)
		return -1;
	abx_arg_data(req, "code", &code, &len);
	if (memchr(code, '\0', len))
		return abx_err_set(err, ABX_E_VALUE, "code: must not hold a NUL character");
	started_us = abx_clock_us();
	if (run_code(req, language, code, len, &result, err) < 0)
		return explain(language, err);
	double ms = (double)(abx_clock_us() - started_us) / 1000;

	abx_jw_object(&jw);
	abx_command_write_members(&jw, &result);
	abx_jw_kstring(&jw, "language", language->name);
	abx_jw_krounded(&jw, "execution_time_ms", ms, 2);
	abx_jw_kstring(&jw, "_security_note", security_note);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
