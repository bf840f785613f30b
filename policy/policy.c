#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

static void free_list(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

void abx_policy_free(struct abx_policy *policy)
{
	if (!policy)
		return;
	for (size_t i = 0; i < policy->n_identities; i++) {
		free(policy->identities[i].id);
		free_list(policy->identities[i].scopes);
	}
	free(policy->identities);
	for (size_t i = 0; policy->rules && i < abx_endpoint_count(); i++) {
		free(policy->rules[i].rule);
		free_list(policy->rules[i].scopes);
	}
	free(policy->rules);
	free_list(policy->warnings);
	free_list(policy->allowed_origins);
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

void abx_policy_explain_disabled(const struct abx_endpoint *endpoint, const char *rule, struct abx_strbuf *out)
{
	const char *group = abx_groups[endpoint->group].name;

	abx_strbuf_addf(out, "Endpoint '%s' is disabled: ", endpoint->id);
	if (strncmp(rule, "default:opt-in:", 15) == 0)
		abx_strbuf_addf(out,
				"group '%s' is opt-in. Enable the group (ABX_SERVER_ENABLED_GROUPS=%s, policy groups: "
				"[%s]) or this endpoint (policy endpoints.%s.enabled: true)",
				group, group, group, endpoint->id);
	else if (strncmp(rule, "mount:", 6) == 0)
		abx_strbuf_addf(out, "group '%s' is not mounted. Include its file %s.conf in lighttpd.conf", group,
				group);
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
