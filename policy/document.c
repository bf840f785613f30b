#include "policy/document.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/auto.h"
#include "policy/digest.h"
#include "policy/schema.h"

#define POLICY_FILE ABX_SYSCONFDIR "/policy.yaml"

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

/* ---- the keys of the document itself */

static int take_version(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED,
			void *target ABX_UNUSED, struct abx_err *err)
{
	if (abx_expect(r, node, ABX_NODE_INT, err) < 0)
		return -1;
	return node->integer == 1 ? 0 : abx_complain(r, node->line, err, "must be 1: this server knows no other version");
}

static int take_preset(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
		       struct abx_err *err)
{
	struct abx_document *document = target;

	if (abx_take_text(r, node, schema, target, err) < 0)
		return -1;
	for (const char *const *name = abx_preset_names; *name; name++)
		if (strcmp(*name, document->preset) == 0)
			return 0;
	return abx_complain_unknown(r, node->line, "preset", document->preset, abx_preset_names, err);
}

/* A path that goes into configuration files. */
static int take_absolute(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			 struct abx_err *err)
{
	if (abx_take_text(r, node, schema, target, err) < 0)
		return -1;
	if (*node->text != '/')
		return abx_complain(r, node->line, err, "'%s' is not an absolute path", node->text);
	if (strpbrk(node->text, "\"\\\n\r"))
		return abx_complain(r, node->line, err, "a path cannot hold a quote, backslash or line break");
	return 0;
}

static int find_group(struct abx_reader *r, int line, const char *name, enum abx_group *ret_group, struct abx_err *err)
{
	const char *words[ABX_GROUP__COUNT + 1] = { NULL };

	*ret_group = abx_group_find(name);
	if (*ret_group != ABX_GROUP__COUNT)
		return 0;
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		words[g] = abx_groups[g].name;
	return abx_complain_unknown(r, line, "group", name, words, err);
}

static int take_group(struct abx_reader *r, struct abx_document *document, int line, const char *name, bool on, struct abx_err *err)
{
	enum abx_group group;

	if (find_group(r, line, name, &group, err) < 0)
		return -1;
	if (group == ABX_GROUP_CORE && !on)
		return abx_complain(r, line, err, "core is always on");
	document->groups[group] = on;
	return 0;
}

/* The value of a member that is on or off: a complaint names its key. */
static int expect_switch(struct abx_reader *r, const struct abx_node *member, struct abx_err *err)
{
	size_t mark = abx_path_push(r, member->key);

	if (abx_expect(r, member, ABX_NODE_BOOL, err) < 0)
		return -1;
	abx_path_pop(r, mark);
	return 0;
}

/* A list of what is also on, or a map that turns on and off. */
static int take_groups(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED, void *target,
		       struct abx_err *err)
{
	bool list = node->type == ABX_NODE_LIST;

	if (node->refused || (node->type != ABX_NODE_MAP && !list))
		return abx_expect(r, node, ABX_NODE_MAP, err);
	for (const struct abx_node *item = node->first; item; item = item->next) {
		if (list ? abx_expect(r, item, ABX_NODE_STRING, err) < 0 : expect_switch(r, item, err) < 0)
			return -1;
		if (take_group(r, target, item->line, list ? item->text : item->key, list || item->boolean, err) < 0)
			return -1;
	}
	return 0;
}

static int complain_endpoint(struct abx_reader *r, const struct abx_node *node, struct abx_err *err)
{
	size_t n = abx_endpoint_count();
	abx_auto_free const char **ids = calloc(n + 1, sizeof(char *));

	for (size_t i = 0; ids && i < n; i++)
		ids[i] = abx_endpoint_at(i)->id;
	return ids ? abx_complain_unknown(r, node->key_line, "endpoint", node->key, ids, err) : out_of_memory(err);
}

