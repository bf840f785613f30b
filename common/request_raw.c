#include "common/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/uri.h"

static const char raw_type[] = "application/octet-stream";

/* Whether the `len` bytes at `text` are the media type `type`, parameters and blanks aside. */
static bool is_type(const char *text, size_t len, const char *type)
{
	size_t want = strlen(type);

	if (len < want || strncasecmp(text, type, want) != 0)
		return false;
	return want + strspn(text + want, " \t") >= len || text[want + strspn(text + want, " \t")] == ';';
}

/* The weight of one element of an Accept header in thousandths (RFC 9110, section 12.4.2); what cannot be read is 1. */
static int weight(const char *element, size_t len)
{
	const char *end = element + len;

	for (const char *p = memchr(element, ';', len); p; p = memchr(p, ';', (size_t)(end - p))) {
		p++;
		p += strspn(p, " \t");
		if (end - p >= 3 && (*p == 'q' || *p == 'Q') && p[1] == '=') {
			double q = strtod(p + 2, NULL);

			return q >= 0 && q <= 1 ? (int)(q * 1000 + 0.5) : 1000;
		}
	}
	return 1000;
}

/* How much an Accept header wants exactly this type: 0 where it does not name it. */
static int preference(const char *accept, const char *type)
{
	int best = 0;

	while (*accept) {
		size_t len;

		accept += strspn(accept, ", \t");
		len = strcspn(accept, ",");
		if (len && is_type(accept, len, type)) {
			int q = weight(accept, len);

			best = q > best ? q : best;
		}
		accept += len;
	}
	return best;
}

static bool query_says_raw(const struct abx_request *req)
{
	struct abx_err unused = ABX_ERR_INIT;
	const struct abx_query_param *param;
	struct abx_query query;
	bool raw;

	if (!strstr(req->query, "raw") || abx_query_parse(req->query, &query, &unused) < 0)
		return false;
	param = abx_query_find(&query, "raw");
	raw = param && abx_text_is_true(param->value);
	abx_query_release(&query);
	return raw;
}

bool abx_request_wants_raw(const struct abx_request *req)
{
	const char *accept = abx_request_variable(req, "HTTP_ACCEPT");

	if (accept && preference(accept, raw_type) > preference(accept, "application/json"))
		return true;
	return strcmp(req->method, "POST") != 0 && query_says_raw(req);
}

bool abx_request_has_raw_body(const struct abx_request *req)
{
	const char *type = abx_request_variable(req, "CONTENT_TYPE");

	return type && is_type(type, strlen(type), raw_type);
}

int64_t abx_request_length(const struct abx_request *req)
{
	const char *announced = abx_request_variable(req, "CONTENT_LENGTH");

	return announced ? strtoll(announced, NULL, 10) : 0;
}
