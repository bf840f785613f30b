/*
 * Taking values out of a document by a table of keys. Every complaint names file, line and the way to the key.
 */
#ifndef ABX_SCHEMA_H
#define ABX_SCHEMA_H

#include "common/strbuf.h"
#include "policy/document.h"

struct abx_reader {
	const struct abx_document_source *source;
	struct abx_document *document;
	const char *name;       /* of the file */
	struct abx_strbuf path; /* "endpoints.shell.limits" */
};

struct abx_schema {
	const char *key;
	/* Take the value into the target; the reader's path names the key. */
	int (*take)(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err);
	size_t offset;                /* of the field in the target */
	const struct abx_schema *keys; /* of a map, ended by a NULL key */
	unsigned given;               /* enum abx_key: a bit for abx_rule.given, in tables whose target is an entry */
	unsigned flag;                /* what a flag sets */
};

/* Take all members of a map. The keys of `schema` end with a NULL key. */
int abx_schema_take(struct abx_reader *r, const struct abx_node *map, const struct abx_schema *schema, void *target, struct abx_err *err);

/* Set *err: "<name>:<line>: <path>: <text>". */
int abx_complain(const struct abx_reader *r, int line, struct abx_err *err, const char *fmt, ...) ABX_PRINTF(4, 5);

/* The same with "unknown <what> '<word>'", and the word of `words` that was meant. */
int abx_complain_unknown(const struct abx_reader *r, int line, const char *what, const char *word, const char *const *words,
			 struct abx_err *err);

/* Note a warning: "<name>:<line>: <path>: <text>". */
int abx_reader_warn(const struct abx_reader *r, int line, struct abx_err *err, const char *fmt, ...) ABX_PRINTF(4, 5);

/* Whether a value may be used at all, and has the type. */
int abx_expect(const struct abx_reader *r, const struct abx_node *node, enum abx_node_type type, struct abx_err *err);

/* Go down to a key, and back. */
size_t abx_path_push(struct abx_reader *r, const char *key);
void abx_path_pop(struct abx_reader *r, size_t mark);

/* Takers: a text to a char *, texts to a char **, a whole number from 1 to an int64_t, true or false to a bool, a map with schema->keys. */
int abx_take_text(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err);
int abx_take_texts(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err);
int abx_take_number(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err);
int abx_take_bool(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err);
int abx_take_map(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err);

/* ---- document_endpoint.c, document_identity.c, presets.c */

extern const struct abx_schema abx_endpoint_schema[];
int abx_take_identities(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			struct abx_err *err);
extern const char *const abx_preset_names[]; /* NULL-terminated */

#endif
