/* Policy documents, looked at without a server: what a server with the settings of this environment would make of them. */
#include <stdio.h>
#include <string.h>

#include "common/paths.h"
#include "common/shlex.h"
#include "handlers/abxctl/abxctl.h"
#include "policy/document.h"
#include "policy/evaluate.h"

extern char **environ;

/* A document and what follows from it. */
struct view {
	struct abx_settings settings;
	struct abx_document *document, *preset;
	struct abx_policy *policy;
};

static void view_release(struct view *view)
{
	abx_policy_free(view->policy);
	abx_document_free(view->document);
	abx_document_free(view->preset);
	abx_settings_release(&view->settings);
}

/* Variables that hold tokens need not be set here. */
static int view_open(struct view *view, const char *file)
{
	const struct abx_document_source source = { .name = file };
	struct abx_err err = ABX_ERR_INIT;

	if (abx_settings_load(environ, &view->settings, &err) < 0)
		return ctl_fail(CTL_USAGE, "%s", err.message);
	view->document = abx_document_read(&source, file, &err);
	if (view->document)
		view->preset = abx_preset_load(view->document->preset ? view->document->preset : "default", &err);
	if (view->preset)
		view->policy = abx_policy_build(&view->settings, view->document, &err);
	return view->policy ? CTL_OK : ctl_fail(CTL_FAILED, "%s", err.message);
}

/* ---- check */

static void print_words(char *const *words, const char *empty)
{
	if (!*words)
		fputs(empty, stdout);
	for (; *words; words++)
		printf("%s%s", *words, words[1] ? ", " : "");
}

static void print_limits(const struct abx_rule *rule)
{
	const struct abx_limits *l = &rule->limits;
	const struct {
		const char *name;
		int64_t value;
	} fields[] = {
		{ "timeout_seconds", l->timeout_seconds }, { "max_output_bytes", l->max_output_bytes }, { "max_bytes", l->max_bytes },
		{ "max_files", l->max_files },		   { "max_depth", l->max_depth },
		{ "max_duration_seconds", l->max_duration_seconds }, { "max_concurrent", rule->max_concurrent },
	};
	const char *comma = "";
	char rate[ABX_RATE_TEXT];

	for (size_t i = 0; i < ABX_N(fields); i++)
		if (fields[i].value) {
			printf("%s%s %lld", comma, fields[i].name, (long long)fields[i].value);
			comma = ", ";
		}
	if (rule->rate.count) {
		abx_rate_text(&rule->rate, rate);
		printf("%srate %s", comma, rate);
		comma = ", ";
	}
	if (!*comma)
		putchar('-');
}

/* The longest id of an endpoint, so that the table's columns stand below one another. */
static int id_width(void)
{
	size_t width = strlen("endpoint");

	for (size_t i = 0; i < abx_endpoint_count(); i++) {
		size_t len = strlen(abx_endpoint_at(i)->id);

		width = len > width ? len : width;
	}
	return (int)width;
}

static int check(const char *file)
{
	__attribute__((cleanup(view_release))) struct view view = { .policy = NULL };
	int status = view_open(&view, file), width = id_width();

	if (status != CTL_OK)
		return status;
	printf("preset %s, revision %s, base directory %s\n", view.policy->preset, view.policy->revision, view.policy->base_dir);
	for (size_t i = 0; i < view.policy->n_identities; i++) {
		printf("identity %s: ", view.policy->identities[i].id);
		print_words(view.policy->identities[i].scopes, "no scopes");
		putchar('\n');
	}
	printf("\n%-*s %-4s %-34s %-20s %s\n", width, "endpoint", "", "rule", "scopes", "limits");
	for (size_t i = 0; i < abx_endpoint_count(); i++) {
		const struct abx_rule *rule = &view.policy->rules[i];
		abx_auto_strbuf struct abx_strbuf scopes = ABX_STRBUF_INIT;

		for (char *const *scope = rule->scopes; *scope; scope++)
			abx_strbuf_addf(&scopes, "%s%s", scopes.len ? "," : "", *scope);
		printf("%-*s %-4s %-34s %-20s ", width, abx_endpoint_at(i)->id, rule->enabled ? "on" : "off", rule->rule,
		       scopes.len ? scopes.buf : "-");
		print_limits(rule);
		putchar('\n');
	}
	for (char *const *warning = view.policy->warnings; *warning; warning++)
		fprintf(stderr, "warning: %s\n", *warning);
	return CTL_OK;
}

