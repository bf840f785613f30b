/* The published form: one JSON document in a sealed memfd. A reader trusts it, since only abxd can have written it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy/code.h"
#include "policy/policy.h"

/* ---- writing */

static json_t *list_to_json(char *const *list)
{
	json_t *array = json_array();

	for (; list && *list; list++)
		json_array_append_new(array, json_string_nocheck(*list));
	return array;
}

static json_t *limits_to_json(const struct abx_limits *limits)
{
	return json_pack("[IIIIII]", (json_int_t)limits->timeout_seconds, (json_int_t)limits->max_output_bytes,
			 (json_int_t)limits->max_bytes, (json_int_t)limits->max_files, (json_int_t)limits->max_depth,
			 (json_int_t)limits->max_duration_seconds);
}

static json_t *identities_to_json(const struct abx_policy *policy)
{
	json_t *array = json_array();

	for (size_t i = 0; i < policy->n_identities; i++) {
		const struct abx_identity *identity = &policy->identities[i];
		char hex[2 * ABX_TOKEN_HASH + 1] = "";

		for (size_t k = 0; identity->has_token && k < ABX_TOKEN_HASH; k++)
			snprintf(hex + 2 * k, 3, "%02x", identity->token_hash[k]);
		json_array_append_new(array, json_pack("{ss ss so}", "id", identity->id, "hash", hex, "scopes",
						       list_to_json(identity->scopes)));
	}
	return array;
}

/* Most rules say little: what they leave open is left out. */
static json_t *rule_to_json(const struct abx_rule *rule, size_t n_identities)
{
	json_t *json = json_pack("{sb ss ss so so sI si}", "enabled", rule->enabled, "rule", rule->rule, "values_rule",
				 rule->values_rule, "scopes", list_to_json(rule->scopes), "limits", limits_to_json(&rule->limits),
				 "max_timeout", (json_int_t)rule->max_timeout, "given", (int)rule->given);
	const struct abx_confine_limits *limits = &rule->confine_limits;
	char name[16];

	if (rule->scopes_from_policy)
		json_object_set_new(json, "scopes_from_policy", json_true());
	if (rule->rate.count)
		json_object_set_new(json, "rate", json_pack("[II]", (json_int_t)rule->rate.count, (json_int_t)rule->rate.window_ms));
	if (rule->max_concurrent)
		json_object_set_new(json, "max_concurrent", json_integer(rule->max_concurrent));
	if (rule->keep_existing)
		json_object_set_new(json, "keep_existing", json_true());
	if (rule->block_private_networks)
		json_object_set_new(json, "block_private_networks", json_true());
	if (rule->confine)
		json_object_set_new(json, "confine", json_pack("[iIII]", (int)rule->confine, (json_int_t)limits->max_memory_bytes,
								(json_int_t)limits->max_processes, (json_int_t)limits->max_cpu_seconds));
	for (size_t i = 0; i < ABX_RULE_LIST__COUNT; i++) {
		snprintf(name, sizeof(name), "list%zu", i);
		if (rule->lists[i])
			json_object_set_new(json, name, list_to_json(rule->lists[i]));
	}
	if (rule->slots) {
		json_t *slots = json_array();

		for (size_t i = 0; i < n_identities; i++)
			json_array_append_new(slots, json_integer(rule->slots[i]));
		json_object_set_new(json, "slots", slots);
	}
	return json;
}

static json_t *rules_to_json(const struct abx_policy *policy)
{
	json_t *array = json_array();

	for (size_t i = 0; i < abx_endpoint_count(); i++)
		json_array_append_new(array, rule_to_json(&policy->rules[i], policy->n_identities));
	return array;
}

static json_t *cages_to_json(const struct abx_policy *policy)
{
	json_t *array = json_array();

	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		json_array_append_new(array, json_boolean(policy->cage_off[g]));
	return array;
}

static json_t *policy_to_json(const struct abx_policy *p)
{
	return json_pack("{ss ss sb ss ss ss ss ss ss so si si sI si sb sb so so so so so ss? sb ss?}", "preset", p->preset, "revision",
			 p->revision, "configured", p->configured, "base_dir", p->base_dir, "run_dir", p->run_dir, "spool_dir",
			 p->spool_dir, "commands_dir", p->commands_dir, "mount_prefix", p->mount_prefix, "host", p->host,
			 "allowed_origins", list_to_json(p->allowed_origins), "port", p->port, "pty_port", p->pty_port, "max_upload",
			 (json_int_t)p->max_upload, "log_level", (int)p->log_level, "log_json", p->log_json, "local", p->local,
			 "identities", identities_to_json(p), "rules", rules_to_json(p), "warnings",
			 list_to_json(p->warnings), "secrets", list_to_json(p->secrets), "cages", cages_to_json(p), "audit_file",
			 p->audit_file, "audit_all", p->audit_all, "code", p->code);
}

