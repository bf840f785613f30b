/* The published form: one JSON document in a sealed memfd. A reader trusts it, since only abxd can have written it. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy/policy.h"

static json_t *list_to_json(char *const *list)
{
	json_t *array = json_array();

	for (; list && *list; list++)
		json_array_append_new(array, json_string(*list));
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

static json_t *rules_to_json(const struct abx_policy *policy)
{
	json_t *array = json_array();

	for (size_t i = 0; i < abx_endpoint_count(); i++) {
		const struct abx_rule *rule = &policy->rules[i];

		json_array_append_new(array, json_pack("{sb ss so so}", "enabled", rule->enabled, "rule", rule->rule,
						       "scopes", list_to_json(rule->scopes), "limits",
						       limits_to_json(&rule->limits)));
	}
	return array;
}

static json_t *policy_to_json(const struct abx_policy *p)
{
	return json_pack("{ss ss sb ss ss ss ss ss ss so si si sI si sb so so so}", "preset", p->preset, "revision",
			 p->revision, "configured", p->configured, "base_dir", p->base_dir, "run_dir", p->run_dir,
			 "spool_dir", p->spool_dir, "commands_dir", p->commands_dir, "mount_prefix", p->mount_prefix,
			 "host", p->host, "allowed_origins", list_to_json(p->allowed_origins), "port", p->port,
			 "pty_port", p->pty_port, "max_upload", (json_int_t)p->max_upload, "log_level",
			 (int)p->log_level, "log_json", p->log_json, "identities", identities_to_json(p), "rules",
			 rules_to_json(p), "warnings", list_to_json(p->warnings));
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

/* Strings of a JSON array as a list; NULL when out of memory or the array is not what was published. */
static char **list_from_json(const json_t *array)
{
	char **list = calloc(json_array_size(array) + 1, sizeof(*list));
	const json_t *item;
	size_t i;

	if (!list)
		return NULL;
	json_array_foreach(array, i, item) list[i] = strdup(json_string_value(item));
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

	policy->identities = calloc(json_array_size(array), sizeof(*policy->identities));
	if (!policy->identities)
		return -1;
	policy->local = true;
	json_array_foreach(array, i, item) {
		struct abx_identity *identity = &policy->identities[i];
		const char *hex = json_string_value(json_object_get(item, "hash"));

		policy->n_identities = i + 1;
		identity->id = strdup(json_string_value(json_object_get(item, "id")));
		identity->scopes = list_from_json(json_object_get(item, "scopes"));
		identity->has_token = hex && *hex;
		for (size_t k = 0; identity->has_token && k < ABX_TOKEN_HASH; k++)
			sscanf(hex + 2 * k, "%2hhx", &identity->token_hash[k]);
		policy->local &= !identity->has_token;
	}
	return 0;
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
	json_array_foreach(array, i, item) {
		struct abx_rule *rule = &policy->rules[i];

		rule->enabled = json_is_true(json_object_get(item, "enabled"));
		rule->rule = strdup(json_string_value(json_object_get(item, "rule")));
		rule->scopes = list_from_json(json_object_get(item, "scopes"));
		limits_from_json(json_object_get(item, "limits"), &rule->limits);
	}
	return 0;
}

static int policy_from_json(struct abx_policy *p, json_t *json)
{
	const char *preset, *revision, *base_dir, *run_dir, *spool_dir, *commands_dir, *mount_prefix, *host;
	json_t *origins, *identities, *rules, *warnings;
	int configured, log_level, log_json;
	json_int_t max_upload;

	if (json_unpack(json, "{ss ss sb ss ss ss ss ss ss so si si sI si sb so so so}", "preset", &preset, "revision",
			&revision, "configured", &configured, "base_dir", &base_dir, "run_dir", &run_dir, "spool_dir",
			&spool_dir, "commands_dir", &commands_dir, "mount_prefix", &mount_prefix, "host", &host,
			"allowed_origins", &origins, "port", &p->port, "pty_port", &p->pty_port, "max_upload",
			&max_upload, "log_level", &log_level, "log_json", &log_json, "identities", &identities, "rules",
			&rules, "warnings", &warnings) < 0)
		return -1;
	p->preset = strdup(preset);
	p->revision = strdup(revision);
	p->configured = configured;
	p->base_dir = strdup(base_dir);
	p->run_dir = strdup(run_dir);
	p->spool_dir = strdup(spool_dir);
	p->commands_dir = strdup(commands_dir);
	p->mount_prefix = strdup(mount_prefix);
	p->host = strdup(host);
	p->max_upload = max_upload;
	p->log_level = (enum abx_log_level)log_level;
	p->log_json = log_json;
	p->allowed_origins = list_from_json(origins);
	p->warnings = list_from_json(warnings);
	if (identities_from_json(p, identities) < 0)
		return -1;
	return rules_from_json(p, rules);
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
	if (!json || !policy || policy_from_json(policy, json) < 0) {
		abx_policy_free(policy);
		abx_err_set(err, ABX_E_INTERNAL, "The published policy is not of this version");
		return NULL;
	}
	return policy;
}