/* ---- explain */

static void print_list(const char *name, char *const *list)
{
	if (!list)
		return;
	printf("%s: ", name);
	print_words(list, "nothing");
	putchar('\n');
}

static void print_values(const struct abx_rule *rule)
{
	static const char *const names[ABX_RULE_LIST__COUNT] = {
		[ABX_ALLOW_PATHS] = "paths allowed",	       [ABX_DENY_PATHS] = "paths denied",
		[ABX_ALLOW_COMMANDS] = "commands allowed",     [ABX_DENY_COMMANDS] = "commands denied",
		[ABX_ALLOW_EXTENSIONS] = "extensions allowed", [ABX_DENY_EXTENSIONS] = "extensions denied",
		[ABX_ALLOW_LANGUAGES] = "languages allowed",   [ABX_ALLOW_VARIABLES] = "variables allowed",
		[ABX_DENY_VARIABLES] = "variables denied",     [ABX_ALLOW_URLS] = "URLs allowed",
		[ABX_DENY_URLS] = "URLs denied",
	};

	printf("scopes: ");
	print_words(rule->scopes, "none");
	printf("\nlimits: ");
	print_limits(rule);
	putchar('\n');
	for (size_t i = 0; i < ABX_RULE_LIST__COUNT; i++)
		print_list(names[i], rule->lists[i]);
	if (rule->keep_existing)
		puts("existing files are kept");
	if (rule->block_private_networks)
		puts("URLs of private networks are denied");
}

