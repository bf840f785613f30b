#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/code.h"
#include "policy/digest.h"
#include "policy/document.h"

/* A policy may let searches and lists go as deep as this (contract, section 8 "Policy"). */
#define MAX_DEPTH 32

/* What a policy is made of. */
struct sources {
	const struct abx_settings *settings;
	const struct abx_document *document, *preset;
};

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

/* Split a comma-separated setting; blanks around items are dropped. */
static char **split_list(const char *text)
{
	char **list = calloc(1, sizeof(*list));

	while (list && text && *text) {
		size_t len;

		text += strspn(text, ", \t");
		len = strcspn(text, ", \t");
		abx_auto_free char *item = strndup(text, len);
		if (!item || (len && abx_list_add(&list, item) < 0)) {
			abx_list_free(list);
			return NULL;
		}
		text += len;
	}
	return list;
}

/* ---- whether an endpoint is on */

static void ABX_PRINTF(3, 4) decide(struct abx_decisions *decisions, bool enabled, const char *fmt, ...)
{
	struct abx_decision *decision = &decisions->steps[decisions->n++];
	va_list ap;

	decision->enabled = enabled;
	va_start(ap, fmt);
	vsnprintf(decision->rule, sizeof(decision->rule), fmt, ap);
	va_end(ap);
}

/* The layers of the contract's section 6, weakest first: each that speaks has the word. Within one an endpoint is more special than its group. */
void abx_policy_decide(const struct abx_settings *settings, const struct abx_document *document, const struct abx_document *preset,
		       const struct abx_endpoint *endpoint, struct abx_decisions *ret_decisions)
{
	const struct abx_group_info *group = &abx_groups[endpoint->group];
	size_t index = abx_endpoint_index(endpoint);
	const struct abx_entry *entry = &preset->entries[index];
	const struct abx_code *code = abx_code_current();

	ret_decisions->n = 0;
	decide(ret_decisions, !group->opt_in, "default:%s:%s", group->opt_in ? "opt-in" : "on", group->name);
	if (preset->groups[endpoint->group] >= 0)
		decide(ret_decisions, preset->groups[endpoint->group], "preset:%s", preset->name);
	if (entry->values.given & ABX_KEY_ENABLED)
		decide(ret_decisions, entry->enabled, "preset:%s", preset->name);
	if (code && code->groups[endpoint->group] >= 0)
		decide(ret_decisions, code->groups[endpoint->group], "code:%s", code->name);
	/* Naming a group there that is on by itself says nothing. */
	if (settings->groups[endpoint->group] && (group->opt_in || !ret_decisions->steps[ret_decisions->n - 1].enabled))
		decide(ret_decisions, true, "env:ABX_SERVER_ENABLED_GROUPS");
	if (document && document->groups[endpoint->group] >= 0)
		decide(ret_decisions, document->groups[endpoint->group], "policy:groups.%s", group->name);
	if (document && (document->entries[index].values.given & ABX_KEY_ENABLED))
		decide(ret_decisions, document->entries[index].enabled, "policy:endpoints.%s", endpoint->id);
	if (endpoint->group == ABX_GROUP_CORE)
		decide(ret_decisions, true, "core:always-on");
}

/* ---- limits */

/* The seconds that a caller may ask for at most; 0: any number. What is both the limit and the default is the default alone. */
static int64_t built_in_timeout(const struct abx_endpoint *endpoint)
{
	/* A named command may come with a longer time of its own. */
	if (endpoint->flags & ABX_EP_RAW_ARGS)
		return 0;
	for (size_t i = 0; i < endpoint->n_args; i++) {
		const struct abx_arg *arg = &endpoint->args[i];

		if (arg->type == ABX_ARG_TIMEOUT && (!arg->default_json || strtoll(arg->default_json, NULL, 10) >= endpoint->limits.timeout_seconds))
			return 0;
	}
	return endpoint->limits.timeout_seconds;
}

/* Take a limit from the document, as far as it is lower than what the server has of its own (0: nothing). */
static int lower(struct abx_policy *policy, const struct sources *from, const struct abx_entry *entry, const struct abx_endpoint *endpoint,
		 int64_t wanted, int64_t cap, enum abx_key key, int64_t *limit, struct abx_err *err)
{
	if (!wanted)
		return 0;
	if (cap && wanted > cap) {
		*limit = cap;
		return abx_policy_warn(policy, err, "%s:%d: endpoints.%s.%s: %lld is more than the server's own limit, %lld, which holds",
				       from->document->name, entry->keys[abx_key_number(key)].line, endpoint->id, abx_key_name(key), (long long)wanted, (long long)cap);
	}
	*limit = wanted;
	return 0;
}

static int build_limits(struct abx_policy *policy, const struct sources *from, const struct abx_endpoint *endpoint, struct abx_rule *rule,
			struct abx_err *err)
{
	const struct abx_entry *entry = from->document ? &from->document->entries[abx_endpoint_index(endpoint)] : NULL;
	struct abx_limits *limits = &rule->limits;

