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

struct abx_document;

struct abx_identity {
	char *id;
	bool has_token;
	unsigned char token_hash[ABX_TOKEN_HASH];
	char **scopes; /* NULL-terminated */
};

/* At most `count` calls in any window of this length. */
struct abx_rate {
	int64_t count; /* 0: no rate */
	int64_t window_ms;
};

/* The lists of a rule. An allow list that is there and empty allows nothing; one that is NULL does not restrict. */
enum abx_rule_list {
	ABX_ALLOW_PATHS,      /* absolute: trees, or globs (abx_glob_path) */
	ABX_DENY_PATHS,
	ABX_ALLOW_COMMANDS,   /* globs on the argv joined by spaces */
	ABX_DENY_COMMANDS,
	ABX_ALLOW_EXTENSIONS, /* ".py"; "" is a name without one */
	ABX_DENY_EXTENSIONS,
	ABX_ALLOW_LANGUAGES,
	ABX_ALLOW_VARIABLES,  /* globs */
	ABX_DENY_VARIABLES,
	ABX_ALLOW_URLS,       /* globs, see policy/url.h */
	ABX_DENY_URLS,
	ABX_RULE_LIST__COUNT
};

/* The keys of an endpoint, as bits: which of them a document gives. */
enum abx_key {
	ABX_KEY_ENABLED = 1 << 0,
	ABX_KEY_SCOPES = 1 << 1,
	ABX_KEY_PATHS = 1 << 2,
	ABX_KEY_COMMANDS = 1 << 3,
	ABX_KEY_EXTENSIONS = 1 << 4,
	ABX_KEY_OVERWRITE = 1 << 5,
	ABX_KEY_LANGUAGES = 1 << 6,
	ABX_KEY_VARIABLES = 1 << 7,
	ABX_KEY_URLS = 1 << 8,
	ABX_KEY_CONFINE = 1 << 9,
	ABX_KEY_TIMEOUT = 1 << 10,
	ABX_KEY_MAX_OUTPUT = 1 << 11,
	ABX_KEY_MAX_BYTES = 1 << 12,
	ABX_KEY_MAX_FILES = 1 << 13,
	ABX_KEY_MAX_DEPTH = 1 << 14,
	ABX_KEY_MAX_DURATION = 1 << 15,
	ABX_KEY_RATE = 1 << 16,
	ABX_KEY_CONCURRENT = 1 << 17,
	ABX_KEY__END = 1 << 18
};

#define ABX_KEYS 18

/* What the kernel enforces on a child. */
enum abx_confine {
	ABX_CONFINE_FILESYSTEM = 1 << 0,
	ABX_CONFINE_NETWORK = 1 << 1,
	ABX_CONFINE_NO_NEW_PRIVS = 1 << 2,
	ABX_CONFINE_LIMITS = 1 << 3 /* one of these at least */
};

/* 0: no limit. */
struct abx_confine_limits {
	int64_t max_memory_bytes, max_processes, max_cpu_seconds;
};

/* What the policy says of one endpoint. Values are asked for with the functions of policy/evaluate.h. */
struct abx_rule {
	bool enabled;
	char *rule;              /* the name of the rule that decided `enabled` */
	char *values_rule;       /* "policy:endpoints.<id>": what a refusal of a value names */
	char **scopes;           /* NULL-terminated: all of them are needed */
	bool scopes_from_policy; /* else they are the endpoint's own */
	struct abx_limits limits;
	unsigned given;          /* enum abx_key: what the policy says */
	int64_t max_timeout;     /* seconds that a caller may ask for at most; 0: any number */
	struct abx_rate rate;
	int64_t max_concurrent;  /* 0: any number */
	char **lists[ABX_RULE_LIST__COUNT]; /* each NULL-terminated, or NULL */
	bool keep_existing;      /* overwrite: false */
	bool block_private_networks;
	unsigned confine;        /* enum abx_confine */
	struct abx_confine_limits confine_limits;
	int32_t *slots;          /* per identity: the place of its counters on the board; NULL without rate and max_concurrent */
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
	char **secrets;         /* NULL-terminated names of variables that held tokens: they never reach a child */
	char *audit_file;       /* NULL: none */
	bool audit_all;
	bool cage_off[ABX_GROUP__COUNT]; /* the responder's own confinement is switched off */
	char **warnings;        /* NULL-terminated */
	char *code;             /* the table of the template's own code (policy/code.h), or NULL: there is none */
};

/* Decide. `document` may be NULL: there is none. Returns a policy that abx_policy_free frees, or NULL. */
struct abx_policy *abx_policy_build(const struct abx_settings *settings, const struct abx_document *document, struct abx_err *err);

/* Add a warning. */
int abx_policy_warn(struct abx_policy *policy, struct abx_err *err, const char *fmt, ...) ABX_PRINTF(3, 4);

/* Write the policy to a new sealed memfd (close-on-exec). Returns the descriptor, or -1. */
int abx_policy_publish(const struct abx_policy *policy, struct abx_err *err);

/* Read a published policy from its start; `fd` stays open. Returns a policy that abx_policy_free frees, or NULL. */
struct abx_policy *abx_policy_load(int fd, struct abx_err *err);

void abx_policy_free(struct abx_policy *policy);

/* Free what a rule holds, not the rule. */
void abx_rule_release(struct abx_rule *rule);

/* A list of strings: copy it, add a copy of `item` to it, free it. The first two return NULL and -1 when out of memory. */
char **abx_list_copy(char *const *list);
int abx_list_add(char ***list, const char *item);
void abx_list_free(char **list);

/* Take out the strings that begin with `prefix`. */
void abx_list_drop(char **list, const char *prefix);

static inline const struct abx_rule *abx_policy_rule(const struct abx_policy *policy, const struct abx_endpoint *endpoint)
{
	return &policy->rules[abx_endpoint_index(endpoint)];
}

/* The sentence that says why an endpoint is off and how to turn it on (`003`, "Capability groups"). Appends to `out`. */
void abx_policy_explain_disabled(const struct abx_endpoint *endpoint, const char *rule, struct abx_strbuf *out);

/* Whether one of the identity's scopes covers each of the scopes that are needed: the same name, "*", or "prefix:*". */
bool abx_policy_scopes_allow(char *const *held, char *const *needed);

/* The rule that a refusal for want of a scope names. */
const char *abx_rule_scopes_name(const struct abx_rule *rule);

/* "10/min". */
#define ABX_RATE_TEXT 32
void abx_rate_text(const struct abx_rate *rate, char out[ABX_RATE_TEXT]);

/* The values of the headers that carry credentials. A second one differs from the first: that there is one is an error, so there is no need of a third. */
struct abx_credentials {
	const char *access_tokens[2];
	size_t n_access_tokens;
	const char *authorizations[2];
	size_t n_authorizations;
};

/*
 * Who is calling (contract, section 4): the identity, or NULL with ABX_E_AMBIGUOUS_CREDENTIALS or ABX_E_UNAUTHORIZED. In local mode
 * the credentials are not looked at. Every hash is compared whatever matched, in constant time.
 */
const struct abx_identity *abx_policy_authenticate(const struct abx_policy *policy, const struct abx_credentials *creds,
						   struct abx_err *err);

#endif
