#include "common/route.h"

#include <stdlib.h>
#include <string.h>

#include "common/uri.h"
#include "common/utf8.h"

/* The rows that fit a path best so far. */
struct best {
	unsigned rank;
	const struct abx_endpoint *row; /* the one whose method is the request's */
	bool methods[ABX_METHOD_OTHER]; /* of all of them, for Allow */
};

static void clear_params(struct abx_request *req)
{
	for (size_t i = 0; i < req->n_params; i++)
		free(req->params[i].value);
	req->n_params = 0;
}

/* Decode one segment as the parameter `name`. -1: it cannot be one (empty, with NUL or '/' inside, or not UTF-8). */
static int add_param(struct abx_request *req, const char *name, size_t name_len, const char *segment, size_t len)
{
	abx_auto_strbuf struct abx_strbuf value = ABX_STRBUF_INIT;

	if (len == 0 || req->n_params == ABX_PATH_PARAMS)
		return -1;
	abx_uri_decode(segment, len, false, &value);
	if (value.failed || memchr(value.buf, '\0', value.len) || memchr(value.buf, '/', value.len) ||
	    !abx_utf8_is_valid(value.buf, value.len))
		return -1;
	req->params[req->n_params].name = name;
	req->params[req->n_params].name_len = name_len;
	req->params[req->n_params].value = abx_strbuf_detach(&value);
	req->n_params++;
	return 0;
}

/*
 * Match a row's path and set the parameters. Returns 0 for no match, else a rank that is higher the further left a literal segment
 * stands where another row has a parameter.
 */
static unsigned match_path(struct abx_request *req, const char *pattern, const char *path, const char *end)
{
	unsigned rank = 1;

	clear_params(req);
	for (unsigned bit = 1u << 31; *pattern; bit >>= 1) {
		size_t want = strcspn(pattern + 1, "/"), have = 0;

		if (path == end)
			return 0;
		while (path + 1 + have < end && path[1 + have] != '/')
			have++;
		if (pattern[1] == '{') {
			if (add_param(req, pattern + 2, want - 2, path + 1, have) < 0)
				return 0;
		} else {
			if (want != have || memcmp(pattern + 1, path + 1, want) != 0)
				return 0;
			rank |= bit;
		}
		pattern += 1 + want;
		path += 1 + have;
	}
	return path == end ? rank : 0;
}

static bool fits_method(const struct abx_request *req, const struct abx_endpoint *row)
{
	if (strcmp(req->method, "HEAD") == 0)
		return row->method == ABX_GET && (row->flags & ABX_EP_RAW_ANSWER) && abx_request_wants_raw(req);
	return strcmp(abx_method_name(row->method), req->method) == 0;
}

static void consider(struct abx_request *req, const struct abx_endpoint *row, const char *end, struct best *best)
{
	unsigned rank;

	if (row->method == ABX_WS)
		return;
	rank = match_path(req, row->path, req->path, end);
	if (rank == 0 || rank < best->rank)
		return;
	if (rank > best->rank)
		*best = (struct best){ .rank = rank };
	best->methods[row->method] = true;
	if (fits_method(req, row))
		best->row = row;
}

static void write_allow(const struct best *best, char ret_allow[32])
{
	static const enum abx_method sorted[] = { ABX_DELETE, ABX_GET, ABX_POST };

	ret_allow[0] = '\0';
	for (size_t i = 0; i < ABX_N(sorted); i++)
		if (best->methods[sorted[i]])
			strcat(strcat(ret_allow, ret_allow[0] ? ", " : ""), abx_method_name(sorted[i]));
}

int abx_route(struct abx_request *req, char ret_allow[32], struct abx_err *err)
{
	enum abx_group only = req->service->group;
	const char *end = req->path + strlen(req->path);
	struct best best = { 0 };

	if (end > req->path + 1 && end[-1] == '/')
		end--;
	for (enum abx_group g = 0; g < ABX_GROUP__COUNT; g++)
		if (only == ABX_GROUP_CORE || g == only)
			for (size_t i = 0; i < *abx_groups[g].n_rows && req->path[0] == '/'; i++)
				consider(req, &abx_groups[g].rows[i], end, &best);
	/* Every group knows the routes of the template's own code: for Allow, and because a path of theirs may lie among its own. */
	for (size_t i = abx_endpoint_count_builtin(); i < abx_endpoint_count() && req->path[0] == '/'; i++)
		consider(req, abx_endpoint_at(i), end, &best);
	if (best.row) {
		req->endpoint = best.row;
		req->res.head = strcmp(req->method, "HEAD") == 0;
		match_path(req, best.row->path, req->path, end);
		return 0;
	}
	clear_params(req);
	if (best.rank == 0)
		return abx_err_set(err, ABX_E_ROUTE, "Not found: %s", req->path);
	write_allow(&best, ret_allow);
	return abx_err_set(err, ABX_E_METHOD, "Method %s is not allowed here; allowed: %s", req->method, ret_allow);
}