	*limits = endpoint->limits;
	if (limits->max_bytes < 0)
		limits->max_bytes = from->settings->max_upload;
	rule->max_timeout = built_in_timeout(endpoint);
	if (!entry)
		return 0;

	const struct abx_limits *wanted = &entry->values.limits;
	const struct {
		enum abx_key key;
		int64_t wanted, cap;
		int64_t *limit;
	} fields[] = {
		{ ABX_KEY_TIMEOUT, wanted->timeout_seconds, rule->max_timeout, &limits->timeout_seconds },
		{ ABX_KEY_MAX_OUTPUT, wanted->max_output_bytes, limits->max_output_bytes, &limits->max_output_bytes },
		{ ABX_KEY_MAX_BYTES, wanted->max_bytes, limits->max_bytes, &limits->max_bytes },
		{ ABX_KEY_MAX_FILES, wanted->max_files, limits->max_files, &limits->max_files },
		{ ABX_KEY_MAX_DEPTH, wanted->max_depth, MAX_DEPTH, &limits->max_depth },
		{ ABX_KEY_MAX_DURATION, wanted->max_duration_seconds, limits->max_duration_seconds, &limits->max_duration_seconds },
	};
	for (size_t i = 0; i < ABX_N(fields); i++)
		if (abx_key_effect(endpoint, fields[i].key) == ABX_KEY_WORKS &&
		    lower(policy, from, entry, endpoint, fields[i].wanted, fields[i].cap, fields[i].key, fields[i].limit, err) < 0)
			return -1;
	if (wanted->timeout_seconds && abx_key_effect(endpoint, ABX_KEY_TIMEOUT) == ABX_KEY_WORKS)
		rule->max_timeout = limits->timeout_seconds;
	return 0;
}

/* ---- the other values */

static int copy_values(const struct abx_rule *values, struct abx_rule *rule, struct abx_err *err)
{
	for (size_t i = 0; i < ABX_RULE_LIST__COUNT; i++) {
		if (!values->lists[i])
			continue;
		rule->lists[i] = abx_list_copy(values->lists[i]);
		if (!rule->lists[i])
			return out_of_memory(err);
	}
	if (values->scopes_from_policy) {
		abx_list_free(rule->scopes);
		rule->scopes = abx_list_copy(values->scopes);
		rule->scopes_from_policy = true;
	}
	rule->given = values->given;
	rule->rate = values->rate;
	rule->max_concurrent = values->max_concurrent;
	rule->keep_existing = values->keep_existing;
	rule->block_private_networks = values->block_private_networks;
	rule->confine = values->confine;
	rule->confine_limits = values->confine_limits;
	return rule->scopes ? 0 : out_of_memory(err);
}

static char *values_rule(const char *id)
{
	char *text;

	return asprintf(&text, "policy:endpoints.%s", id) < 0 ? NULL : text;
}

static int build_rule(struct abx_policy *policy, const struct sources *from, const struct abx_endpoint *endpoint, struct abx_rule *rule,
		      struct abx_err *err)
{
	struct abx_decisions decisions;

	abx_policy_decide(from->settings, from->document, from->preset, endpoint, &decisions);
	rule->enabled = decisions.steps[decisions.n - 1].enabled;
	rule->rule = strdup(decisions.steps[decisions.n - 1].rule);
	rule->values_rule = values_rule(endpoint->id);
	rule->scopes = calloc(1, sizeof(*rule->scopes));
	if (!rule->rule || !rule->values_rule || !rule->scopes || (endpoint->scope && abx_list_add(&rule->scopes, endpoint->scope) < 0))
		return out_of_memory(err);
	for (char *const *scope = endpoint->scopes; scope && *scope; scope++)
		if (abx_list_add(&rule->scopes, *scope) < 0)
			return out_of_memory(err);
	if (from->document &&
	    copy_values(&from->document->entries[abx_endpoint_index(endpoint)].values, rule, err) < 0)
		return -1;
	return build_limits(policy, from, endpoint, rule, err);
}

static int build_rules(struct abx_policy *policy, const struct sources *from, struct abx_err *err)
{
	size_t n = abx_endpoint_count();

	policy->rules = calloc(n, sizeof(*policy->rules));
	if (!policy->rules)
		return out_of_memory(err);
	for (size_t i = 0; i < n; i++)
		if (build_rule(policy, from, abx_endpoint_at(i), &policy->rules[i], err) < 0)
			return -1;
	return 0;
}

/* ---- identities */

static int add_identity(struct abx_policy *policy, const char *id, char *const *scopes, const unsigned char *hash, struct abx_err *err)
{
	struct abx_identity *identity = &policy->identities[policy->n_identities++];

	identity->id = strdup(id);
	identity->scopes = abx_list_copy(scopes);
	if (hash) {
		identity->has_token = true;
		memcpy(identity->token_hash, hash, ABX_TOKEN_HASH);
	}
	return identity->id && identity->scopes ? 0 : out_of_memory(err);
}

