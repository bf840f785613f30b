/*
 * A policy document after it was checked: everything that it says, and nothing that it leaves open.
 */
#ifndef ABX_DOCUMENT_H
#define ABX_DOCUMENT_H

#include "policy/node.h"
#include "policy/policy.h"

/* What the document says of one endpoint. */
struct abx_entry {
	char *id;            /* of a custom route, else NULL */
	int line;            /* 0: nothing */
	struct {
		const char *name; /* as abx_key_name has it, or of the last of several keys that share a bit */
		int line;
	} keys[ABX_KEYS];    /* by the number of the bit, those that are given */
	bool enabled;
	struct abx_rule values; /* those that are given; a limit of 0 is not */
};

struct abx_document {
	char *name; /* the file, or "ABX_SERVER_POLICY" */
	char *preset;
	char *base_dir;                         /* NULL: not given */
	signed char groups[ABX_GROUP__COUNT];   /* -1: not given */
	struct abx_entry *entries;              /* by abx_endpoint_index */
	struct abx_entry *custom;
	size_t n_custom;
	struct abx_identity *identities;
	size_t n_identities;
	char **secrets; /* the variables that token_env names; NULL-terminated, or NULL */
	char *audit_file;
	bool audit_all;
	bool cage_off[ABX_GROUP__COUNT];
	bool is_absent; /* a template that has no policy */
	char revision[17];
	char **warnings; /* NULL-terminated, or NULL */
};

/* How to take a document. */
struct abx_document_source {
	const char *name;       /* for messages; a name that ends in template.yaml is a template's, whatever it holds */
	bool json_only;
	struct abx_settings *settings; /* keeps the hashes of tokens that were read from the environment */
	char *const *env;       /* where token_env is looked up; NULL: nowhere, so that identities have no token */
};

/*
 * Check a document and take what it says. Failures are ABX_E_VALUE: "<name>:<line>: <key>: …". Returns a document that abx_document_free
 * frees, or NULL.
 */
struct abx_document *abx_document_parse(const struct abx_document_source *source, const char *text, size_t len, struct abx_err *err);

/* Read a file of at most ABX_NODE_SIZE bytes, and parse it. */
struct abx_document *abx_document_read(const struct abx_document_source *source, const char *path, struct abx_err *err);

/*
 * The document that the settings name: a file, the value itself, or the default file where it exists, or the template's where that holds a policy. 0 with *ret_document, which is NULL when there is none.
 */
int abx_document_load(struct abx_settings *settings, char *const *env, struct abx_document **ret_document, struct abx_err *err);

/* The document of a preset. */
struct abx_document *abx_preset_load(const char *name, struct abx_err *err);

void abx_document_free(struct abx_document *document);

static inline void abx_cleanup_document(struct abx_document **document)
{
	abx_document_free(*document);
}
#define abx_auto_document __attribute__((cleanup(abx_cleanup_document)))

/* How a document spells a key ("limits.max_bytes"), or NULL where several keys share the bit. */
const char *abx_key_name(enum abx_key key);

/* The number of the bit. */
static inline unsigned abx_key_number(enum abx_key key)
{
	return (unsigned)__builtin_ctz(key);
}

/* What a key can do on an endpoint. */
enum abx_key_effect { ABX_KEY_WORKS, ABX_KEY_IDLE, ABX_KEY_LATER /* nothing runs there yet */, ABX_KEY_UNFINISHED };
enum abx_key_effect abx_key_effect(const struct abx_endpoint *endpoint, enum abx_key key);

/* What the layers say of an endpoint, weakest first: the last one decides. */
struct abx_decision {
	bool enabled;
	char rule[ABX_RULE_SIZE];
};

struct abx_decisions {
	struct abx_decision steps[8];
	size_t n;
};

void abx_policy_decide(const struct abx_settings *settings, const struct abx_document *document, const struct abx_document *preset,
		       const struct abx_endpoint *endpoint, struct abx_decisions *ret_decisions);

/* Add warnings for rules of the document that cannot have an effect in this policy (warnings.c). */
int abx_policy_warn_idle(struct abx_policy *policy, const struct abx_document *document, struct abx_err *err);

/* Add warnings for programs that an endpoint needs and that are not in the directories of `path`. */
int abx_policy_warn_runtimes(struct abx_policy *policy, const char *path, struct abx_err *err);

/* The word of `words` (NULL-terminated) that `word` may be a slip of, or NULL. */
const char *abx_suggest(const char *word, const char *const *words);

#endif
