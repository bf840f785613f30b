/*
 * JSON with line numbers: the JSON door reads the document, and then its text is gone through once more beside the values, only to count lines. It is
 * known to be valid by then, and jansson keeps the members of an object in their order.
 */
#include "policy/node.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"

struct cursor {
	const char *p;
	int line;
};

static void skip_blanks(struct cursor *at)
{
	for (; *at->p == ' ' || *at->p == '\t' || *at->p == '\n' || *at->p == '\r'; at->p++)
		at->line += *at->p == '\n';
}

static void skip_string(struct cursor *at)
{
	for (at->p++; *at->p != '"'; at->p++)
		at->p += *at->p == '\\';
	at->p++;
}

/* Blanks and one mark: a colon, a comma or a bracket. */
static void skip_mark(struct cursor *at)
{
	skip_blanks(at);
	at->p++;
}

static struct abx_node *convert(const json_t *value, struct cursor *at, unsigned depth);

/* One more child of `parent`; NULL is handed on. */
static struct abx_node *add_child(struct abx_node *parent, const json_t *value, struct cursor *at, unsigned depth)
{
	struct abx_node *child = depth < ABX_NODE_DEPTH ? convert(value, at, depth + 1) : NULL;

	if (child)
		abx_node_add(parent, child);
	return child;
}

static int convert_map(struct abx_node *node, const json_t *value, struct cursor *at, unsigned depth)
{
	const char *key;
	json_t *member;

	json_object_foreach((json_t *)(uintptr_t)value, key, member) {
		int key_line;

		skip_mark(at);
		skip_blanks(at);
		key_line = at->line;
		skip_string(at);
		skip_mark(at);
		struct abx_node *child = add_child(node, member, at, depth);
		if (!child)
			return -1;
		child->key_line = key_line;
		child->key = strdup(key);
		if (!child->key)
			return -1;
	}
	if (!node->first)
		skip_mark(at);
	skip_mark(at);
	return 0;
}

static int convert_list(struct abx_node *node, const json_t *value, struct cursor *at, unsigned depth)
{
	const json_t *item;
	size_t i;

	json_array_foreach(value, i, item) {
		skip_mark(at);
		if (!add_child(node, item, at, depth))
			return -1;
	}
	if (!node->first)
		skip_mark(at);
	skip_mark(at);
	return 0;
}

static int convert_scalar(struct abx_node *node, const json_t *value, struct cursor *at)
{
	if (json_is_string(value)) {
		skip_string(at);
		if (strlen(json_string_value(value)) != json_string_length(value))
			node->refused = "a NUL character";
		node->text = strdup(json_string_value(value));
		return node->text ? 0 : -1;
	}
	at->p += strcspn(at->p, ",]} \t\r\n");
	node->boolean = json_is_true(value);
	node->integer = json_integer_value(value);
	node->real = json_real_value(value);
	return 0;
}

static enum abx_node_type node_type(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return ABX_NODE_MAP;
	case JSON_ARRAY:
		return ABX_NODE_LIST;
	case JSON_STRING:
		return ABX_NODE_STRING;
	case JSON_INTEGER:
		return ABX_NODE_INT;
	case JSON_REAL:
		return ABX_NODE_REAL;
	case JSON_TRUE:
	case JSON_FALSE:
		return ABX_NODE_BOOL;
	case JSON_NULL:
		break;
	}
	return ABX_NODE_NULL;
}

/* NULL: out of memory, or nested too deeply. */
static struct abx_node *convert(const json_t *value, struct cursor *at, unsigned depth)
{
	abx_auto_node struct abx_node *node = NULL;
	int result;

	skip_blanks(at);
	node = abx_node_new(node_type(value), at->line);
	if (!node)
		return NULL;
	if (node->type == ABX_NODE_MAP)
		result = convert_map(node, value, at, depth);
	else if (node->type == ABX_NODE_LIST)
		result = convert_list(node, value, at, depth);
	else
		result = convert_scalar(node, value, at);
	return result < 0 ? NULL : ABX_STEAL(node);
}

struct abx_node *abx_json_parse_nodes(const char *name, const char *text, size_t len, struct abx_err *err)
{
	json_auto_t *value = abx_json_parse(text, len, err);
	abx_auto_free char *copy = NULL;
	struct cursor at = { .line = 1 };
	struct abx_node *node;

	if (!value) {
		abx_err_prefix(err, "%s", name);
		return NULL;
	}
	at.p = copy = strndup(text, len);
	node = copy ? convert(value, &at, 0) : NULL;
	if (!node)
		abx_err_set(err, ABX_E_VALUE, "%s:%d: is nested more than %d levels deep", name, at.line, ABX_NODE_DEPTH);
	return node;
}