static struct abx_entry *add_custom(struct abx_document *document, const char *id)
{
	struct abx_entry *grown = realloc(document->custom, (document->n_custom + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	document->custom = grown;
	grown += document->n_custom;
	*grown = (struct abx_entry){ .id = strdup(id) };
	document->n_custom += grown->id != NULL;
	return grown->id ? grown : NULL;
}

/* Keys that can do nothing there are told; keys that would be believed to do something, and do not, are refused. */
static int check_keys(struct abx_reader *r, const struct abx_entry *entry, const struct abx_endpoint *endpoint, struct abx_err *err)
{
	for (unsigned key = 1; key < ABX_KEY__END; key <<= 1) {
		if (!(entry->values.given & key))
			continue;
		size_t mark = abx_path_push(r, entry->keys[abx_key_number(key)].name);
		int line = entry->keys[abx_key_number(key)].line, result = 0;

		switch (abx_key_effect(endpoint, key)) {
		case ABX_KEY_WORKS:
			break;
		case ABX_KEY_IDLE:
			result = abx_reader_warn(r, line, err, "can have no effect on this endpoint");
			break;
		case ABX_KEY_LATER:
			result = abx_reader_warn(r, line, err, "has no effect yet: the endpoint is not implemented and refuses every call");
			break;
		case ABX_KEY_UNFINISHED:
			result = abx_complain(r, line, err, "is not implemented yet for this endpoint");
			break;
		}
		if (result < 0)
			return -1;
		abx_path_pop(r, mark);
	}
	return 0;
}

/* Routes of a template's own code: whether there is one of this id is known only when that code has registered them. */
static int check_custom_keys(struct abx_reader *r, const struct abx_entry *entry, struct abx_err *err)
{
	const unsigned works = ABX_KEY_ENABLED | ABX_KEY_SCOPES | ABX_KEY_RATE | ABX_KEY_CONCURRENT;

	for (unsigned key = 1; key < ABX_KEY__END; key <<= 1) {
		size_t mark;

		if (!(entry->values.given & key & ~works))
			continue;
		mark = abx_path_push(r, entry->keys[abx_key_number(key)].name);
		if (abx_reader_warn(r, entry->keys[abx_key_number(key)].line, err, "can have no effect on a route of your own") < 0)
			return -1;
		abx_path_pop(r, mark);
	}
	return abx_reader_warn(r, entry->line, err, "no route of your own is registered under this id");
}

static int take_endpoint(struct abx_reader *r, struct abx_document *document, const struct abx_node *node, struct abx_err *err)
{
	const struct abx_endpoint *endpoint = abx_endpoint_find(node->key);
	struct abx_entry *entry;

	if (!endpoint && !strchr(node->key, ' '))
		return complain_endpoint(r, node, err);
	entry = endpoint ? &document->entries[abx_endpoint_index(endpoint)] : add_custom(document, node->key);
	if (!entry)
		return out_of_memory(err);
	entry->line = node->key_line;
	if (abx_schema_take(r, node, abx_endpoint_schema, entry, err) < 0)
		return -1;
	if (!endpoint)
		return check_custom_keys(r, entry, err);
	if (endpoint->group == ABX_GROUP_CORE && (entry->values.given & ABX_KEY_ENABLED) && !entry->enabled)
		return abx_complain(r, node->key_line, err, "core is always on: '%s' cannot be turned off", endpoint->id);
	return check_keys(r, entry, endpoint, err);
}

static int take_endpoints(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED, void *target,
			  struct abx_err *err)
{
	if (abx_expect(r, node, ABX_NODE_MAP, err) < 0)
		return -1;
	for (const struct abx_node *member = node->first; member; member = member->next) {
		size_t mark = abx_path_push(r, member->key);

		if (take_endpoint(r, target, member, err) < 0)
			return -1;
		abx_path_pop(r, mark);
	}
	return 0;
}

/* Programs that confine themselves, by name. */
static int take_cage(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED, void *target,
		     struct abx_err *err)
{
	struct abx_document *document = target;

	if (abx_expect(r, node, ABX_NODE_MAP, err) < 0)
		return -1;
	for (const struct abx_node *member = node->first; member; member = member->next) {
		enum abx_group group;

		if (find_group(r, member->key_line, member->key, &group, err) < 0 || expect_switch(r, member, err) < 0)
			return -1;
		document->cage_off[group] = !member->boolean;
	}
	return 0;
}

static const struct abx_schema audit_schema[] = {
	{ .key = "file", .take = take_absolute, .offset = offsetof(struct abx_document, audit_file) },
	{ .key = "all", .take = abx_take_bool, .offset = offsetof(struct abx_document, audit_all) },
	{ .key = NULL },
};

static int take_audit(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
		      struct abx_err *err)
{
	struct abx_document *document = target;

	if (abx_take_map(r, node, schema, target, err) < 0)
		return -1;
	return document->audit_file ? 0 : abx_complain(r, node->line, err, "the key 'file' is missing");
}

static const struct abx_schema document_schema[] = {
	{ .key = "version", .take = take_version },
	{ .key = "preset", .take = take_preset, .offset = offsetof(struct abx_document, preset) },
	{ .key = "base_dir", .take = take_absolute, .offset = offsetof(struct abx_document, base_dir) },
	{ .key = "groups", .take = take_groups },
	{ .key = "endpoints", .take = take_endpoints },
	{ .key = "identities", .take = abx_take_identities },
	{ .key = "audit", .take = take_audit, .keys = audit_schema },
	{ .key = "cage", .take = take_cage },
	{ .key = NULL },
};

/* ---- the document as a whole */

void abx_document_free(struct abx_document *document)
{
	if (!document)
		return;
	for (size_t i = 0; document->entries && i < abx_endpoint_count(); i++)
		abx_rule_release(&document->entries[i].values);
	for (size_t i = 0; i < document->n_custom; i++) {
		free(document->custom[i].id);
		abx_rule_release(&document->custom[i].values);
	}
	for (size_t i = 0; i < document->n_identities; i++) {
		free(document->identities[i].id);
		abx_list_free(document->identities[i].scopes);
	}
	free(document->entries);
	free(document->custom);
	free(document->identities);
	abx_list_free(document->secrets);
	abx_list_free(document->warnings);
	free(document->audit_file);
	free(document->base_dir);
	free(document->preset);
	free(document->name);
	free(document);
}

static struct abx_document *new_document(const char *name)
{
	struct abx_document *document = calloc(1, sizeof(*document));

	if (!document)
		return NULL;
	memset(document->groups, -1, sizeof(document->groups));
	document->name = strdup(name);
	document->entries = calloc(abx_endpoint_count(), sizeof(*document->entries));
	if (document->name && document->entries)
		return document;
	abx_document_free(document);
	return NULL;
}

static bool is_template(const char *name, const struct abx_node *root)
{
	const char *slash = strrchr(name, '/');

	name = slash ? slash + 1 : name;
	return strcmp(name, "template.yaml") == 0 || strcmp(name, "template.yml") == 0 || abx_node_find(root, "server");
}

/* The policy in the tree: all of it, or the `server:` section of a template. NULL with *err, or where a template has none. */
static const struct abx_node *find_policy(const struct abx_reader *r, const struct abx_node *root, struct abx_err *err)
{
	if (!is_template(r->name, root))
		return root;
	/* Somebody who writes both would have one of them ignored. */
	for (const struct abx_schema *key = document_schema; key->key; key++) {
		const struct abx_node *member = strcmp(key->key, "version") == 0 ? NULL : abx_node_find(root, key->key);

		if (member) {
			abx_complain(r, member->key_line, err,
				     "the key '%s' stands outside of the section 'server', where the policy of a template is", key->key);
			return NULL;
		}
	}
	return abx_node_find(root, "server");
}

/* The first 16 hex digits of SHA-256 over the policy as compact JSON. */
static int take_revision(struct abx_document *document, const struct abx_node *policy, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX(8 * ABX_NODE_SIZE);

	if (policy && policy->type == ABX_NODE_MAP)
		abx_node_canonical(policy, &text);
	else
		abx_strbuf_adds(&text, "{}");
	if (text.failed)
		return out_of_memory(err);
	abx_digest_hex(text.buf, text.len, document->revision, 16);
	return 0;
}

static int take_document(struct abx_reader *r, const struct abx_node *root, struct abx_err *err)
{
	const struct abx_node *policy;

	err->kind = ABX_E_NONE;
	policy = find_policy(r, root, err);
	if (err->kind)
		return -1;
	r->document->is_absent = !policy;
	if (policy && policy != root)
		abx_path_push(r, "server");
	/* A file with comments alone is an empty policy. */
	if (policy && (policy->type != ABX_NODE_NULL || policy->refused) &&
	    abx_schema_take(r, policy, document_schema, r->document, err) < 0)
		return -1;
	return take_revision(r->document, policy, err);
}

struct abx_document *abx_document_parse(const struct abx_document_source *source, const char *text, size_t len, struct abx_err *err)
{
	abx_auto_document struct abx_document *document = new_document(source->name);
	abx_auto_node struct abx_node *root = NULL;
	struct abx_reader r = { .source = source, .document = document, .name = source->name, .path = ABX_STRBUF_INIT };
	int result;

	if (!document) {
		out_of_memory(err);
		return NULL;
	}
	root = abx_nodes_parse(source->name, source->json_only, text, len, err);
	if (!root)
		return NULL;
	result = take_document(&r, root, err);
	abx_strbuf_release(&r.path);
	return result < 0 ? NULL : ABX_STEAL(document);
}

struct abx_document *abx_document_read(const struct abx_document_source *source, const char *path, struct abx_err *err)
{
	size_t len;
	abx_auto_free char *text = abx_node_file(path, &len, err);

	return text ? abx_document_parse(source, text, len, err) : NULL;
}

/* The file that holds the policy, or NULL: there is none. */
static const char *find_file(const struct abx_settings *settings)
{
	if (settings->policy)
		return settings->policy;
	if (access(POLICY_FILE, F_OK) == 0)
		return POLICY_FILE;
	return settings->template_file && access(settings->template_file, F_OK) == 0 ? settings->template_file : NULL;
}

int abx_document_load(struct abx_settings *settings, char *const *env, struct abx_document **ret_document, struct abx_err *err)
{
	struct abx_document_source source = { .name = "ABX_SERVER_POLICY", .json_only = true, .settings = settings, .env = env };
	struct abx_document *document;

	if (settings->policy && *settings->policy == '{') {
		document = abx_document_parse(&source, settings->policy, strlen(settings->policy), err);
	} else {
		source.name = find_file(settings);
		source.json_only = false;
		document = source.name ? abx_document_read(&source, source.name, err) : NULL;
		if (!source.name) {
			*ret_document = NULL;
			return 0;
		}
	}
	if (!document)
		return -1;
	/* A template that nobody named as the policy, and that holds none. */
	if (document->is_absent && !settings->policy) {
		abx_document_free(document);
		document = NULL;
	}
	*ret_document = document;
	return 0;
}
