#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "policy/node.h"

struct reader {
	const char *name;
	yaml_parser_t parser;
	struct abx_node *stack[ABX_NODE_DEPTH]; /* the lists and maps that are open */
	unsigned depth;
	struct abx_node *root;
	char *key; /* of the value that comes next, inside a map */
	int key_line;
	unsigned documents;
};

static void reader_release(struct reader *r)
{
	yaml_parser_delete(&r->parser);
	abx_node_free(r->root);
	free(r->key);
}

static int line_of(const yaml_event_t *event)
{
	return (int)event->start_mark.line + 1;
}

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

/* Digits of a base, with underscores between them as YAML 1.1 has it. */
static bool take_integer(const char *text, int64_t *ret)
{
	const char *p = text + (*text == '-' || *text == '+');
	int base = 10;
	char digits[72];
	size_t n = 0;
	char *end;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'b')) {
		base = p[1] == 'x' ? 16 : 2;
		p += 2;
	} else if (p[0] == '0' && p[1]) {
		base = 8;
	}
	if (*text == '-')
		digits[n++] = '-';
	if (!*p || (base == 10 && *p == '_'))
		return false;
	for (; *p; p++) {
		if (*p == '_')
			continue;
		if (!strchr("0123456789abcdefABCDEF", *p) || n + 1 >= sizeof(digits))
			return false;
		digits[n++] = *p;
	}
	digits[n] = '\0';
	errno = 0;
	*ret = strtoll(digits, &end, base);
	return end != digits && !*end && !errno && end[-1] != '-';
}

/* A number with a point; an exponent has a sign (YAML 1.1 as PyYAML reads it: "1e3" is text). */
static bool take_real(const char *text, double *ret)
{
	const char *p = text + (*text == '-' || *text == '+');
	size_t before = strspn(p, "0123456789_"), after;
	char digits[72];
	size_t n = 0;

	if (p[before] != '.' || *p == '_' || (before == 0 && p != text))
		return false;
	after = strspn(p + before + 1, "0123456789_");
	if (before == 0 && (after == 0 || p[1] == '_'))
		return false;
	p += before + 1 + after;
	if (*p == 'e' || *p == 'E') {
		if ((p[1] != '-' && p[1] != '+') || !p[2] || p[2 + strspn(p + 2, "0123456789")])
			return false;
	} else if (*p) {
		return false;
	}
	for (p = text; *p && n + 1 < sizeof(digits); p++)
		if (*p != '_')
			digits[n++] = *p;
	digits[n] = '\0';
	*ret = strtod(digits, NULL);
	return true;
}

