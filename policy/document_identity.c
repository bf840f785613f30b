/* The identities of a document. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "policy/schema.h"

#define ID_MAX 64

/* One identity while it is read. */
struct draft {
	char *id, *token_env, *token_sha256;
	char **scopes;
};

static void draft_release(struct draft *draft)
{
	free(draft->id);
	free(draft->token_env);
	free(draft->token_sha256);
	abx_list_free(draft->scopes);
}

static const struct abx_schema identity_schema[] = {
	{ .key = "id", .take = abx_take_text, .offset = offsetof(struct draft, id) },
	{ .key = "token_env", .take = abx_take_text, .offset = offsetof(struct draft, token_env) },
	{ .key = "token_sha256", .take = abx_take_text, .offset = offsetof(struct draft, token_sha256) },
	{ .key = "scopes", .take = abx_take_texts, .offset = offsetof(struct draft, scopes) },
	{ .key = NULL },
};

/* It goes into logs and audit lines. */
static int check_id(const struct abx_reader *r, const struct abx_node *node, const char *id, struct abx_err *err)
{
	if (!id)
		return abx_complain(r, node->line, err, "the key 'id' is missing");
	if (strlen(id) > ID_MAX)
		return abx_complain(r, node->line, err, "the id is longer than %d characters", ID_MAX);
	for (const char *p = id; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._@:+-", *p))
			return abx_complain(r, node->line, err, "'%s' is not an id: letters, digits and . _ @ : + - are allowed", id);
	if (strcmp(id, "anonymous") == 0)
		return abx_complain(r, node->line, err, "'anonymous' is everybody where there is no token");
	for (size_t i = 0; i < r->document->n_identities; i++)
		if (strcmp(r->document->identities[i].id, id) == 0)
			return abx_complain(r, node->line, err, "the id '%s' is repeated", id);
	return 0;
}

static int hash_from_hex(const struct abx_reader *r, const struct abx_node *node, const char *hex, unsigned char hash[ABX_TOKEN_HASH],
			 struct abx_err *err)
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(hex) != 2 * ABX_TOKEN_HASH || hex[strspn(hex, "0123456789abcdefABCDEF")])
		return abx_complain(r, node->line, err, "token_sha256 must be 64 hex digits");
	for (size_t i = 0; i < ABX_TOKEN_HASH; i++)
		hash[i] = (unsigned char)((strchr(digits, tolower((unsigned char)hex[2 * i])) - digits) << 4 |
					  (strchr(digits, tolower((unsigned char)hex[2 * i + 1])) - digits));
	return 0;
}

static int hash_from_env(struct abx_reader *r, const struct abx_node *node, const char *name, struct abx_identity *identity,
			 struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;

	if (isdigit((unsigned char)*name) || name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")])
		return abx_complain(r, node->line, err, "token_env: '%s' is not the name of a variable", name);
	if (abx_list_add(&r->document->secrets, name) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (!r->source->env)
		return 0;
	if (abx_settings_token_of(r->source->settings, r->source->env, name, identity->token_hash, &why) < 0)
		return abx_complain(r, node->line, err, "token_env: %s", why.message);
	identity->has_token = true;
	return 0;
}

/* Two identities with one token could not be told apart. */
static int check_token(const struct abx_reader *r, const struct abx_node *node, const struct abx_identity *identity, struct abx_err *err)
{
	for (size_t i = 0; identity->has_token && i < r->document->n_identities; i++) {
		const struct abx_identity *other = &r->document->identities[i];

		if (other->has_token && memcmp(other->token_hash, identity->token_hash, ABX_TOKEN_HASH) == 0)
			return abx_complain(r, node->line, err, "has the same token as '%s'", other->id);
	}
	return 0;
}

static int take_token(struct abx_reader *r, const struct abx_node *node, const struct draft *draft, struct abx_identity *identity,
		      struct abx_err *err)
{
	if (!draft->token_env == !draft->token_sha256)
		return abx_complain(r, node->line, err, "give either token_env or token_sha256");
	if (draft->token_env && hash_from_env(r, node, draft->token_env, identity, err) < 0)
		return -1;
	if (draft->token_sha256) {
		if (hash_from_hex(r, node, draft->token_sha256, identity->token_hash, err) < 0)
			return -1;
		identity->has_token = true;
	}
	return check_token(r, node, identity, err);
}

static int take_identity(struct abx_reader *r, const struct abx_node *node, struct abx_err *err)
{
	__attribute__((cleanup(draft_release))) struct draft draft = { .id = NULL };
	struct abx_document *document = r->document;
	struct abx_identity identity = { .id = NULL }, *grown;

	if (abx_schema_take(r, node, identity_schema, &draft, err) < 0 || check_id(r, node, draft.id, err) < 0 ||
	    take_token(r, node, &draft, &identity, err) < 0)
		return -1;
	grown = realloc(document->identities, (document->n_identities + 1) * sizeof(*grown));
	if (!grown)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	document->identities = grown;
	if (!draft.scopes)
		draft.scopes = calloc(1, sizeof(*draft.scopes));
	if (!draft.scopes)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	identity.id = ABX_STEAL(draft.id);
	identity.scopes = ABX_STEAL(draft.scopes);
	grown[document->n_identities++] = identity;
	return 0;
}

int abx_take_identities(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED,
			void *target ABX_UNUSED, struct abx_err *err)
{
	int index = 0;

	if (abx_expect(r, node, ABX_NODE_LIST, err) < 0)
		return -1;
	for (const struct abx_node *item = node->first; item; item = item->next, index++) {
		size_t mark = r->path.len;

		abx_strbuf_addf(&r->path, "[%d]", index);
		if (take_identity(r, item, err) < 0)
			return -1;
		abx_path_pop(r, mark);
	}
	return 0;
}
