/*
 * Which rule decides on an endpoint, by the layers that speak: written by hand from sections 6 and 8 of the contract. Weakest first: built-in default, preset,
 * ABX_SERVER_ENABLED_GROUPS, the policy's groups, the policy's endpoints.
 */
#include "policy/document.h"

#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

#define ON  true
#define OFF false

struct row {
	const char *preset; /* "": none is named */
	const char *env;    /* ABX_SERVER_ENABLED_GROUPS, or "" */
	const char *groups; /* the policy's groups, or "" */
	const char *self;   /* endpoints.<id>.enabled: "true", "false", or "" */
	const char *id;
	bool enabled;
	const char *rule;
};

static const struct row rows[] = {
	/* ---- nothing speaks but the defaults: five groups are on, three are opt-in, core is always on */
	{ "", "", "", "", "health", ON, "core:always-on" },
	{ "", "", "", "", "capabilities", ON, "core:always-on" },
	{ "", "", "", "", "capabilities_check", ON, "core:always-on" },
	{ "", "", "", "", "commands_list", ON, "default:on:commands" },
	{ "", "", "", "", "commands_run", ON, "default:on:commands" },
	{ "", "", "", "", "upload", ON, "default:on:file_ops" },
	{ "", "", "", "", "download", ON, "default:on:file_ops" },
	{ "", "", "", "", "files_list", ON, "default:on:file_ops" },
	{ "", "", "", "", "files_stat", ON, "default:on:file_ops" },
	{ "", "", "", "", "files_mkdir", ON, "default:on:file_ops" },
	{ "", "", "", "", "files_delete", ON, "default:on:file_ops" },
	{ "", "", "", "", "files_move", ON, "default:on:file_ops" },
	{ "", "", "", "", "files_search", ON, "default:on:file_ops" },
	{ "", "", "", "", "upload_stream", ON, "default:on:file_ops" },
	{ "", "", "", "", "download_stream", ON, "default:on:file_ops" },
	{ "", "", "", "", "files_archive", ON, "default:on:file_ops" },
	{ "", "", "", "", "files_watch", ON, "default:on:file_ops" },
	{ "", "", "", "", "shell", ON, "default:on:process" },
	{ "", "", "", "", "shell_stream", ON, "default:on:process" },
	{ "", "", "", "", "process_start", ON, "default:on:process" },
	{ "", "", "", "", "process_list", ON, "default:on:process" },
	{ "", "", "", "", "process_get", ON, "default:on:process" },
	{ "", "", "", "", "process_signal", ON, "default:on:process" },
	{ "", "", "", "", "process_stdin", ON, "default:on:process" },
	{ "", "", "", "", "process_output", ON, "default:on:process" },
	{ "", "", "", "", "pty_create", ON, "default:on:terminal" },
	{ "", "", "", "", "pty_list", ON, "default:on:terminal" },
	{ "", "", "", "", "pty_get", ON, "default:on:terminal" },
	{ "", "", "", "", "pty_resize", ON, "default:on:terminal" },
	{ "", "", "", "", "pty_delete", ON, "default:on:terminal" },
	{ "", "", "", "", "pty_connect", ON, "default:on:terminal" },
	{ "", "", "", "", "system_info", ON, "default:on:system" },
	{ "", "", "", "", "system_metrics", ON, "default:on:system" },
	{ "", "", "", "", "env_get", ON, "default:on:system" },
	{ "", "", "", "", "env_set", ON, "default:on:system" },
	{ "", "", "", "", "ports", ON, "default:on:system" },
	{ "", "", "", "", "packages", ON, "default:on:system" },
	{ "", "", "", "", "code_run", OFF, "default:opt-in:dev_tools" },
	{ "", "", "", "", "git_status", OFF, "default:opt-in:dev_tools" },
	{ "", "", "", "", "git_diff", OFF, "default:opt-in:dev_tools" },
	{ "", "", "", "", "browser_navigate", OFF, "default:opt-in:browser" },
	{ "", "", "", "", "browser_close", OFF, "default:opt-in:browser" },
	{ "", "", "", "", "agents_create", OFF, "default:opt-in:agents" },
	{ "", "", "", "", "agents_list", OFF, "default:opt-in:agents" },

	/* ---- the preset `default` says nothing of its own */
	{ "default", "", "", "", "health", ON, "core:always-on" },
	{ "default", "", "", "", "upload", ON, "default:on:file_ops" },
	{ "default", "", "", "", "shell", ON, "default:on:process" },
	{ "default", "", "", "", "pty_create", ON, "default:on:terminal" },
	{ "default", "", "", "", "code_run", OFF, "default:opt-in:dev_tools" },
	{ "default", "", "", "", "agents_create", OFF, "default:opt-in:agents" },

	/* ---- `full`: every group on */
	{ "full", "", "", "", "health", ON, "core:always-on" },
	{ "full", "", "", "", "commands_run", ON, "preset:full" },
	{ "full", "", "", "", "upload", ON, "preset:full" },
	{ "full", "", "", "", "shell", ON, "preset:full" },
	{ "full", "", "", "", "pty_connect", ON, "preset:full" },
	{ "full", "", "", "", "env_set", ON, "preset:full" },
	{ "full", "", "", "", "code_run", ON, "preset:full" },
	{ "full", "", "", "", "git_diff", ON, "preset:full" },
	{ "full", "", "", "", "browser_navigate", ON, "preset:full" },
	{ "full", "", "", "", "browser_evaluate", ON, "preset:full" },
	{ "full", "", "", "", "agents_create", ON, "preset:full" },
	{ "full", "", "", "", "agents_list", ON, "preset:full" },

	/* ---- `locked`: core alone */
	{ "locked", "", "", "", "health", ON, "core:always-on" },
	{ "locked", "", "", "", "capabilities", ON, "core:always-on" },
	{ "locked", "", "", "", "capabilities_check", ON, "core:always-on" },
	{ "locked", "", "", "", "commands_list", OFF, "preset:locked" },
	{ "locked", "", "", "", "commands_run", OFF, "preset:locked" },
	{ "locked", "", "", "", "upload", OFF, "preset:locked" },
	{ "locked", "", "", "", "files_stat", OFF, "preset:locked" },
	{ "locked", "", "", "", "shell", OFF, "preset:locked" },
	{ "locked", "", "", "", "process_list", OFF, "preset:locked" },
	{ "locked", "", "", "", "pty_create", OFF, "preset:locked" },
	{ "locked", "", "", "", "pty_connect", OFF, "preset:locked" },
	{ "locked", "", "", "", "system_info", OFF, "preset:locked" },
	{ "locked", "", "", "", "env_get", OFF, "preset:locked" },
	{ "locked", "", "", "", "code_run", OFF, "preset:locked" },
	{ "locked", "", "", "", "browser_navigate", OFF, "preset:locked" },
	{ "locked", "", "", "", "agents_create", OFF, "preset:locked" },

	/* ---- `files-only`: core and file_ops */
	{ "files-only", "", "", "", "health", ON, "core:always-on" },
	{ "files-only", "", "", "", "commands_list", OFF, "preset:files-only" },
	{ "files-only", "", "", "", "commands_run", OFF, "preset:files-only" },
	{ "files-only", "", "", "", "upload", ON, "preset:files-only" },
	{ "files-only", "", "", "", "download", ON, "preset:files-only" },
	{ "files-only", "", "", "", "files_list", ON, "preset:files-only" },
	{ "files-only", "", "", "", "files_delete", ON, "preset:files-only" },
	{ "files-only", "", "", "", "files_move", ON, "preset:files-only" },
	{ "files-only", "", "", "", "files_watch", ON, "preset:files-only" },
	{ "files-only", "", "", "", "shell", OFF, "preset:files-only" },
	{ "files-only", "", "", "", "process_output", OFF, "preset:files-only" },
	{ "files-only", "", "", "", "pty_list", OFF, "preset:files-only" },
	{ "files-only", "", "", "", "ports", OFF, "preset:files-only" },
	{ "files-only", "", "", "", "git_status", OFF, "preset:files-only" },
	{ "files-only", "", "", "", "browser_content", OFF, "preset:files-only" },
	{ "files-only", "", "", "", "agents_list", OFF, "preset:files-only" },

	/* ---- `read-only`: the twenty that the contract lists, and core */
	{ "read-only", "", "", "", "health", ON, "core:always-on" },
	{ "read-only", "", "", "", "capabilities", ON, "core:always-on" },
	{ "read-only", "", "", "", "capabilities_check", ON, "core:always-on" },
	{ "read-only", "", "", "", "commands_list", ON, "preset:read-only" },
	{ "read-only", "", "", "", "commands_run", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "upload", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "download", ON, "preset:read-only" },
	{ "read-only", "", "", "", "files_list", ON, "preset:read-only" },
	{ "read-only", "", "", "", "files_stat", ON, "preset:read-only" },
	{ "read-only", "", "", "", "files_mkdir", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "files_delete", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "files_move", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "files_search", ON, "preset:read-only" },
	{ "read-only", "", "", "", "upload_stream", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "download_stream", ON, "preset:read-only" },
	{ "read-only", "", "", "", "files_archive", ON, "preset:read-only" },
	{ "read-only", "", "", "", "files_watch", ON, "preset:read-only" },
	{ "read-only", "", "", "", "shell", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "shell_stream", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "process_start", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "process_list", ON, "preset:read-only" },
	{ "read-only", "", "", "", "process_get", ON, "preset:read-only" },
	{ "read-only", "", "", "", "process_signal", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "process_stdin", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "process_output", ON, "preset:read-only" },
	{ "read-only", "", "", "", "pty_create", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "pty_list", ON, "preset:read-only" },
	{ "read-only", "", "", "", "pty_get", ON, "preset:read-only" },
	{ "read-only", "", "", "", "pty_resize", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "pty_delete", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "pty_connect", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "system_info", ON, "preset:read-only" },
	{ "read-only", "", "", "", "system_metrics", ON, "preset:read-only" },
	{ "read-only", "", "", "", "env_get", ON, "preset:read-only" },
	{ "read-only", "", "", "", "env_set", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "ports", ON, "preset:read-only" },
	{ "read-only", "", "", "", "packages", ON, "preset:read-only" },
	{ "read-only", "", "", "", "code_run", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "git_status", ON, "preset:read-only" },
	{ "read-only", "", "", "", "git_diff", ON, "preset:read-only" },
	{ "read-only", "", "", "", "browser_navigate", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "browser_content", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "agents_create", OFF, "preset:read-only" },
	{ "read-only", "", "", "", "agents_list", OFF, "preset:read-only" },

	/* ---- the environment turns on, never off */
	{ "", "dev_tools", "", "", "code_run", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "", "dev_tools", "", "", "git_diff", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "", "dev_tools", "", "", "browser_navigate", OFF, "default:opt-in:browser" },
	{ "", "dev_tools", "", "", "upload", ON, "default:on:file_ops" },
	{ "", "browser,agents", "", "", "browser_click", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "", "browser,agents", "", "", "agents_list", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "", "browser,agents", "", "", "git_status", OFF, "default:opt-in:dev_tools" },
	{ "", "process", "", "", "shell", ON, "default:on:process" },
	{ "", "core", "", "", "health", ON, "core:always-on" },
	{ "locked", "dev_tools", "", "", "code_run", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "locked", "dev_tools", "", "", "shell", OFF, "preset:locked" },
	{ "locked", "process", "", "", "shell", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "read-only", "dev_tools", "", "", "code_run", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "read-only", "dev_tools", "", "", "git_status", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "read-only", "dev_tools", "", "", "upload", OFF, "preset:read-only" },
	{ "full", "dev_tools", "", "", "code_run", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "full", "dev_tools", "", "", "browser_navigate", ON, "preset:full" },
	{ "files-only", "agents", "", "", "agents_create", ON, "env:ABX_SERVER_ENABLED_GROUPS" },

	/* ---- the policy's groups: a list turns on, a map both ways */
	{ "", "", "[dev_tools]", "", "code_run", ON, "policy:groups.dev_tools" },
	{ "", "", "[dev_tools]", "", "git_status", ON, "policy:groups.dev_tools" },
	{ "", "", "[dev_tools]", "", "browser_navigate", OFF, "default:opt-in:browser" },
	{ "", "", "[dev_tools]", "", "shell", ON, "default:on:process" },
	{ "", "", "[process]", "", "shell", ON, "policy:groups.process" },
	{ "", "", "[]", "", "shell", ON, "default:on:process" },
	{ "", "", "{process: false}", "", "shell", OFF, "policy:groups.process" },
	{ "", "", "{process: false}", "", "process_list", OFF, "policy:groups.process" },
	{ "", "", "{process: false}", "", "upload", ON, "default:on:file_ops" },
	{ "", "", "{process: false}", "", "commands_run", ON, "default:on:commands" },
	{ "", "", "{process: false, browser: true}", "", "browser_navigate", ON, "policy:groups.browser" },
	{ "", "", "{process: false, browser: true}", "", "shell_stream", OFF, "policy:groups.process" },
	{ "", "", "{terminal: false}", "", "pty_connect", OFF, "policy:groups.terminal" },
	{ "", "", "{system: true}", "", "env_set", ON, "policy:groups.system" },
	{ "", "", "{core: true}", "", "health", ON, "core:always-on" },
	{ "", "", "[core]", "", "capabilities", ON, "core:always-on" },
	{ "", "", "{dev_tools: false}", "", "code_run", OFF, "policy:groups.dev_tools" },
	{ "", "dev_tools", "{dev_tools: false}", "", "code_run", OFF, "policy:groups.dev_tools" },
	{ "", "dev_tools", "[dev_tools]", "", "code_run", ON, "policy:groups.dev_tools" },
	{ "", "dev_tools", "{process: false}", "", "code_run", ON, "env:ABX_SERVER_ENABLED_GROUPS" },
	{ "locked", "", "[process]", "", "shell", ON, "policy:groups.process" },
	{ "locked", "", "[process]", "", "upload", OFF, "preset:locked" },
	{ "locked", "", "{file_ops: true}", "", "files_delete", ON, "policy:groups.file_ops" },
	{ "full", "", "{agents: false}", "", "agents_create", OFF, "policy:groups.agents" },
	{ "full", "", "{agents: false}", "", "browser_navigate", ON, "preset:full" },
	{ "read-only", "", "[file_ops]", "", "upload", ON, "policy:groups.file_ops" },
	{ "read-only", "", "[file_ops]", "", "download", ON, "policy:groups.file_ops" },
	{ "read-only", "", "{file_ops: false}", "", "download", OFF, "policy:groups.file_ops" },
	{ "read-only", "", "{system: false}", "", "env_get", OFF, "policy:groups.system" },
	{ "read-only", "", "{system: false}", "", "download", ON, "preset:read-only" },
	{ "files-only", "", "{file_ops: false}", "", "upload", OFF, "policy:groups.file_ops" },

	/* ---- the policy's endpoints are the strongest */
	{ "", "", "", "true", "shell", ON, "policy:endpoints.shell" },
	{ "", "", "", "false", "shell", OFF, "policy:endpoints.shell" },
	{ "", "", "", "false", "upload", OFF, "policy:endpoints.upload" },
	{ "", "", "", "false", "pty_connect", OFF, "policy:endpoints.pty_connect" },
	{ "", "", "", "true", "code_run", ON, "policy:endpoints.code_run" },
	{ "", "", "", "false", "code_run", OFF, "policy:endpoints.code_run" },
	{ "", "", "", "true", "browser_navigate", ON, "policy:endpoints.browser_navigate" },
	{ "", "", "", "true", "agents_create", ON, "policy:endpoints.agents_create" },
	{ "", "", "", "true", "health", ON, "core:always-on" },
	{ "", "", "", "true", "capabilities_check", ON, "core:always-on" },
	{ "", "dev_tools", "", "false", "code_run", OFF, "policy:endpoints.code_run" },
	{ "", "dev_tools", "", "true", "git_diff", ON, "policy:endpoints.git_diff" },
	{ "", "", "{process: false}", "true", "shell", ON, "policy:endpoints.shell" },
	{ "", "", "{process: false}", "false", "shell", OFF, "policy:endpoints.shell" },
	{ "", "", "[dev_tools]", "false", "code_run", OFF, "policy:endpoints.code_run" },
	{ "", "", "{browser: true}", "false", "browser_evaluate", OFF, "policy:endpoints.browser_evaluate" },
	{ "", "browser", "{browser: false}", "true", "browser_evaluate", ON, "policy:endpoints.browser_evaluate" },
	{ "locked", "", "", "true", "files_stat", ON, "policy:endpoints.files_stat" },
	{ "locked", "", "", "true", "commands_list", ON, "policy:endpoints.commands_list" },
	{ "locked", "", "[process]", "false", "shell", OFF, "policy:endpoints.shell" },
	{ "locked", "dev_tools", "{dev_tools: false}", "true", "code_run", ON, "policy:endpoints.code_run" },
	{ "read-only", "", "", "true", "upload", ON, "policy:endpoints.upload" },
	{ "read-only", "", "", "false", "download", OFF, "policy:endpoints.download" },
	{ "read-only", "", "[process]", "false", "process_signal", OFF, "policy:endpoints.process_signal" },
	{ "full", "", "", "false", "env_set", OFF, "policy:endpoints.env_set" },
	{ "full", "agents", "[agents]", "false", "agents_list", OFF, "policy:endpoints.agents_list" },
	{ "files-only", "", "", "false", "files_delete", OFF, "policy:endpoints.files_delete" },
	{ "files-only", "", "", "true", "shell", ON, "policy:endpoints.shell" },
	{ "default", "", "{file_ops: false}", "true", "download", ON, "policy:endpoints.download" },
};