/* What a scalar without quotes means. */
static void resolve(struct abx_node *node)
{
	static const char *const yes[] = { "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", NULL };
	static const char *const no[] = { "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", NULL };
	static const char *const null[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const not_finite[] = { ".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf", "+.INF", "-.inf",
						  "-.Inf", "-.INF", ".nan",  ".NaN",  ".NAN",  NULL };

	if (is_one_of(node->text, yes) || is_one_of(node->text, no)) {
		node->type = ABX_NODE_BOOL;
		node->boolean = is_one_of(node->text, yes);
	} else if (is_one_of(node->text, null)) {
		node->type = ABX_NODE_NULL;
	} else if (is_one_of(node->text, not_finite)) {
		node->refused = "a number that is not finite";
	} else if (take_integer(node->text, &node->integer)) {
		node->type = ABX_NODE_INT;
	} else if (take_real(node->text, &node->real)) {
		node->type = ABX_NODE_REAL;
	}
}

/* Put a value where it belongs: in the map under the key that was read, in the list, or as the document itself. */
static void place(struct reader *r, struct abx_node *node)
{
	if (r->depth == 0) {
		r->root = node;
		return;
	}
	node->key = ABX_STEAL(r->key);
	node->key_line = r->key_line;
	abx_node_add(r->stack[r->depth - 1], node);
}

static bool wants_key(const struct reader *r)
{
	return r->depth > 0 && r->stack[r->depth - 1]->type == ABX_NODE_MAP && !r->key;
}

static int take_key(struct reader *r, const yaml_event_t *event, struct abx_err *err)
{
	const char *text = (const char *)event->data.scalar.value;
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (strlen(text) != event->data.scalar.length)
		return abx_err_set(err, ABX_E_VALUE, "%s:%d: a key holds a NUL character", r->name, line_of(event));
	if (plain && strcmp(text, "<<") == 0)
		return abx_err_set(err, ABX_E_VALUE, "%s:%d: merge keys (<<) are not supported", r->name, line_of(event));
	if (abx_node_find(r->stack[r->depth - 1], text))
		return abx_err_set(err, ABX_E_VALUE, "%s:%d: the key '%s' is repeated", r->name, line_of(event), text);
	r->key = strdup(text);
	r->key_line = line_of(event);
	return r->key ? 0 : out_of_memory(err);
}

static int take_scalar(struct reader *r, const yaml_event_t *event, struct abx_err *err)
{
	struct abx_node *node;

	if (wants_key(r))
		return take_key(r, event, err);
	node = abx_node_new(ABX_NODE_STRING, line_of(event));
	if (!node)
		return out_of_memory(err);
	place(r, node);
	node->text = strdup((const char *)event->data.scalar.value);
	if (!node->text)
		return out_of_memory(err);
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		resolve(node);
	if (strlen(node->text) != event->data.scalar.length)
		node->refused = "a NUL character";
	if (event->data.scalar.anchor)
		node->refused = "an anchor (&)";
	if (event->data.scalar.tag)
		node->refused = "a tag (!)";
	return 0;
}

static int open_node(struct reader *r, const yaml_event_t *event, enum abx_node_type type, bool anchor, bool tag,
		     struct abx_err *err)
{
	struct abx_node *node;

	if (wants_key(r))
		return abx_err_set(err, ABX_E_VALUE, "%s:%d: a key must be text", r->name, line_of(event));
	if (r->depth == ABX_NODE_DEPTH)
		return abx_err_set(err, ABX_E_VALUE, "%s:%d: is nested more than %d levels deep", r->name, line_of(event),
				   ABX_NODE_DEPTH);
	node = abx_node_new(type, line_of(event));
	if (!node)
		return out_of_memory(err);
	if (anchor)
		node->refused = "an anchor (&)";
	if (tag)
		node->refused = "a tag (!)";
	place(r, node);
	r->stack[r->depth++] = node;
	return 0;
}

static int take_alias(struct reader *r, const yaml_event_t *event, struct abx_err *err)
{
	struct abx_node *node;

	if (wants_key(r))
		return abx_err_set(err, ABX_E_VALUE, "%s:%d: a key must be text", r->name, line_of(event));
	node = abx_node_new(ABX_NODE_NULL, line_of(event));
	if (!node)
		return out_of_memory(err);
	node->refused = "an alias (*)";
	place(r, node);
	return 0;
}

static int take_event(struct reader *r, const yaml_event_t *event, struct abx_err *err)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (r->documents++)
			return abx_err_set(err, ABX_E_VALUE, "%s:%d: a second document begins here; there must be one", r->name,
					   line_of(event));
		return 0;
	case YAML_SCALAR_EVENT:
		return take_scalar(r, event, err);
	case YAML_ALIAS_EVENT:
		return take_alias(r, event, err);
	case YAML_SEQUENCE_START_EVENT:
		return open_node(r, event, ABX_NODE_LIST, event->data.sequence_start.anchor, event->data.sequence_start.tag, err);
	case YAML_MAPPING_START_EVENT:
		return open_node(r, event, ABX_NODE_MAP, event->data.mapping_start.anchor, event->data.mapping_start.tag, err);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		r->depth--;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
	return 0;
}

static int syntax_error(const struct reader *r, struct abx_err *err)
{
	const yaml_parser_t *p = &r->parser;

	if (p->error == YAML_MEMORY_ERROR)
		return out_of_memory(err);
	if (p->error == YAML_READER_ERROR)
		return abx_err_set(err, ABX_E_VALUE, "%s: %s at byte %zu", r->name, p->problem, p->problem_offset);
	return abx_err_set(err, ABX_E_VALUE, "%s:%zu: %s%s%s", r->name, p->problem_mark.line + 1, p->problem ? p->problem : "not YAML",
			   p->context ? " " : "", p->context ? p->context : "");
}

struct abx_node *abx_yaml_parse(const char *name, const char *text, size_t len, struct abx_err *err)
{
	__attribute__((cleanup(reader_release))) struct reader r = { .name = name };
	bool end = false;

	if (!yaml_parser_initialize(&r.parser)) {
		out_of_memory(err);
		return NULL;
	}
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	while (!end) {
		yaml_event_t event;

		if (!yaml_parser_parse(&r.parser, &event)) {
			syntax_error(&r, err);
			return NULL;
		}
		end = event.type == YAML_STREAM_END_EVENT;
		int result = take_event(&r, &event, err);
		yaml_event_delete(&event);
		if (result < 0)
			return NULL;
	}
	if (!r.root)
		r.root = abx_node_new(ABX_NODE_NULL, 1);
	if (!r.root)
		out_of_memory(err);
	return ABX_STEAL(r.root);
}
