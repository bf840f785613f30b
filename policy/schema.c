#include "policy/schema.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 32

static void ABX_PRINTF(4, 0) vcompose(const struct abx_reader *r, int line, struct abx_strbuf *out, const char *fmt, va_list ap)
{
	abx_strbuf_addf(out, "%s:%d: %s%s", r->name, line, r->path.buf, r->path.len ? ": " : "");
	abx_strbuf_vaddf(out, fmt, ap);
}

int abx_complain(const struct abx_reader *r, int line, struct abx_err *err, const char *fmt, ...)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	vcompose(r, line, &text, fmt, ap);
	va_end(ap);
	return abx_err_set(err, ABX_E_VALUE, "%s", text.buf);
}

int abx_reader_warn(const struct abx_reader *r, int line, struct abx_err *err, const char *fmt, ...)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	vcompose(r, line, &text, fmt, ap);
	va_end(ap);
	if (abx_list_add(&r->document->warnings, text.buf) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	return 0;
}

int abx_complain_unknown(const struct abx_reader *r, int line, const char *what, const char *word, const char *const *words,
			 struct abx_err *err)
{
	const char *meant = abx_suggest(word, words);

	if (meant)
		return abx_complain(r, line, err, "unknown %s '%s': did you mean '%s'?", what, word, meant);
	return abx_complain(r, line, err, "unknown %s '%s'", what, word);
}

int abx_expect(const struct abx_reader *r, const struct abx_node *node, enum abx_node_type type, struct abx_err *err)
{
	const struct abx_node wanted = { .type = type };

	if (node->refused)
		return abx_complain(r, node->line, err, "%s is not supported", node->refused);
	if (node->type == type)
		return 0;
	if (type == ABX_NODE_STRING && (node->type == ABX_NODE_INT || node->type == ABX_NODE_REAL || node->type == ABX_NODE_BOOL))
		return abx_complain(r, node->line, err, "must be text, not %s: put it in quotes", abx_node_type_name(node));
	if (type == ABX_NODE_INT && node->type == ABX_NODE_REAL)
		return abx_complain(r, node->line, err, "must be a whole number");
	return abx_complain(r, node->line, err, "must be %s, not %s", abx_node_type_name(&wanted), abx_node_type_name(node));
}

size_t abx_path_push(struct abx_reader *r, const char *key)
{
	size_t mark = r->path.len;

	/* The key of a custom route has a blank and slashes. */
	abx_strbuf_addf(&r->path, strchr(key, ' ') ? "%s'%s'" : "%s%s", mark ? "." : "", key);
	return mark;
}

void abx_path_pop(struct abx_reader *r, size_t mark)
{
	abx_strbuf_truncate(&r->path, mark);
}

static const struct abx_schema *find_key(const struct abx_schema *schema, const char *key)
{
	for (; schema->key; schema++)
		if (strcmp(schema->key, key) == 0)
			return schema;
	return NULL;
}

static int unknown_key(struct abx_reader *r, const struct abx_node *member, const struct abx_schema *schema, struct abx_err *err)
{
	const char *words[KEYS_MAX + 1] = { NULL };

	for (size_t i = 0; i < KEYS_MAX && schema[i].key; i++)
		words[i] = schema[i].key;
	return abx_complain_unknown(r, member->key_line, "key", member->key, words, err);
}

static void note_key(struct abx_entry *entry, const struct abx_schema *key, int line)
{
	const char *name = abx_key_name(key->given);

	entry->values.given |= key->given;
	entry->keys[abx_key_number(key->given)].name = name ? name : key->key;
	entry->keys[abx_key_number(key->given)].line = line;
}

int abx_schema_take(struct abx_reader *r, const struct abx_node *map, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	if (abx_expect(r, map, ABX_NODE_MAP, err) < 0)
		return -1;
	for (const struct abx_node *member = map->first; member; member = member->next) {
		const struct abx_schema *key = find_key(schema, member->key);
		size_t mark;

		if (!key)
			return unknown_key(r, member, schema, err);
		mark = abx_path_push(r, member->key);
		if (key->take(r, member, key, target, err) < 0)
			return -1;
		if (key->given)
			note_key(target, key, member->key_line);
		abx_path_pop(r, mark);
	}
	return 0;
}

static void *field(void *target, const struct abx_schema *schema)
{
	return (char *)target + schema->offset;
}

int abx_take_text(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	char **text = field(target, schema);

	if (abx_expect(r, node, ABX_NODE_STRING, err) < 0)
		return -1;
	if (!*node->text)
		return abx_complain(r, node->line, err, "must not be empty");
	*text = strdup(node->text);
	return *text ? 0 : abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

int abx_take_texts(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	char ***list = field(target, schema);

	if (abx_expect(r, node, ABX_NODE_LIST, err) < 0)
		return -1;
	/* A list that is there and empty is not the same as none. */
	*list = calloc(1, sizeof(**list));
	for (const struct abx_node *item = node->first; item; item = item->next) {
		if (abx_expect(r, item, ABX_NODE_STRING, err) < 0)
			return -1;
		if (!*item->text)
			return abx_complain(r, item->line, err, "holds an empty text");
		if (!*list || abx_list_add(list, item->text) < 0)
			return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	return *list ? 0 : abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

int abx_take_number(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	int64_t *number = field(target, schema);

	if (abx_expect(r, node, ABX_NODE_INT, err) < 0)
		return -1;
	if (node->integer < 1)
		return abx_complain(r, node->line, err, "must be 1 or more");
	*number = node->integer;
	return 0;
}

int abx_take_bool(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	bool *value = field(target, schema);

	if (abx_expect(r, node, ABX_NODE_BOOL, err) < 0)
		return -1;
	*value = node->boolean;
	return 0;
}

int abx_take_map(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	return abx_schema_take(r, node, schema->keys, target, err);
}
