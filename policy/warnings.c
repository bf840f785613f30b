/* Rules that are in order and can have no effect all the same. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/glob.h"
#include "policy/document.h"

/* What stands before the first glob character, up to the last slash: the directory in which everything lies that a path glob can cover. */
static size_t literal_part(const char *glob)
{
	size_t len = strcspn(glob, "*?[");

	if (!glob[len])
		return len;
	while (len > 0 && glob[len] != '/')
		len--;
	return len;
}

/* Whether there can be a path that both cover: one of the directories has to lie in the other. */
static bool may_meet(const char *a, const char *b)
{
	size_t len_a = literal_part(a), len_b = literal_part(b), len = len_a < len_b ? len_a : len_b;
	const char *longer = len_a < len_b ? b : a;

	return strncmp(a, b, len) == 0 && (len_a == len_b || len == 0 || longer[len] == '/' || longer[len - 1] == '/');
}

static int warn_paths(struct abx_policy *policy, const struct abx_document *document, const struct abx_entry *entry,
		      const struct abx_endpoint *endpoint, const struct abx_rule *rule, struct abx_err *err)
{
	char *base[] = { policy->base_dir, NULL };
	char *const *trees = rule->lists[ABX_ALLOW_PATHS] ? rule->lists[ABX_ALLOW_PATHS] : base;

	for (char *const *deny = rule->lists[ABX_DENY_PATHS]; deny && *deny; deny++) {
		bool meets = false;

		for (char *const *tree = trees; *tree; tree++)
			meets |= may_meet(*deny, *tree);
		if (!meets && abx_policy_warn(policy, err, "%s:%d: endpoints.%s.paths.deny: '%s' lies outside of the allowed directories",
					      document->name, entry->line, endpoint->id, *deny) < 0)
			return -1;
	}
	return 0;
}

/* Each glob of an allow list that a deny list covers word for word can never allow anything. */
static int warn_lists(struct abx_policy *policy, const struct abx_document *document, const struct abx_entry *entry,
		      const struct abx_endpoint *endpoint, const struct abx_rule *rule, struct abx_err *err)
{
	static const struct {
		enum abx_rule_list allow, deny;
		const char *name;
	} pairs[] = {
		{ ABX_ALLOW_PATHS, ABX_DENY_PATHS, "paths.allow" },
		{ ABX_ALLOW_COMMANDS, ABX_DENY_COMMANDS, "commands.allow" },
		{ ABX_ALLOW_EXTENSIONS, ABX_DENY_EXTENSIONS, "allow_extensions" },
		{ ABX_ALLOW_VARIABLES, ABX_DENY_VARIABLES, "allow_vars" },
		{ ABX_ALLOW_URLS, ABX_DENY_URLS, "url_allow" },
		{ ABX_ALLOW_LANGUAGES, ABX_RULE_LIST__COUNT, "languages" },
	};

	for (size_t i = 0; i < ABX_N(pairs); i++) {
		char *const *allow = rule->lists[pairs[i].allow];
		char *const *deny = pairs[i].deny < ABX_RULE_LIST__COUNT ? rule->lists[pairs[i].deny] : NULL;

		if (allow && !*allow &&
		    abx_policy_warn(policy, err, "%s:%d: endpoints.%s.%s: is empty, so that nothing is allowed", document->name, entry->line,
				    endpoint->id, pairs[i].name) < 0)
			return -1;
		for (; allow && deny && *allow; allow++)
			for (char *const *d = deny; *d; d++)
				if (strcmp(*allow, *d) == 0 &&
				    abx_policy_warn(policy, err, "%s:%d: endpoints.%s.%s: '%s' is denied as well, which counts",
						    document->name, entry->line, endpoint->id, pairs[i].name, *allow) < 0)
					return -1;
	}
	return 0;
}

int abx_policy_warn_idle(struct abx_policy *policy, const struct abx_document *document, struct abx_err *err)
{
	for (size_t i = 0; document && i < abx_endpoint_count(); i++) {
		const struct abx_endpoint *endpoint = abx_endpoint_at(i);
		const struct abx_entry *entry = &document->entries[i];
		const struct abx_rule *rule = &policy->rules[i];

		if (!rule->enabled && (entry->values.given & ~(unsigned)ABX_KEY_ENABLED) &&
		    abx_policy_warn(policy, err, "%s:%d: endpoints.%s: has no effect, because rule '%s' turns the endpoint off", document->name,
				    entry->line, endpoint->id, rule->rule) < 0)
			return -1;
		if (warn_paths(policy, document, entry, endpoint, rule, err) < 0 ||
		    warn_lists(policy, document, entry, endpoint, rule, err) < 0)
			return -1;
	}
	return 0;
}

static bool is_on_path(const char *name, const char *path)
{
	for (; path && *path; path += *path == ':') {
		size_t len = strcspn(path, ":");
		char file[4096];

		if (len && snprintf(file, sizeof(file), "%.*s/%s", (int)len, path, name) < (int)sizeof(file) && access(file, X_OK) == 0)
			return true;
		path += len;
	}
	return false;
}

int abx_policy_warn_runtimes(struct abx_policy *policy, const char *path, struct abx_err *err)
{
	static const struct {
		const char *endpoint, *program;
	} needs[] = {
		{ "code_run", "python3" }, { "code_run", "node" }, { "code_run", "bash" }, { "git_status", "git" }, { "git_diff", "git" },
	};

	for (size_t i = 0; i < ABX_N(needs); i++) {
		const struct abx_endpoint *endpoint = abx_endpoint_find(needs[i].endpoint);

		if (abx_policy_rule(policy, endpoint)->enabled && !(endpoint->flags & ABX_EP_PLANNED) && !is_on_path(needs[i].program, path) &&
		    abx_policy_warn(policy, err, "%s needs the program '%s', which is not installed", endpoint->id, needs[i].program) < 0)
			return -1;
	}
	return 0;
}
