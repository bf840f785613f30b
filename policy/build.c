#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/policy.h"

#define POLICY_FILE ABX_SYSCONFDIR "/policy.yaml"

static char **new_list(const char *item)
{
	char **list = calloc(2, sizeof(*list));

	if (!list || !item)
		return list;
	list[0] = strdup(item);
	if (!list[0]) {
		free(list);
		return NULL;
	}
	return list;
}

/* Split a comma-separated setting; blanks around items are dropped. */
static char **split_list(const char *text)
{
	size_t n = 1;
	char **list;

	for (const char *p = text; p && *p; p++)
		n += *p == ',';
	list = calloc(n + 1, sizeof(*list));
	n = 0;
	while (list && text && *text) {
		size_t len;

		text += strspn(text, ", \t");
		len = strcspn(text, ", \t");
		if (len)
			list[n++] = strndup(text, len);
		text += len;
	}
	return list;
}

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

/* The layers that need no document, weakest first (contract, section 6). */
static void decide_enabled(const struct abx_settings *settings, const struct abx_endpoint *endpoint, bool *enabled,
			   char *name, size_t size)
{
	const struct abx_group_info *group = &abx_groups[endpoint->group];

	*enabled = !group->opt_in;
	snprintf(name, size, "default:%s:%s", group->opt_in ? "opt-in" : "on", group->name);
	if (settings->groups[endpoint->group] && group->opt_in) {
		*enabled = true;
		snprintf(name, size, "env:ABX_SERVER_ENABLED_GROUPS");
	}
	if (endpoint->group == ABX_GROUP_CORE)
		snprintf(name, size, "core:always-on");
}

static int build_rule(const struct abx_settings *settings, const struct abx_endpoint *endpoint, struct abx_rule *rule,
		      struct abx_err *err)
{
	char name[96];

	decide_enabled(settings, endpoint, &rule->enabled, name, sizeof(name));
	rule->rule = strdup(name);
	rule->scopes = new_list(endpoint->scope);
	rule->limits = endpoint->limits;
	if (rule->limits.max_bytes < 0)
		rule->limits.max_bytes = settings->max_upload;
	return rule->rule && rule->scopes ? 0 : out_of_memory(err);
}

/* One identity: the token of the environment as admin, or everyone in local mode. */
static int build_identities(const struct abx_settings *settings, struct abx_policy *policy, struct abx_err *err)
{
	struct abx_identity *identity = calloc(1, sizeof(*identity));

	if (!identity)
		return out_of_memory(err);
	policy->identities = identity;
	policy->n_identities = 1;
	policy->local = !settings->token;
	identity->id = strdup(policy->local ? "anonymous" : "admin");
	identity->scopes = new_list("*");
	identity->has_token = !policy->local;
	if (identity->has_token) {
		struct sha256_ctx ctx;

		sha256_init(&ctx);
		sha256_update(&ctx, strlen(settings->token), (const uint8_t *)settings->token);
		sha256_digest(&ctx, ABX_TOKEN_HASH, identity->token_hash);
	}
	return identity->id && identity->scopes ? 0 : out_of_memory(err);
}

/* The first 16 hex digits of SHA-256 over the empty document as compact JSON. */
static char *empty_revision(void)
{
	unsigned char hash[SHA256_DIGEST_SIZE];
	struct sha256_ctx ctx;
	char *hex = malloc(17);

	sha256_init(&ctx);
	sha256_update(&ctx, 2, (const uint8_t *)"{}");
	sha256_digest(&ctx, sizeof(hash), hash);
	for (size_t i = 0; hex && i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	return hex;
}

static int copy_settings(const struct abx_settings *settings, struct abx_policy *policy, struct abx_err *err)
{
	policy->preset = strdup("default");
	policy->revision = empty_revision();
	policy->base_dir = strdup(settings->base_dir);
	policy->run_dir = strdup(settings->run_dir ? settings->run_dir : "");
	policy->spool_dir = strdup(settings->spool_dir ? settings->spool_dir : "");
	policy->commands_dir = strdup(settings->commands_dir);
	policy->mount_prefix = strdup(settings->mount_prefix);
	policy->host = strdup(settings->host);
	policy->allowed_origins = split_list(settings->allowed_origins);
	policy->warnings = new_list(NULL);
	policy->port = settings->port;
	policy->pty_port = settings->pty_port;
	policy->max_upload = settings->max_upload;
	policy->log_level = settings->log_level;
	policy->log_json = settings->log_json;
	if (!policy->preset || !policy->revision || !policy->base_dir || !policy->run_dir || !policy->spool_dir ||
	    !policy->commands_dir || !policy->mount_prefix || !policy->host || !policy->allowed_origins ||
	    !policy->warnings)
		return out_of_memory(err);
	return 0;
}

/* A document that would be ignored must stop the start: its owner believes that it is in force. */
static int refuse_document(const struct abx_settings *settings, struct abx_err *err)
{
	if (settings->policy)
		return abx_err_set(err, ABX_E_VALUE,
				   "ABX_SERVER_POLICY: policy documents are not implemented yet; unset it");
	if (access(POLICY_FILE, F_OK) == 0)
		return abx_err_set(err, ABX_E_VALUE,
				   POLICY_FILE ": policy documents are not implemented yet; move the file away");
	return 0;
}

static int build(const struct abx_settings *settings, struct abx_policy *policy, struct abx_err *err)
{
	size_t n = abx_endpoint_count();

	if (refuse_document(settings, err) < 0 || copy_settings(settings, policy, err) < 0 ||
	    build_identities(settings, policy, err) < 0)
		return -1;
	policy->rules = calloc(n, sizeof(*policy->rules));
	if (!policy->rules)
		return out_of_memory(err);
	for (size_t i = 0; i < n; i++)
		if (build_rule(settings, abx_endpoint_at(i), &policy->rules[i], err) < 0)
			return -1;
	return 0;
}

struct abx_policy *abx_policy_build(const struct abx_settings *settings, struct abx_err *err)
{
	struct abx_policy *policy = calloc(1, sizeof(*policy));

	if (!policy) {
		out_of_memory(err);
		return NULL;
	}
	if (build(settings, policy, err) < 0) {
		abx_policy_free(policy);
		return NULL;
	}
	return policy;
}
