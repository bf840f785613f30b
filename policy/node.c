#include "policy/node.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"

struct abx_node *abx_node_new(enum abx_node_type type, int line)
{
	struct abx_node *node = calloc(1, sizeof(*node));

	if (node) {
		node->type = type;
		node->line = line;
	}
	return node;
}

void abx_node_free(struct abx_node *node)
{
	while (node) {
		struct abx_node *next = node->next;

		abx_node_free(node->first);
		free(node->key);
		free(node->text);
		free(node);
		node = next;
	}
}

void abx_node_add(struct abx_node *parent, struct abx_node *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

struct abx_node *abx_node_find(const struct abx_node *map, const char *key)
{
	for (struct abx_node *member = map->first; map->type == ABX_NODE_MAP && member; member = member->next)
		if (strcmp(member->key, key) == 0)
			return member;
	return NULL;
}

const char *abx_node_type_name(const struct abx_node *node)
{
	static const char *const names[] = {
		[ABX_NODE_NULL] = "nothing", [ABX_NODE_BOOL] = "true or false", [ABX_NODE_INT] = "a number", [ABX_NODE_REAL] = "a number",
		[ABX_NODE_STRING] = "text",  [ABX_NODE_LIST] = "a list",	[ABX_NODE_MAP] = "a map",
	};

	return names[node->type];
}

static void add_string(const char *text, struct abx_strbuf *out)
{
	abx_strbuf_addc(out, '"');
	abx_json_escape(text, strlen(text), out);
	abx_strbuf_addc(out, '"');
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp((*(struct abx_node *const *)a)->key, (*(struct abx_node *const *)b)->key);
}

static void add_map(const struct abx_node *map, struct abx_strbuf *out)
{
	abx_auto_free const struct abx_node **members = NULL;
	size_t n = 0, i = 0;

	for (const struct abx_node *member = map->first; member; member = member->next)
		n++;
	members = calloc(n + 1, sizeof(struct abx_node *));
	if (!members) {
		out->failed = true;
		return;
	}
	for (const struct abx_node *member = map->first; member; member = member->next)
		members[i++] = member;
	qsort(members, n, sizeof(struct abx_node *), compare_keys);
	abx_strbuf_addc(out, '{');
	for (i = 0; i < n; i++) {
		abx_strbuf_adds(out, i ? "," : "");
		add_string(members[i]->key, out);
		abx_strbuf_addc(out, ':');
		abx_node_canonical(members[i], out);
	}
	abx_strbuf_addc(out, '}');
}

void abx_node_canonical(const struct abx_node *node, struct abx_strbuf *out)
{
	switch (node->type) {
	case ABX_NODE_NULL:
		abx_strbuf_adds(out, "null");
		break;
	case ABX_NODE_BOOL:
		abx_strbuf_adds(out, node->boolean ? "true" : "false");
		break;
	case ABX_NODE_INT:
		abx_strbuf_addf(out, "%lld", (long long)node->integer);
		break;
	case ABX_NODE_REAL:
		abx_json_repr(node->real, out);
		break;
	case ABX_NODE_STRING:
		add_string(node->text, out);
		break;
	case ABX_NODE_LIST:
		abx_strbuf_addc(out, '[');
		for (const struct abx_node *item = node->first; item; item = item->next) {
			abx_node_canonical(item, out);
			abx_strbuf_adds(out, item->next ? "," : "");
		}
		abx_strbuf_addc(out, ']');
		break;
	case ABX_NODE_MAP:
		add_map(node, out);
		break;
	}
}
