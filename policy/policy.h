/*
 * The effective policy: what abxd decided from settings, presets and documents, as every responder reads it.
 *
 * abxd builds it once (abx_policy_build), publishes it as a sealed memfd (abx_policy_publish) and each responder loads it from
 * there (abx_policy_load), also after a crash. It holds token hashes, never a token.
 */
#ifndef ABX_POLICY_H
#define ABX_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/endpoint.h"
#include "common/err.h"
#include "common/strbuf.h"
#include "policy/settings.h"

#define ABX_TOKEN_HASH 32 /* SHA-256 */

struct abx_identity {
	char *id;
	bool has_token;
	unsigned char token_hash[ABX_TOKEN_HASH];
	char **scopes; /* NULL-terminated */
};

/* What the policy says of one endpoint. */
struct abx_rule {
	bool enabled;
	char *rule;    /* the name of the rule that decided `enabled` */
	char **scopes; /* NULL-terminated: all of them are needed */
	struct abx_limits limits;
};

struct abx_policy {
	char *preset, *revision;
	bool configured;
	char *base_dir, *run_dir, *spool_dir, *commands_dir, *mount_prefix, *host;
	char **allowed_origins; /* NULL-terminated */
	int port, pty_port;
	int64_t max_upload;
	enum abx_log_level log_level;
	bool log_json;
	struct abx_identity *identities; /* [0] is "anonymous" in local mode */
	size_t n_identities;
	bool local;             /* no identity has a token */
	struct abx_rule *rules; /* by abx_endpoint_index */
	char **warnings;        /* NULL-terminated */
};

/* Decide. Returns a policy that abx_policy_free frees, or NULL. */
struct abx_policy *abx_policy_build(const struct abx_settings *settings, struct abx_err *err);

/* Write the policy to a new sealed memfd (close-on-exec). Returns the descriptor, or -1. */
int abx_policy_publish(const struct abx_policy *policy, struct abx_err *err);

/* Read a published policy from its start; `fd` stays open. Returns a policy that abx_policy_free frees, or NULL. */
struct abx_policy *abx_policy_load(int fd, struct abx_err *err);

void abx_policy_free(struct abx_policy *policy);

static inline const struct abx_rule *abx_policy_rule(const struct abx_policy *policy, const struct abx_endpoint *endpoint)
{
	return &policy->rules[abx_endpoint_index(endpoint)];
}

/* The sentence that says why an endpoint is off and how to turn it on (`003`, "Capability groups"). Appends to `out`. */
void abx_policy_explain_disabled(const struct abx_endpoint *endpoint, const char *rule, struct abx_strbuf *out);

/* Whether one of the identity's scopes covers each of the scopes that are needed: the same name, "*", or "prefix:*". */
bool abx_policy_scopes_allow(char *const *held, char *const *needed);

/* The headers that carry credentials, as the caller sent them: NULL-terminated lists of values, every occurrence and part of its own. */
struct abx_credentials {
	const char *access_tokens[8];
	size_t n_access_tokens;
	const char *authorizations[8];
	size_t n_authorizations;
};

/*
 * Who is calling (contract, section 4): the identity, or NULL with ABX_E_AMBIGUOUS_CREDENTIALS or ABX_E_UNAUTHORIZED. In local mode
 * the credentials are not looked at. Every hash is compared whatever matched, in constant time.
 */
const struct abx_identity *abx_policy_authenticate(const struct abx_policy *policy, const struct abx_credentials *creds,
						   struct abx_err *err);

#endif