/* The token of the environment is one more identity. */
static int add_admin(struct abx_policy *policy, const char *token, char *const *scopes, struct abx_err *err)
{
	unsigned char hash[ABX_TOKEN_HASH];

	abx_digest(token, strlen(token), hash);
	for (size_t i = 0; i < policy->n_identities; i++) {
		const struct abx_identity *other = &policy->identities[i];

		if (strcmp(other->id, "admin") == 0)
			return abx_err_set(err, ABX_E_VALUE, "The identity 'admin' is that of ABX_SERVER_TOKEN: the policy needs another id");
		if (other->has_token && memcmp(other->token_hash, hash, sizeof(hash)) == 0)
			return abx_err_set(err, ABX_E_VALUE, "The identity '%s' has the same token as ABX_SERVER_TOKEN", other->id);
	}
	return add_identity(policy, "admin", scopes, hash, err);
}

/* Any identity of the policy ends local mode, in which everyone is anonymous. */
static int build_identities(struct abx_policy *policy, const struct sources *from, struct abx_err *err)
{
	size_t n = from->document ? from->document->n_identities : 0;
	char all[] = "*";
	char *everything[] = { all, NULL };

	policy->identities = calloc(n + 1, sizeof(*policy->identities));
	if (!policy->identities)
		return out_of_memory(err);
	for (size_t i = 0; i < n; i++) {
		const struct abx_identity *given = &from->document->identities[i];

		if (add_identity(policy, given->id, given->scopes, given->has_token ? given->token_hash : NULL, err) < 0)
			return -1;
	}
	if (from->settings->token)
		return add_admin(policy, from->settings->token, everything, err);
	policy->local = n == 0;
	return policy->local ? add_identity(policy, "anonymous", everything, NULL, err) : 0;
}

/* ---- the whole */

static int copy_settings(const struct abx_settings *settings, struct abx_policy *policy, struct abx_err *err)
{
	policy->run_dir = strdup(settings->run_dir ? settings->run_dir : "");
	policy->spool_dir = strdup(settings->spool_dir ? settings->spool_dir : "");
	policy->commands_dir = strdup(settings->commands_dir);
	policy->mount_prefix = strdup(settings->mount_prefix);
	policy->host = strdup(settings->host);
	policy->allowed_origins = split_list(settings->allowed_origins);
	policy->port = settings->port;
	policy->pty_port = settings->pty_port;
	policy->max_upload = settings->max_upload;
	policy->log_level = settings->log_level;
	policy->log_json = settings->log_json;
	if (!policy->run_dir || !policy->spool_dir || !policy->commands_dir || !policy->mount_prefix || !policy->host ||
	    !policy->allowed_origins)
		return out_of_memory(err);
	return 0;
}

static int copy_document(const struct sources *from, struct abx_policy *policy, struct abx_err *err)
{
	const struct abx_document *document = from->document;

	policy->configured = document != NULL;
	policy->preset = strdup(from->preset->name);
	policy->base_dir = strdup(document && document->base_dir ? document->base_dir : from->settings->base_dir);
	policy->revision = strdup(document ? document->revision : "");
	policy->code = abx_code_current() ? strdup(abx_code_current()->text) : NULL;
	policy->warnings = calloc(1, sizeof(*policy->warnings));
	policy->secrets = calloc(1, sizeof(*policy->secrets));
	if (!policy->preset || !policy->base_dir || !policy->revision || !policy->warnings || !policy->secrets ||
	    (abx_code_current() && !policy->code))
		return out_of_memory(err);
	if (!document) {
		/* Of no document the revision is that of an empty one. */
		free(policy->revision);
		policy->revision = calloc(1, 17);
		if (!policy->revision)
			return out_of_memory(err);
		abx_digest_hex("{}", 2, policy->revision, 16);
		return 0;
	}
	memcpy(policy->cage_off, document->cage_off, sizeof(policy->cage_off));
	policy->audit_all = document->audit_all;
	policy->audit_file = document->audit_file ? strdup(document->audit_file) : NULL;
	if (document->audit_file && !policy->audit_file)
		return out_of_memory(err);
	for (char *const *name = document->secrets; name && *name; name++)
		if (abx_list_add(&policy->secrets, *name) < 0)
			return out_of_memory(err);
	for (char *const *text = document->warnings; text && *text; text++)
		if (abx_policy_warn(policy, err, "%s", *text) < 0)
			return -1;
	return 0;
}

struct abx_policy *abx_policy_build(const struct abx_settings *settings, const struct abx_document *document, struct abx_err *err)
{
	const char *preset_name = document && document->preset ? document->preset : "default";
	abx_auto_document struct abx_document *preset = abx_preset_load(preset_name, err);
	const struct sources from = { .settings = settings, .document = document, .preset = preset };
	struct abx_policy *policy = calloc(1, sizeof(*policy));

	if (!preset || !policy) {
		if (preset)
			out_of_memory(err);
		abx_policy_free(policy);
		return NULL;
	}
	if (copy_settings(settings, policy, err) < 0 || copy_document(&from, policy, err) < 0 || build_identities(policy, &from, err) < 0 ||
	    build_rules(policy, &from, err) < 0 || abx_policy_warn_idle(policy, document, err) < 0) {
		abx_policy_free(policy);
		return NULL;
	}
	return policy;
}
