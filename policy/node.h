/*
 * A policy document as it was written: a tree of values that know their lines. YAML and JSON end up here alike, so that one validator serves both.
 */
#ifndef ABX_NODE_H
#define ABX_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/strbuf.h"

enum abx_node_type {
	ABX_NODE_NULL,
	ABX_NODE_BOOL,
	ABX_NODE_INT,
	ABX_NODE_REAL,
	ABX_NODE_STRING,
	ABX_NODE_LIST,
	ABX_NODE_MAP,
};

struct abx_node {
	enum abx_node_type type;
	int line;
	char *key;     /* of a map's member, else NULL */
	int key_line;
	char *text;    /* a string */
	int64_t integer;
	double real;
	bool boolean;
	const char *refused; /* what is written here that no document may use ("an anchor"), or NULL. Told only where the value is looked at */
	struct abx_node *first, *last, *next;
};

/* Nesting of a document, and its size. A policy needs six levels. */
#define ABX_NODE_DEPTH 64
#define ABX_NODE_SIZE  ((size_t)1 << 20)

struct abx_node *abx_node_new(enum abx_node_type type, int line);
void abx_node_free(struct abx_node *node);
void abx_node_add(struct abx_node *parent, struct abx_node *child);

/* The member of this name, or NULL. */
struct abx_node *abx_node_find(const struct abx_node *map, const char *key);

/* "a map", "a list", "text", "a number", … */
const char *abx_node_type_name(const struct abx_node *node);

/* Append the value as compact JSON with sorted keys, in UTF-8 without escapes: what the revision is taken over. */
void abx_node_canonical(const struct abx_node *node, struct abx_strbuf *out);

static inline void abx_cleanup_node(struct abx_node **node)
{
	abx_node_free(*node);
}
#define abx_auto_node __attribute__((cleanup(abx_cleanup_node)))

/*
 * Parse a document. `name` is what errors call it: "<name>:<line>: …" (ABX_E_VALUE). An empty document is NULL's node. Plain scalars of YAML mean
 * what PyYAML makes of them (YAML 1.1: yes and on are booleans too), but for dates and base 60, which are text.
 */
struct abx_node *abx_yaml_parse(const char *name, const char *text, size_t len, struct abx_err *err);
struct abx_node *abx_json_parse_nodes(const char *name, const char *text, size_t len, struct abx_err *err);

/* As JSON where that is asked for, or the name ends in .json; else as YAML, or JSON where it is that. `text` ends with a NUL behind its `len` bytes. */
struct abx_node *abx_nodes_parse(const char *name, bool json_only, const char *text, size_t len, struct abx_err *err);

/* The content of a file of less than ABX_NODE_SIZE bytes, and a NUL, to be freed. NULL: ABX_E_VALUE, "<path>: cannot be read: …". */
char *abx_node_file(const char *path, size_t *ret_len, struct abx_err *err);

#endif