/* Only as far as text can tell: links are not followed here. */
static int judge_path(const struct view *view, const struct abx_rule *rule, const char *value, struct abx_err *err)
{
	char *base[] = { view->policy->base_dir, NULL };
	char *const *allow = rule->lists[ABX_ALLOW_PATHS] ? rule->lists[ABX_ALLOW_PATHS] : base;
	struct abx_roots roots = { .deny = rule->lists[ABX_DENY_PATHS], .picky = true };
	abx_auto_free char *path = NULL;

	if ((*value == '/' ? asprintf(&path, "%s", value) : asprintf(&path, "%s/%s", view->policy->base_dir, value)) < 0) {
		path = NULL;
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	for (; *allow; allow++) {
		struct abx_root tree = { .only = *allow };

		roots.roots = &tree;
		roots.n = 1;
		if (!abx_roots_deny(&roots, path))
			return abx_rule_allows_extension(rule, strrchr(path, '/') + 1, err);
	}
	return abx_err_rule(err, ABX_E_PATH, rule->given & ABX_KEY_PATHS ? rule->values_rule : "", "The path is outside or off limits");
}

static void free_argv(char ***argv)
{
	abx_argv_free(*argv);
}

static int judge_command(const struct abx_rule *rule, const char *value, struct abx_err *err)
{
	char **argv __attribute__((cleanup(free_argv))) = abx_shlex_split(value, err);

	return argv ? abx_rule_allows_command(rule, argv, err) : -1;
}

/* What a value is depends on the endpoint. */
static int judge(const struct view *view, const struct abx_endpoint *endpoint, const char *value, const char **ret_what, struct abx_err *err)
{
	const struct abx_rule *rule = abx_policy_rule(view->policy, endpoint);

	*ret_what = "command";
	if (abx_key_effect(endpoint, ABX_KEY_COMMANDS) != ABX_KEY_IDLE)
		return judge_command(rule, value, err);
	*ret_what = "language";
	if (abx_key_effect(endpoint, ABX_KEY_LANGUAGES) != ABX_KEY_IDLE)
		return abx_rule_allows_language(rule, value, err);
	*ret_what = "variable";
	if (abx_key_effect(endpoint, ABX_KEY_VARIABLES) != ABX_KEY_IDLE)
		return abx_rule_allows_variable(rule, value, err);
	*ret_what = "URL";
	if (abx_key_effect(endpoint, ABX_KEY_URLS) != ABX_KEY_IDLE)
		return abx_rule_allows_url(rule, value, err);
	*ret_what = "path";
	if (abx_key_effect(endpoint, ABX_KEY_PATHS) != ABX_KEY_IDLE)
		return judge_path(view, rule, value, err);
	*ret_what = NULL;
	return 0;
}

static int explain_value(const struct view *view, const struct abx_endpoint *endpoint, const char *value)
{
	struct abx_err err = ABX_ERR_INIT;
	const char *what;
	int result = judge(view, endpoint, value, &what, &err);

	if (!what)
		return ctl_fail(CTL_USAGE, "the policy has no values for '%s'", endpoint->id);
	if (!abx_policy_rule(view->policy, endpoint)->enabled) {
		printf("the %s '%s' is refused: the endpoint is off\n", what, value);
		return CTL_FAILED;
	}
	if (result < 0)
		printf("the %s '%s' is refused: %s%s%s%s\n", what, value, err.message, err.rule[0] ? " (" : "", err.rule, err.rule[0] ? ")" : "");
	else
		printf("the %s '%s' is allowed\n", what, value);
	return result < 0 ? CTL_FAILED : CTL_OK;
}

static int unknown_endpoint(const char *id)
{
	abx_auto_free const char **ids = calloc(abx_endpoint_count() + 1, sizeof(char *));
	const char *meant = NULL;

	for (size_t i = 0; ids && i < abx_endpoint_count(); i++)
		ids[i] = abx_endpoint_at(i)->id;
	if (ids)
		meant = abx_suggest(id, ids);
	if (meant)
		return ctl_fail(CTL_USAGE, "unknown endpoint '%s': did you mean '%s'?", id, meant);
	return ctl_fail(CTL_USAGE, "unknown endpoint '%s'", id);
}

static int explain(const char *file, const char *id, const char *value)
{
	__attribute__((cleanup(view_release))) struct view view = { .policy = NULL };
	const struct abx_endpoint *endpoint = abx_endpoint_find(id);
	struct abx_decisions decisions;
	int status;

	if (!endpoint)
		return unknown_endpoint(id);
	status = view_open(&view, file);
	if (status != CTL_OK)
		return status;
	abx_policy_decide(&view.settings, view.document, view.preset, endpoint, &decisions);
	printf("%s is %s: %s\n", id, decisions.steps[decisions.n - 1].enabled ? "on" : "off", decisions.steps[decisions.n - 1].rule);
	for (size_t i = 0; i < decisions.n; i++)
		printf("  %-3s  %s%s\n", decisions.steps[i].enabled ? "on" : "off", decisions.steps[i].rule, i + 1 == decisions.n ? "  <- decides" : "");
	print_values(abx_policy_rule(view.policy, endpoint));
	return value ? explain_value(&view, endpoint, value) : CTL_OK;
}

int cmd_policy(struct ctl *ctl)
{
	const char *what = ctl->argv[0];

	if (strcmp(what, "check") == 0 && ctl->argc == 2)
		return check(ctl->argv[1]);
	if (strcmp(what, "explain") == 0 && ctl->argc >= 3)
		return explain(ctl->argv[1], ctl->argv[2], ctl->argc > 3 ? ctl->argv[3] : NULL);
	return ctl_fail(CTL_USAGE, "policy: write 'check FILE' or 'explain FILE ENDPOINT [VALUE]'");
}
