/* The keys of one endpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/schema.h"
#include "policy/url.h"

#define VALUE(field) offsetof(struct abx_entry, values.field)
#define LIST(list)   (offsetof(struct abx_entry, values.lists) + (list) * sizeof(char **))

/* What the counters on the board can keep. */
#define RATE_MAX 1000000

/* As abx_take_texts, and each of them has to pass `check`, which says what is wrong with it. */
static int take_checked(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			const char *(*check)(const char *text), struct abx_err *err)
{
	if (abx_take_texts(r, node, schema, target, err) < 0)
		return -1;
	for (const struct abx_node *item = node->first; item; item = item->next) {
		const char *wrong = check(item->text);

		if (wrong)
			return abx_complain(r, item->line, err, "'%s' %s", item->text, wrong);
	}
	return 0;
}

static bool is_absolute(const char *text)
{
	return *text == '/' || strcmp(text, "**") == 0 || strncmp(text, "**/", 3) == 0;
}

static const char *check_components(const char *text)
{
	for (const char *p = text; *p; p += *p == '/') {
		size_t len = strcspn(p, "/");

		if ((len == 1 && *p == '.') || (len == 2 && p[0] == '.' && p[1] == '.'))
			return "holds a component '.' or '..'";
		p += len;
	}
	return NULL;
}

static const char *check_allowed(const char *text)
{
	return is_absolute(text) ? check_components(text) : "is not an absolute path: begin with '/' or '**/'";
}

static const char *check_denied(const char *text)
{
	return *text == '~' ? "is not an absolute path, and '~' is nobody's home here: begin with '/' or '**/'" : check_components(text);
}

/* "*.pem" can only be meant for wherever such a name stands. */
static int take_denied(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	char **list;

	if (take_checked(r, node, schema, target, check_denied, err) < 0)
		return -1;
	for (list = *(char ***)((char *)target + schema->offset); *list; list++) {
		char *text;

		if (is_absolute(*list))
			continue;
		if (asprintf(&text, "**/%s", *list) < 0)
			return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		free(*list);
		*list = text;
	}
	return 0;
}

/* An endpoint that may touch nothing is one that is off. */
static int take_trees(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	if (take_checked(r, node, schema, target, check_allowed, err) < 0)
		return -1;
	return node->first ? 0 : abx_complain(r, node->line, err, "names no path: to turn the endpoint off, write enabled: false");
}

