#include "common/origin.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A host and a port, as they stand in a header. An unspecified port is "". */
struct authority {
	const char *host, *port;
	size_t host_len, port_len;
};

static struct authority parse_authority(const char *text)
{
	size_t len = strcspn(text, "/,? ");
	const char *bracket = text[0] == '[' ? memchr(text, ']', len) : NULL;
	const char *from = bracket ? bracket : text;
	const char *colon = memchr(from, ':', len - (size_t)(from - text));
	struct authority a = { .host = text, .host_len = len, .port = "" };

	if (colon) {
		a.host_len = (size_t)(colon - text);
		a.port = colon + 1;
		a.port_len = len - a.host_len - 1;
	}
	return a;
}

/* What an origin consists of; and a value that is about to be echoed in a header must be so. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

/* Whether the origin's host and port are those of a Host header, whose port may be left out when it is the scheme's own. */
static bool is_same_site(const char *origin, const char *host_header)
{
	const char *sep = strstr(origin, "://"), *standard = strncmp(origin, "https:", 6) == 0 ? "443" : "80";
	struct authority a, b;

	/* Two Origin headers arrive as one, with a comma. */
	if (!sep || !host_header || !is_plain(origin) || strchr(origin, ','))
		return false;
	a = parse_authority(sep + 3);
	b = parse_authority(host_header);
	if (a.port_len == 0) {
		a.port = standard;
		a.port_len = strlen(standard);
	}
	if (b.port_len == 0) {
		b.port = standard;
		b.port_len = strlen(standard);
	}
	return a.host_len == b.host_len && strncasecmp(a.host, b.host, a.host_len) == 0 && a.port_len == b.port_len &&
	       memcmp(a.port, b.port, a.port_len) == 0;
}

static bool is_listed(const struct abx_policy *policy, const char *origin)
{
	for (char *const *allowed = policy->allowed_origins; *allowed; allowed++)
		if (strcmp(*allowed, "*") == 0 || strcasecmp(*allowed, origin) == 0)
			return true;
	return false;
}

void abx_origin_mark(struct abx_request *req)
{
	const char *origin = abx_request_variable(req, "HTTP_ORIGIN");

	if (!origin || !is_plain(origin) || !is_listed(req->service->policy, origin))
		return;
	abx_response_header(&req->res, "Access-Control-Allow-Origin", origin);
	abx_response_header(&req->res, "Vary", "Origin");
	abx_response_header(&req->res, "Access-Control-Expose-Headers", "X-Request-Id, Retry-After, Content-Disposition");
}

enum abx_origin abx_origin_judge(const struct abx_policy *policy, const char *origin, const char *host, const char *forwarded_host)
{
	if (!origin)
		return ABX_ORIGIN_UNLISTED;
	if (is_plain(origin) && is_listed(policy, origin))
		return ABX_ORIGIN_LISTED;
	if (!policy->local || is_same_site(origin, host) || is_same_site(origin, forwarded_host))
		return ABX_ORIGIN_UNLISTED;
	return ABX_ORIGIN_REFUSED;
}

int abx_origin_refuse(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_ORIGIN,
			   "Pages of this origin may not call the server while no token is set: list the origin in "
			   "ABX_ALLOWED_ORIGINS, or set ABX_SERVER_TOKEN");
}

int abx_origin_check(struct abx_request *req, struct abx_err *err)
{
	const char *origin = abx_request_variable(req, "HTTP_ORIGIN");

	if (abx_origin_judge(req->service->policy, origin, abx_request_variable(req, "HTTP_HOST"),
			     abx_request_variable(req, "HTTP_X_FORWARDED_HOST")) == ABX_ORIGIN_REFUSED)
		return abx_origin_refuse(err);
	return 0;
}

bool abx_origin_preflight(struct abx_request *req)
{
	const char *origin = abx_request_variable(req, "HTTP_ORIGIN");

	if (strcmp(req->method, "OPTIONS") != 0 || !origin || !is_plain(origin) ||
	    !abx_request_variable(req, "HTTP_ACCESS_CONTROL_REQUEST_METHOD") ||
	    !is_listed(req->service->policy, origin))
		return false;
	abx_response_header(&req->res, "Access-Control-Allow-Methods", "GET, POST, DELETE, HEAD");
	abx_response_header(&req->res, "Access-Control-Allow-Headers",
			    "Authorization, X-Access-Token, Content-Type, Accept, Range, If-None-Match, X-Request-Id");
	abx_response_header(&req->res, "Access-Control-Max-Age", "600");
	return true;
}