static char *document_of(const struct row *row)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;

	abx_strbuf_adds(&text, "version: 1\n");
	if (*row->preset)
		abx_strbuf_addf(&text, "preset: %s\n", row->preset);
	if (*row->groups)
		abx_strbuf_addf(&text, "groups: %s\n", row->groups);
	if (*row->self)
		abx_strbuf_addf(&text, "endpoints: {%s: {enabled: %s}}\n", row->id, row->self);
	return abx_strbuf_detach(&text);
}

static void check(const struct row *row)
{
	static const struct abx_document_source source = { .name = "p.yaml" };
	abx_auto_free char *text = document_of(row), *env = NULL;
	abx_auto_document struct abx_document *document = NULL;
	struct abx_policy *policy = NULL;
	struct abx_settings settings;
	struct abx_err err = ABX_ERR_INIT;

	if (asprintf(&env, "ABX_SERVER_ENABLED_GROUPS=%s", row->env) < 0)
		env = NULL;
	char *vars[] = { env, NULL };
	if (abx_settings_load(vars, &settings, &err) < 0) {
		ok(false, "%s", err.message);
		return;
	}
	document = abx_document_parse(&source, text, strlen(text), &err);
	policy = document ? abx_policy_build(&settings, document, &err) : NULL;
	ok(policy != NULL, "preset '%s', env '%s', groups '%s', endpoint '%s' %s", row->preset, row->env, row->groups, row->self, row->id);
	if (policy) {
		const struct abx_rule *rule = abx_policy_rule(policy, abx_endpoint_find(row->id));

		is_int(rule->enabled, row->enabled, "is %s", row->enabled ? "on" : "off");
		is_str(rule->rule, row->rule, "by the right rule");
	}
	abx_policy_free(policy);
	abx_settings_release(&settings);
}

int main(void)
{
	for (size_t i = 0; i < ABX_N(rows); i++)
		check(&rows[i]);
	note("%zu rows", ABX_N(rows));
	return done_testing();
}
