#include "policy/policy.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void abx_list_free(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

int abx_list_add(char ***list, const char *item)
{
	size_t n = 0;
	char **grown;

	while (*list && (*list)[n])
		n++;
	grown = realloc(*list, (n + 2) * sizeof(*grown));
	if (!grown)
		return -1;
	*list = grown;
	grown[n] = strdup(item);
	grown[n + 1] = NULL;
	return grown[n] ? 0 : -1;
}

char **abx_list_copy(char *const *list)
{
	char **copy = calloc(1, sizeof(*copy));

	for (; copy && *list; list++)
		if (abx_list_add(&copy, *list) < 0) {
			abx_list_free(copy);
			return NULL;
		}
	return copy;
}

void abx_list_drop(char **list, const char *prefix)
{
	char **kept = list;

	for (; *list; list++) {
		if (strncmp(*list, prefix, strlen(prefix)) == 0)
			free(*list);
		else
			*kept++ = *list;
	}
	*kept = NULL;
}

void abx_rule_release(struct abx_rule *rule)
{
	free(rule->rule);
	free(rule->values_rule);
	free(rule->slots);
	abx_list_free(rule->scopes);
	for (size_t i = 0; i < ABX_RULE_LIST__COUNT; i++)
		abx_list_free(rule->lists[i]);
	*rule = (struct abx_rule){ .enabled = false };
}

void abx_policy_free(struct abx_policy *policy)
{
	if (!policy)
		return;
	for (size_t i = 0; i < policy->n_identities; i++) {
		free(policy->identities[i].id);
		abx_list_free(policy->identities[i].scopes);
	}
	free(policy->identities);
	for (size_t i = 0; policy->rules && i < abx_endpoint_count(); i++)
		abx_rule_release(&policy->rules[i]);
	free(policy->rules);
	abx_list_free(policy->warnings);
	abx_list_free(policy->allowed_origins);
	abx_list_free(policy->secrets);
	free(policy->audit_file);
	free(policy->code);
	free(policy->preset);
	free(policy->revision);
	free(policy->base_dir);
	free(policy->run_dir);
	free(policy->spool_dir);
	free(policy->commands_dir);
	free(policy->mount_prefix);
	free(policy->host);
	free(policy);
}

int abx_policy_warn(struct abx_policy *policy, struct abx_err *err, const char *fmt, ...)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	abx_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (text.failed || abx_list_add(&policy->warnings, text.buf) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	return 0;
}

void abx_policy_explain_disabled(const struct abx_endpoint *endpoint, const char *rule, struct abx_strbuf *out)
{
	const char *group = abx_groups[endpoint->group].name, *home = abx_groups[abx_endpoint_home(endpoint)].name;

	abx_strbuf_addf(out, "Endpoint '%s' is disabled: ", endpoint->id);
	if (strncmp(rule, "default:opt-in:", 15) == 0)
		abx_strbuf_addf(out,
				"group '%s' is opt-in. Enable the group (ABX_SERVER_ENABLED_GROUPS=%s, policy groups: "
				"[%s]) or this endpoint (policy endpoints.%s.enabled: true)",
				group, group, group, endpoint->id);
	else if (strncmp(rule, "mount:", 6) == 0)
		abx_strbuf_addf(out, "group '%s' is not mounted. Include its file %s.conf in lighttpd.conf", home,
				home);
	else
		abx_strbuf_addf(out, "rule '%s' turns it off", rule);
}

static bool scope_covers(const char *held, const char *needed)
{
	size_t len = strlen(held);

	if (strcmp(held, "*") == 0 || strcmp(held, needed) == 0)
		return true;
	return len >= 2 && strcmp(held + len - 2, ":*") == 0 && strncmp(held, needed, len - 1) == 0;
}

static bool any_scope_covers(char *const *held, const char *needed)
{
	for (; *held; held++)
		if (scope_covers(*held, needed))
			return true;
	return false;
}

bool abx_policy_scopes_allow(char *const *held, char *const *needed)
{
	for (; *needed; needed++)
		if (!any_scope_covers(held, *needed))
			return false;
	return true;
}

const char *abx_rule_scopes_name(const struct abx_rule *rule)
{
	return rule->scopes_from_policy ? rule->values_rule : "default:scopes";
}
