#include "common/uri.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define QUERY_PARAMS_MAX 256

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Decode to `out`, which has room for `len` bytes. Returns the bytes written. */
static size_t decode(const char *text, size_t len, bool plus, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int high = -1, low = -1;
		if (text[i] == '%' && len - i > 2) {
			high = hex_value(text[i + 1]);
			low = hex_value(text[i + 2]);
		}
		if (high >= 0 && low >= 0) {
			out[n++] = (char)(high << 4 | low);
			i += 2;
		} else {
			out[n++] = plus && text[i] == '+' ? ' ' : text[i];
		}
	}
	return n;
}

void abx_uri_decode(const char *text, size_t len, bool plus, struct abx_strbuf *out)
{
	if (len == 0 || abx_strbuf_reserve(out, len) < 0)
		return;
	out->len += decode(text, len, plus, out->buf + out->len);
	out->buf[out->len] = '\0';
}

static bool is_unreserved(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '~' || c == '-';
}

void abx_uri_encode(const char *text, size_t len, bool keep_slash, struct abx_strbuf *out)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (is_unreserved(text[i]) || (keep_slash && c == '/')) {
			abx_strbuf_addc(out, text[i]);
		} else {
			char coded[3] = { '%', hex[c >> 4], hex[c & 15] };
			abx_strbuf_add(out, coded, sizeof(coded));
		}
	}
}

static const struct abx_query_param *find(const struct abx_query *query, const char *name, size_t len)
{
	for (size_t i = 0; i < query->n; i++)
		if (query->params[i].name_len == len && memcmp(query->params[i].name, name, len) == 0)
			return &query->params[i];
	return NULL;
}

static bool may_repeat(const struct abx_query_param *param)
{
	return param->name_len >= 2 && memcmp(param->name + param->name_len - 2, "[]", 2) == 0;
}

/* Decode one side of a parameter to *at and move it behind the NUL. */
static char *store(char **at, const char *text, size_t len, size_t *ret_len)
{
	char *start = *at;

	*ret_len = decode(text, len, true, start);
	start[*ret_len] = '\0';
	*at = start + *ret_len + 1;
	return start;
}

/* Add the part text[0..len), which is not empty. */
static int add_part(struct abx_query *query, const char *text, size_t len, char **at, struct abx_err *err)
{
	struct abx_query_param param;
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals ? (size_t)(equals - text) : len;
	size_t value_at = equals ? name_len + 1 : len;

	if (query->n == QUERY_PARAMS_MAX)
		return abx_err_set(err, ABX_E_VALUE, "More than %d query parameters", QUERY_PARAMS_MAX);
	param.name = store(at, text, name_len, &param.name_len);
	param.value = store(at, text + value_at, len - value_at, &param.value_len);
	if (!may_repeat(&param) && find(query, param.name, param.name_len))
		return abx_err_set(err, ABX_E_DUPLICATE_PARAMETER, "Duplicate query parameter: %s", param.name);
	query->params[query->n++] = param;
	return 0;
}

static size_t count_parts(const char *text)
{
	size_t n = 1;

	for (const char *p = text; (p = strchr(p, '&')) && n < QUERY_PARAMS_MAX; p++)
		n++;
	return n;
}

int abx_query_parse(const char *text, struct abx_query *ret_query, struct abx_err *err)
{
	struct abx_query query = { .n = 0 };
	size_t len = strlen(text);

	*ret_query = query;
	if (len == 0)
		return 0;
	/* A part of L bytes and its separator become at most L bytes and two NULs. */
	query.storage = malloc(2 * len + 2);
	query.params = calloc(count_parts(text), sizeof(*query.params));
	if (!query.storage || !query.params) {
		abx_query_release(&query);
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	char *at = query.storage;
	for (const char *p = text; p <= text + len;) {
		size_t part = strcspn(p, "&");
		if (part && add_part(&query, p, part, &at, err) < 0) {
			abx_query_release(&query);
			return -1;
		}
		p += part + 1;
	}
	*ret_query = query;
	return 0;
}

void abx_query_release(struct abx_query *query)
{
	free(query->params);
	free(query->storage);
	*query = (struct abx_query){ .n = 0 };
}

const struct abx_query_param *abx_query_find(const struct abx_query *query, const char *name)
{
	return find(query, name, strlen(name));
}

bool abx_text_is_true(const char *text)
{
	return strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0 || strcmp(text, "1") == 0;
}