static int take_extensions(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			   struct abx_err *err)
{
	char ***list = (char ***)((char *)target + schema->offset);

	if (abx_expect(r, node, ABX_NODE_LIST, err) < 0)
		return -1;
	*list = calloc(1, sizeof(**list));
	for (const struct abx_node *item = node->first; item; item = item->next) {
		if (abx_expect(r, item, ABX_NODE_STRING, err) < 0)
			return -1;
		/* "" is a name without an extension. */
		if (*item->text && *item->text != '.')
			return abx_complain(r, item->line, err, "'%s' does not begin with a dot: did you mean '.%s'?", item->text,
					    item->text);
		if (strchr(item->text, '/') || strcmp(item->text, ".") == 0)
			return abx_complain(r, item->line, err, "'%s' is not the extension of a file name", item->text);
		if (!*list || abx_list_add(list, item->text) < 0)
			return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	return *list ? 0 : abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

static int take_languages(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			  struct abx_err *err)
{
	static const char *const languages[] = { "python", "node", "bash", NULL };

	if (abx_take_texts(r, node, schema, target, err) < 0)
		return -1;
	for (const struct abx_node *item = node->first; item; item = item->next) {
		const char *const *known = languages;

		while (*known && strcmp(*known, item->text) != 0)
			known++;
		if (!*known)
			return abx_complain_unknown(r, item->line, "language", item->text, languages, err);
	}
	return 0;
}

static int take_urls(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	return take_checked(r, node, schema, target, abx_url_glob_check, err);
}

static int take_scopes(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	struct abx_entry *entry = target;

	entry->values.scopes_from_policy = true;
	return abx_take_texts(r, node, schema, target, err);
}

/* `overwrite` is written the way round that a reader expects; what counts is that it is false. */
static int take_overwrite(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			  struct abx_err *err)
{
	bool *keep = (bool *)((char *)target + schema->offset);

	if (abx_expect(r, node, ABX_NODE_BOOL, err) < 0)
		return -1;
	*keep = !node->boolean;
	return 0;
}

/* `network: false` takes the network away, the other two are on when they are true. */
static int take_confine(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			struct abx_err *err)
{
	struct abx_entry *entry = target;

	if (abx_expect(r, node, ABX_NODE_BOOL, err) < 0)
		return -1;
	if (node->boolean != (schema->flag == ABX_CONFINE_NETWORK))
		entry->values.confine |= schema->flag;
	return 0;
}

static int take_confine_limit(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			      struct abx_err *err)
{
	struct abx_entry *entry = target;

	entry->values.confine |= ABX_CONFINE_LIMITS;
	return abx_take_number(r, node, schema, target, err);
}

static const struct {
	const char *unit;
	int64_t window_ms;
} units[] = { { "s", 1000 }, { "min", 60 * 1000 }, { "h", 60 * 60 * 1000 }, { "d", 24 * 60 * 60 * 1000 } };

static int take_rate(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	struct abx_rate *rate = (struct abx_rate *)((char *)target + schema->offset);
	const char *text, *slash;

	if (abx_expect(r, node, ABX_NODE_STRING, err) < 0)
		return -1;
	text = node->text;
	slash = text + strspn(text, "0123456789");
	if (slash > text && slash - text <= 9 && *slash == '/')
		rate->count = strtoll(text, NULL, 10);
	for (size_t i = 0; rate->count && i < ABX_N(units); i++)
		if (strcmp(slash + 1, units[i].unit) == 0)
			rate->window_ms = units[i].window_ms;
	if (rate->count > RATE_MAX)
		return abx_complain(r, node->line, err, "'%s': no more than %d calls can be counted", text, RATE_MAX);
	if (!rate->window_ms)
		return abx_complain(r, node->line, err, "'%s' is not a rate: write a number, '/', and s, min, h or d, as in 10/min",
				    text);
	return 0;
}

void abx_rate_text(const struct abx_rate *rate, char out[ABX_RATE_TEXT])
{
	const char *unit = "";

	for (size_t i = 0; i < ABX_N(units); i++)
		if (units[i].window_ms == rate->window_ms)
			unit = units[i].unit;
	snprintf(out, ABX_RATE_TEXT, "%lld/%s", (long long)rate->count, unit);
}

static const struct abx_schema paths_schema[] = {
	{ .key = "allow", .take = take_trees, .offset = LIST(ABX_ALLOW_PATHS) },
	{ .key = "deny", .take = take_denied, .offset = LIST(ABX_DENY_PATHS) },
	{ .key = NULL },
};

static const struct abx_schema commands_schema[] = {
	{ .key = "allow", .take = abx_take_texts, .offset = LIST(ABX_ALLOW_COMMANDS) },
	{ .key = "deny", .take = abx_take_texts, .offset = LIST(ABX_DENY_COMMANDS) },
	{ .key = NULL },
};

static const struct abx_schema limits_schema[] = {
	{ .key = "timeout_seconds", .take = abx_take_number, .offset = VALUE(limits.timeout_seconds), .given = ABX_KEY_TIMEOUT },
	{ .key = "max_output_bytes", .take = abx_take_number, .offset = VALUE(limits.max_output_bytes), .given = ABX_KEY_MAX_OUTPUT },
	{ .key = "max_bytes", .take = abx_take_number, .offset = VALUE(limits.max_bytes), .given = ABX_KEY_MAX_BYTES },
	{ .key = "max_files", .take = abx_take_number, .offset = VALUE(limits.max_files), .given = ABX_KEY_MAX_FILES },
	{ .key = "max_depth", .take = abx_take_number, .offset = VALUE(limits.max_depth), .given = ABX_KEY_MAX_DEPTH },
	{ .key = "max_duration_seconds", .take = abx_take_number, .offset = VALUE(limits.max_duration_seconds), .given = ABX_KEY_MAX_DURATION },
	{ .key = "rate", .take = take_rate, .offset = VALUE(rate), .given = ABX_KEY_RATE },
	{ .key = "max_concurrent", .take = abx_take_number, .offset = VALUE(max_concurrent), .given = ABX_KEY_CONCURRENT },
	{ .key = NULL },
};

static const struct abx_schema confine_schema[] = {
	{ .key = "filesystem", .take = take_confine, .flag = ABX_CONFINE_FILESYSTEM },
	{ .key = "network", .take = take_confine, .flag = ABX_CONFINE_NETWORK },
	{ .key = "no_new_privs", .take = take_confine, .flag = ABX_CONFINE_NO_NEW_PRIVS },
	{ .key = "max_memory_bytes", .take = take_confine_limit, .offset = VALUE(confine_limits.max_memory_bytes) },
	{ .key = "max_processes", .take = take_confine_limit, .offset = VALUE(confine_limits.max_processes) },
	{ .key = "max_cpu_seconds", .take = take_confine_limit, .offset = VALUE(confine_limits.max_cpu_seconds) },
	{ .key = NULL },
};

const struct abx_schema abx_endpoint_schema[] = {
	{ .key = "enabled", .take = abx_take_bool, .offset = offsetof(struct abx_entry, enabled), .given = ABX_KEY_ENABLED },
	{ .key = "scopes", .take = take_scopes, .offset = VALUE(scopes), .given = ABX_KEY_SCOPES },
	{ .key = "paths", .take = abx_take_map, .keys = paths_schema, .given = ABX_KEY_PATHS },
	{ .key = "commands", .take = abx_take_map, .keys = commands_schema, .given = ABX_KEY_COMMANDS },
	{ .key = "limits", .take = abx_take_map, .keys = limits_schema },
	{ .key = "confine", .take = abx_take_map, .keys = confine_schema, .given = ABX_KEY_CONFINE },
	{ .key = "allow_extensions", .take = take_extensions, .offset = LIST(ABX_ALLOW_EXTENSIONS), .given = ABX_KEY_EXTENSIONS },
	{ .key = "deny_extensions", .take = take_extensions, .offset = LIST(ABX_DENY_EXTENSIONS), .given = ABX_KEY_EXTENSIONS },
	{ .key = "overwrite", .take = take_overwrite, .offset = VALUE(keep_existing), .given = ABX_KEY_OVERWRITE },
	{ .key = "languages", .take = take_languages, .offset = LIST(ABX_ALLOW_LANGUAGES), .given = ABX_KEY_LANGUAGES },
	{ .key = "allow_vars", .take = abx_take_texts, .offset = LIST(ABX_ALLOW_VARIABLES), .given = ABX_KEY_VARIABLES },
	{ .key = "deny_vars", .take = abx_take_texts, .offset = LIST(ABX_DENY_VARIABLES), .given = ABX_KEY_VARIABLES },
	{ .key = "url_allow", .take = take_urls, .offset = LIST(ABX_ALLOW_URLS), .given = ABX_KEY_URLS },
	{ .key = "url_deny", .take = take_urls, .offset = LIST(ABX_DENY_URLS), .given = ABX_KEY_URLS },
	{ .key = "block_private_networks", .take = abx_take_bool, .offset = VALUE(block_private_networks), .given = ABX_KEY_URLS },
	{ .key = NULL },
};