int abx_policy_publish(const struct abx_policy *policy, struct abx_err *err)
{
	abx_auto_fd int fd = memfd_create("abx-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	json_auto_t *json = policy_to_json(policy);

	if (fd < 0)
		return abx_err_errno(err, errno, "Cannot make the published policy");
	if (!json || json_dumpfd(json, fd, JSON_COMPACT) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Cannot write the published policy");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return abx_err_errno(err, errno, "Cannot seal the published policy");
	return abx_steal_fd(&fd);
}

/* ---- reading */

static char *copy_text(const json_t *text)
{
	return json_is_string(text) ? strdup(json_string_value(text)) : NULL;
}

/* Strings of a JSON array as a list; NULL when out of memory or the array is not what was published. */
static char **list_from_json(const json_t *array)
{
	char **list = calloc(json_array_size(array) + 1, sizeof(*list));
	const json_t *item;
	size_t i;

	if (!list)
		return NULL;
	json_array_foreach(array, i, item) list[i] = copy_text(item);
	return list;
}

static void limits_from_json(const json_t *array, struct abx_limits *limits)
{
	int64_t *const fields[] = { &limits->timeout_seconds, &limits->max_output_bytes, &limits->max_bytes,
				    &limits->max_files,	      &limits->max_depth,	 &limits->max_duration_seconds };

	for (size_t i = 0; i < ABX_N(fields); i++)
		*fields[i] = json_integer_value(json_array_get(array, i));
}

static int identities_from_json(struct abx_policy *policy, const json_t *array)
{
	const json_t *item;
	size_t i;

	policy->identities = calloc(json_array_size(array) + 1, sizeof(*policy->identities));
	if (!policy->identities)
		return -1;
	json_array_foreach(array, i, item) {
		struct abx_identity *identity = &policy->identities[i];
		const char *hex = json_string_value(json_object_get(item, "hash"));

		policy->n_identities = i + 1;
		identity->id = copy_text(json_object_get(item, "id"));
		identity->scopes = list_from_json(json_object_get(item, "scopes"));
		identity->has_token = hex && *hex;
		for (size_t k = 0; identity->has_token && k < ABX_TOKEN_HASH; k++)
			sscanf(hex + 2 * k, "%2hhx", &identity->token_hash[k]);
		if (!identity->id || !identity->scopes)
			return -1;
	}
	return 0;
}

static int slots_from_json(struct abx_rule *rule, const json_t *array, size_t n_identities)
{
	const json_t *item;
	size_t i;

	if (!array)
		return 0;
	rule->slots = calloc(n_identities, sizeof(*rule->slots));
	if (!rule->slots || json_array_size(array) != n_identities)
		return -1;
	json_array_foreach(array, i, item) rule->slots[i] = (int32_t)json_integer_value(item);
	return 0;
}

static int rule_from_json(struct abx_rule *rule, const json_t *json, size_t n_identities)
{
	const json_t *rate = json_object_get(json, "rate"), *confine = json_object_get(json, "confine");
	char name[16];

	rule->enabled = json_is_true(json_object_get(json, "enabled"));
	rule->rule = copy_text(json_object_get(json, "rule"));
	rule->values_rule = copy_text(json_object_get(json, "values_rule"));
	rule->scopes = list_from_json(json_object_get(json, "scopes"));
	rule->scopes_from_policy = json_is_true(json_object_get(json, "scopes_from_policy"));
	limits_from_json(json_object_get(json, "limits"), &rule->limits);
	rule->max_timeout = json_integer_value(json_object_get(json, "max_timeout"));
	rule->given = (unsigned)json_integer_value(json_object_get(json, "given"));
	rule->rate.count = json_integer_value(json_array_get(rate, 0));
	rule->rate.window_ms = json_integer_value(json_array_get(rate, 1));
	rule->max_concurrent = json_integer_value(json_object_get(json, "max_concurrent"));
	rule->keep_existing = json_is_true(json_object_get(json, "keep_existing"));
	rule->block_private_networks = json_is_true(json_object_get(json, "block_private_networks"));
	rule->confine = (unsigned)json_integer_value(json_array_get(confine, 0));
	rule->confine_limits.max_memory_bytes = json_integer_value(json_array_get(confine, 1));
	rule->confine_limits.max_processes = json_integer_value(json_array_get(confine, 2));
	rule->confine_limits.max_cpu_seconds = json_integer_value(json_array_get(confine, 3));
	for (size_t i = 0; i < ABX_RULE_LIST__COUNT; i++) {
		snprintf(name, sizeof(name), "list%zu", i);
		if (json_object_get(json, name) && !(rule->lists[i] = list_from_json(json_object_get(json, name))))
			return -1;
	}
	if (slots_from_json(rule, json_object_get(json, "slots"), n_identities) < 0)
		return -1;
	return rule->rule && rule->values_rule && rule->scopes ? 0 : -1;
}

static int rules_from_json(struct abx_policy *policy, const json_t *array)
{
	const json_t *item;
	size_t i;

	if (json_array_size(array) != abx_endpoint_count())
		return -1;
	policy->rules = calloc(abx_endpoint_count(), sizeof(*policy->rules));
	if (!policy->rules)
		return -1;
	json_array_foreach(array, i, item)
		if (rule_from_json(&policy->rules[i], item, policy->n_identities) < 0)
			return -1;
	return 0;
}

/* What the parts of the document are, before they are copied. */
struct parts {
	const char *preset, *revision, *base_dir, *run_dir, *spool_dir, *commands_dir, *mount_prefix, *host;
	json_t *origins, *identities, *rules, *warnings, *secrets, *cages, *audit_file, *code;
};

static int copy_texts(struct abx_policy *p, const struct parts *parts)
{
	const struct {
		char **to;
		const char *from;
	} texts[] = {
		{ &p->preset, parts->preset },		   { &p->revision, parts->revision },	{ &p->base_dir, parts->base_dir },
		{ &p->run_dir, parts->run_dir },	   { &p->spool_dir, parts->spool_dir }, { &p->commands_dir, parts->commands_dir },
		{ &p->mount_prefix, parts->mount_prefix }, { &p->host, parts->host },
	};

	for (size_t i = 0; i < ABX_N(texts); i++) {
		*texts[i].to = strdup(texts[i].from);
		if (!*texts[i].to)
			return -1;
	}
	p->audit_file = copy_text(parts->audit_file);
	p->code = copy_text(parts->code);
	return (json_is_string(parts->audit_file) && !p->audit_file) || (json_is_string(parts->code) && !p->code) ? -1 : 0;
}

static int policy_from_json(struct abx_policy *p, json_t *json)
{
	int configured, log_level, log_json, local, audit_all;
	struct parts parts = { .preset = NULL };
	json_int_t max_upload;

	if (json_unpack(json, "{ss ss sb ss ss ss ss ss ss so si si sI si sb sb so so so so so so sb so}", "preset", &parts.preset,
			"revision", &parts.revision, "configured", &configured, "base_dir", &parts.base_dir, "run_dir", &parts.run_dir,
			"spool_dir", &parts.spool_dir, "commands_dir", &parts.commands_dir, "mount_prefix", &parts.mount_prefix, "host",
			&parts.host, "allowed_origins", &parts.origins, "port", &p->port, "pty_port", &p->pty_port, "max_upload",
			&max_upload, "log_level", &log_level, "log_json", &log_json, "local", &local, "identities", &parts.identities,
			"rules", &parts.rules, "warnings", &parts.warnings, "secrets", &parts.secrets,
			"cages", &parts.cages, "audit_file", &parts.audit_file, "audit_all", &audit_all, "code", &parts.code) < 0)
		return -1;
	p->configured = configured;
	p->max_upload = max_upload;
	p->log_level = (enum abx_log_level)log_level;
	p->log_json = log_json;
	p->local = local;
	p->audit_all = audit_all;
	p->allowed_origins = list_from_json(parts.origins);
	p->warnings = list_from_json(parts.warnings);
	p->secrets = list_from_json(parts.secrets);
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		p->cage_off[g] = json_is_true(json_array_get(parts.cages, g));
	if (!p->allowed_origins || !p->warnings || !p->secrets || copy_texts(p, &parts) < 0 ||
	    identities_from_json(p, parts.identities) < 0)
		return -1;
	return rules_from_json(p, parts.rules);
}

struct abx_policy *abx_policy_load(int fd, struct abx_err *err)
{
	json_error_t json_error;
	struct abx_policy *policy;
	json_auto_t *json = NULL;
	abx_auto_free char *text = NULL;
	off_t size = lseek(fd, 0, SEEK_END);

	/* pread, since the offset is shared with every other reader of the descriptor. */
	text = size > 0 ? malloc((size_t)size) : NULL;
	if (!text || pread(fd, text, (size_t)size, 0) != size) {
		abx_err_set(err, ABX_E_INTERNAL, "Cannot read the published policy: is this program started by abxd?");
		return NULL;
	}
	json = json_loadb(text, (size_t)size, 0, &json_error);
	policy = calloc(1, sizeof(*policy));
	/* The routes of the template's own code are rows, and the rules are counted over all rows. */
	if (!json || !policy || abx_code_adopt(json_string_value(json_object_get(json, "code"))) < 0 || policy_from_json(policy, json) < 0) {
		abx_policy_free(policy);
		abx_err_set(err, ABX_E_INTERNAL, "The published policy is not of this version");
		return NULL;
	}
	return policy;
}
