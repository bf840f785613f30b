/*
 * What a template's own code (commands.py) has registered: the table that its worker writes, and that abxd, every responder and each later worker read
 * alike. It is one line of JSON, compact, with sorted keys and in ASCII, so that two of them can be compared byte for byte:
 *
 *   {"version": 1, "name": "commands.py", "groups": {"browser": true},
 *    "commands": [{"name", "description", "args": [{"name", "type", "required", "default", "description"}], "hidden", "scopes": [], "timeout": number or null}],
 *    "routes": [{"id", "method", "path", "group", "summary", "streaming", "auth_required", "scopes": []}]}
 */
#ifndef ABX_CODE_H
#define ABX_CODE_H

#include <jansson.h>

#include "common/endpoint.h"
#include "common/err.h"

struct abx_code {
	char *text; /* the table as it came */
	size_t len;
	json_t *json;                         /* the same, parsed; the strings below are in it */
	const char *name;                     /* of the file: the rule that switches its groups is "code:<name>" */
	signed char groups[ABX_GROUP__COUNT]; /* -1: left as they are */
	struct abx_endpoint *rows;            /* its routes */
	size_t n_rows;
};

/* Seconds that a route of the template's own may take, or until the head of its stream. */
#define ABX_CODE_TIMEOUT 300

/* The longest id and path of such a route, and the most {parameters} of one segment each. */
#define ABX_CODE_ID_MAX 160

/*
 * Check a table and take what it says. Failures are ABX_E_VALUE: "<name>: route 'GET /x': …". Returns what abx_code_free frees, or NULL.
 */
struct abx_code *abx_code_parse(const char *text, size_t len, struct abx_err *err);
void abx_code_free(struct abx_code *code);

/* The scopes of a route or command, to be freed with abx_list_free. -1: not a list of texts, or out of memory. */
int abx_code_scopes(const json_t *list, char ***ret_scopes);

/*
 * The code of this process: there is at most one, and it stays. Its routes become rows (abx_endpoint_extend), so it is set before a document is read or a
 * policy built or loaded.
 */
void abx_code_use(struct abx_code *code);
const struct abx_code *abx_code_current(void);

/* The same from a table that was checked before; NULL: there is none. 0 or -1. */
int abx_code_adopt(const char *text);

#endif
