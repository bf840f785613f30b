#include "handlers/abxd/server.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/strbuf.h"

/* The text of lighttpd.conf.in. */
static const char template_text[] =
#include "handlers/abxd/lighttpd_conf.h"
	;

/* Groups whose answers can be long: they wait for their reader, so that nothing piles up on the disk. */
static const bool long_answers[ABX_GROUP__COUNT] = {
	[ABX_GROUP_COMMANDS] = true,
	[ABX_GROUP_FILE_OPS] = true,
	[ABX_GROUP_AGENTS] = true,
};

/* ---- templates */

struct value {
	const char *name, *text;
};

/* The lines of a section, in *ret_len bytes. */
static const char *find_section(const char *name, size_t *ret_len)
{
	abx_auto_strbuf struct abx_strbuf mark = ABX_STRBUF_INIT;

	abx_strbuf_addf(&mark, "#%%%% %s\n", name);
	const char *start = mark.failed ? NULL : strstr(template_text, mark.buf);
	if (!start)
		return NULL;
	start += mark.len;
	const char *end = strstr(start, "#%%");
	*ret_len = end ? (size_t)(end - start) : strlen(start);
	return start;
}

static const char *find_value(const struct value *values, const char *name, size_t len)
{
	for (; values->name; values++)
		if (strlen(values->name) == len && memcmp(values->name, name, len) == 0)
			return values->text;
	return NULL;
}

/* Append a section with @NAME@ replaced by its value. */
static int expand(const char *section, const struct value *values, struct abx_strbuf *out, struct abx_err *err)
{
	size_t len = 0;
	const char *text = find_section(section, &len);

	if (!text)
		return abx_err_set(err, ABX_E_INTERNAL, "lighttpd.conf.in has no section %s", section);
	for (const char *end = text + len; text < end;) {
		const char *at = memchr(text, '@', (size_t)(end - text));
		const char *close_at = at ? memchr(at + 1, '@', (size_t)(end - at - 1)) : NULL;

		if (!close_at) {
			abx_strbuf_add(out, text, (size_t)(end - text));
			break;
		}
		const char *value = find_value(values, at + 1, (size_t)(close_at - at - 1));
		if (!value)
			return abx_err_set(err, ABX_E_INTERNAL, "lighttpd.conf.in: section %s: no value for %.*s", section,
					   (int)(close_at - at - 1), at + 1);
		abx_strbuf_add(out, text, (size_t)(at - text));
		abx_strbuf_adds(out, value);
		text = close_at + 1;
	}
	return 0;
}

/* Append literal text to a pattern: what is special to it goes into brackets, "*" into one path segment when it is a {parameter}. */
static void add_pattern(struct abx_strbuf *out, const char *path)
{
	for (const char *c = path; *c; c++) {
		if (*c == '{') {
			abx_strbuf_adds(out, "[^/]+");
			c += strcspn(c, "}");
			if (!*c)
				return;
		} else if (isalnum((unsigned char)*c) || strchr("/_-~", *c)) {
			abx_strbuf_addc(out, *c);
		} else {
			abx_strbuf_addf(out, "[%c]", *c);
		}
	}
}

/* Append an alternative to a pattern. */
static void add_alternative(struct abx_strbuf *out, const char *path)
{
	if (out->len)
		abx_strbuf_addc(out, '|');
	add_pattern(out, path);
}

/* ---- one group's file */

static void list_streams(enum abx_group group, struct abx_strbuf *out)
{
	const struct abx_group_info *info = &abx_groups[group];

	for (size_t i = 0; i < *info->n_rows; i++)
		if ((info->rows[i].flags & ABX_EP_STREAM) && info->rows[i].method != ABX_WS)
			add_alternative(out, info->rows[i].path);
}

/* Endpoints that take raw bytes. */
static void list_uploads(enum abx_group group, struct abx_strbuf *out)
{
	const struct abx_group_info *info = &abx_groups[group];

	for (size_t i = 0; i < *info->n_rows; i++)
		if (info->rows[i].raw_args)
			add_alternative(out, info->rows[i].path);
}

/* The WebSocket endpoint of a group, or NULL. */
static const struct abx_endpoint *find_websocket(enum abx_group group)
{
	const struct abx_group_info *info = &abx_groups[group];

	for (size_t i = 0; i < *info->n_rows; i++)
		if (info->rows[i].method == ABX_WS)
			return &info->rows[i];
	return NULL;
}

static int expand_upload(const struct abx_server *server, const char *mount_re, const char *paths, struct abx_strbuf *out,
			 struct abx_err *err)
{
	char kib[24];

	/* lighttpd counts in KiB, up to 32 bits; what is over the exact figure inside the last one is the responder's to refuse. */
	int64_t limit = (server->settings.max_upload + 1023) / 1024;
	snprintf(kib, sizeof(kib), "%lld", (long long)(limit < INT32_MAX ? limit : INT32_MAX));
	const struct value values[] = {
		{ "MOUNT_RE", mount_re }, { "UPLOAD_PATHS", paths }, { "UPLOAD_KIB", kib }, { NULL, NULL },
	};
	return expand("upload", values, out, err);
}

static int expand_pty(const struct abx_server *server, const char *mount_re, const char *path, struct abx_strbuf *out,
		      struct abx_err *err)
{
	const char *mount = server->settings.mount_prefix, *host = server->settings.host;
	abx_auto_strbuf struct abx_strbuf map = ABX_STRBUF_INIT;
	char port[16];
	bool any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || strcmp(host, "[::]") == 0;

	snprintf(port, sizeof(port), "%d", server->settings.pty_port);
	if (*mount)
		abx_strbuf_addf(&map, ", \"map-urlpath\" => ( \"%s%s\" => \"%s\" )", mount, path, path);
	const struct value values[] = {
		{ "MOUNT_RE", mount_re }, { "PTY_PATH", path }, { "PTY_HOST", any ? "127.0.0.1" : host },
		{ "PTY_PORT", port },     { "PTY_MAP", map.buf }, { NULL, NULL },
	};
	return expand("pty", values, out, err);
}

/* Append what sends a prefix of the path to a group's socket. */
static void add_backend(const struct abx_server *server, const char *prefix, enum abx_group group, struct abx_strbuf *out)
{
	abx_strbuf_addf(out, "%s\"%s%s\" => (( \"socket\" => var.abx_run + \"/%s.sock\", \"check-local\" => \"disable\", \"tcp-fin-propagate\" => \"enable\" ))",
			out->len ? ",\n  " : "", server->settings.mount_prefix, prefix, abx_groups[group].name);
}

static int expand_group(const struct abx_server *server, enum abx_group group, struct abx_strbuf *out, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf mount = ABX_STRBUF_INIT;
	abx_auto_strbuf struct abx_strbuf paths = ABX_STRBUF_INIT;
	abx_auto_strbuf struct abx_strbuf streams = ABX_STRBUF_INIT;
	abx_auto_strbuf struct abx_strbuf uploads = ABX_STRBUF_INIT;
	abx_auto_strbuf struct abx_strbuf backends = ABX_STRBUF_INIT;

	add_pattern(&mount, server->settings.mount_prefix);
	for (const char *const *prefix = abx_groups[group].prefixes; prefix && *prefix; prefix++) {
		add_alternative(&paths, *prefix);
		add_backend(server, *prefix, group, &backends);
	}
	const struct value values[] = {
		{ "MOUNT_RE", mount.buf },    { "GROUP", abx_groups[group].name }, { "PATHS", paths.buf },
		{ "BACKENDS", backends.buf }, { NULL, NULL },
	};
	if (expand(group == ABX_GROUP_CORE ? "core" : "group", values, out, err) < 0)
		return -1;
	if (long_answers[group] && expand("long", values, out, err) < 0)
		return -1;
	if (!long_answers[group])
		list_streams(group, &streams);
	list_uploads(group, &uploads);
	const struct value stream_values[] = { { "MOUNT_RE", mount.buf }, { "STREAM_PATHS", streams.buf }, { NULL, NULL } };
	if (streams.len && expand("stream", stream_values, out, err) < 0)
		return -1;
	if (uploads.len && expand_upload(server, mount.buf, uploads.buf, out, err) < 0)
		return -1;
	const struct abx_endpoint *websocket = find_websocket(group);
	return websocket ? expand_pty(server, mount.buf, websocket->path, out, err) : 0;
}

/* ---- the routes of a template's own code */

/* A pattern that has grown to this gets no more alternatives: PCRE has its limits, and there can be many routes. */
#define PATTERN_LONG 4096

/* Whether there are paths that fit both patterns, and the first of them has them: the one with a literal segment where the other has a parameter, from the left. */
static bool has_before(const char *first, const char *second)
{
	int better = 0;

	while (*first && *second) {
		size_t len = strcspn(first + 1, "/"), other = strcspn(second + 1, "/");
		bool param = first[1] == '{', other_param = second[1] == '{';

		if (!param && !other_param && (len != other || memcmp(first + 1, second + 1, len) != 0))
			return false;
		if (!better && param != other_param)
			better = other_param ? 1 : -1;
		first += 1 + len;
		second += 1 + other;
	}
	return !*first && !*second && better > 0;
}

/* Append a route to a pattern, without the paths that built-in endpoints have before it. */
static void add_route(struct abx_strbuf *out, const char *path)
{
	abx_auto_strbuf struct abx_strbuf others = ABX_STRBUF_INIT;

	for (size_t i = 0; i < abx_endpoint_count_builtin(); i++) {
		const struct abx_endpoint *other = abx_endpoint_at(i);

		if (other->method != ABX_WS && has_before(other->path, path))
			add_alternative(&others, other->path);
	}
	if (out->len)
		abx_strbuf_addc(out, '|');
	if (others.len)
		abx_strbuf_addf(out, "(?!(%s)/?$)", others.buf);
	out->failed |= others.failed;
	add_pattern(out, path);
}

static int expand_routes_of(const struct abx_server *server, enum abx_method method, struct abx_strbuf *out, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf mount = ABX_STRBUF_INIT, routes = ABX_STRBUF_INIT;
	size_t i = abx_endpoint_count_builtin(), n = abx_endpoint_count();

	add_pattern(&mount, server->settings.mount_prefix);
	while (i < n) {
		abx_strbuf_reset(&routes);
		for (; i < n && routes.len < PATTERN_LONG; i++)
			if (abx_endpoint_at(i)->method == method)
				add_route(&routes, abx_endpoint_at(i)->path);
		const struct value values[] = { { "MOUNT_RE", mount.buf }, { "METHOD", abx_method_name(method) }, { "ROUTES", routes.buf },
						{ "SOCKET", "commands.sock" }, { NULL, NULL } };

		if (mount.failed || routes.failed)
			return abx_err_errno(err, ENOMEM, "lighttpd's configuration");
		if (routes.len && expand("route", values, out, err) < 0)
			return -1;
	}
	return 0;
}

/* They stand in the file that is always included, after all groups: of conditions that match the last one wins. */
static int expand_end(const struct abx_server *server, const char *backends, struct abx_strbuf *out, struct abx_err *err)
{
	const struct value values[] = { { "BACKENDS", backends }, { NULL, NULL } };

	for (enum abx_method method = ABX_GET; method <= ABX_DELETE && server->groups[ABX_GROUP_COMMANDS].program; method++)
		if (expand_routes_of(server, method, out, err) < 0)
			return -1;
	return expand("end", values, out, err);
}

/* ---- the error documents: for lighttpd's own errors while core is down */

static const struct {
	int status;
	const char *body;
} error_documents[] = {
	{ 400, "{\"error\": \"Bad request\", \"type\": \"ValueError\"}" },
	{ 403, "{\"error\": \"Forbidden\", \"type\": \"PermissionError\"}" },
	{ 404, "{\"error\": \"Not found\", \"type\": \"ValueError\"}" },
	{ 405, "{\"error\": \"Method not allowed\", \"type\": \"ValueError\", \"code\": \"method_not_allowed\"}" },
	{ 408, "{\"error\": \"Request timeout\", \"type\": \"TimeoutError\"}" },
	{ 411, "{\"error\": \"Length required\", \"type\": \"ValueError\"}" },
	{ 413, "{\"error\": \"Request body too large\", \"type\": \"ValueError\", \"code\": \"payload_too_large\"}" },
	{ 414, "{\"error\": \"Request target too long\", \"type\": \"ValueError\"}" },
	{ 417, "{\"error\": \"Expectation failed\", \"type\": \"ValueError\"}" },
	{ 431, "{\"error\": \"Request header too large\", \"type\": \"ValueError\"}" },
	{ 500, "{\"error\": \"Internal server error\", \"type\": \"RuntimeError\"}" },
	{ 501, "{\"error\": \"Not implemented\", \"type\": \"RuntimeError\"}" },
	{ 502, "{\"error\": \"Bad gateway\", \"type\": \"RuntimeError\"}" },
	{ 503, "{\"error\": \"Service unavailable\", \"type\": \"RuntimeError\"}" },
	{ 504, "{\"error\": \"Gateway timeout\", \"type\": \"RuntimeError\"}" },
	{ 505, "{\"error\": \"HTTP version not supported\", \"type\": \"ValueError\"}" },
};

static int write_error_documents(struct abx_server *server, struct abx_err *err)
{
	for (size_t i = 0; i < ABX_N(error_documents); i++) {
		char name[48];
		snprintf(name, sizeof(name), "lighttpd/error-%d.html", error_documents[i].status);
		if (abx_rundir_write(&server->dir, name, error_documents[i].body, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- all files */

static int write_text(struct abx_server *server, const char *name, const struct abx_strbuf *text, struct abx_err *err)
{
	if (text->failed)
		return abx_err_errno(err, ENOMEM, "lighttpd's configuration");
	return abx_rundir_write(&server->dir, name, text->buf, err);
}

static int write_main(struct abx_server *server, const char *includes, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct rlimit limit = { .rlim_cur = ABX_WEB_FDS, .rlim_max = ABX_WEB_FDS };
	char port[16], fds[16], connections[16];

	/* As root we raise the limit for it (web.c). */
	if (server->dir.web_uid == (uid_t)-1)
		getrlimit(RLIMIT_NOFILE, &limit);
	int max_fds = limit.rlim_max < ABX_WEB_FDS ? (int)limit.rlim_max : ABX_WEB_FDS;
	snprintf(port, sizeof(port), "%d", server->web.port);
	snprintf(fds, sizeof(fds), "%d", max_fds);
	snprintf(connections, sizeof(connections), "%d", max_fds / 4);
	const struct value values[] = {
		{ "RUN_DIR", server->dir.path },
		{ "SPOOL_DIR", server->dir.spool },
		{ "BIND", server->web.bind },
		{ "PORT", port },
		{ "MAX_FDS", fds },
		{ "MAX_CONNECTIONS", connections },
		{ "MOUNT", server->settings.mount_prefix },
		{ "INCLUDES", includes },
		{ NULL, NULL },
	};
	if (expand("main", values, &text, err) < 0)
		return -1;
	return write_text(server, "lighttpd.conf", &text, err);
}

int abx_webconf_write(struct abx_server *server, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf backends = ABX_STRBUF_INIT;
	abx_auto_strbuf struct abx_strbuf includes = ABX_STRBUF_INIT;
	abx_auto_strbuf struct abx_strbuf end = ABX_STRBUF_INIT;

	for (enum abx_group g = 0; g < ABX_GROUP__COUNT; g++) {
		abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
		char name[64];

		if (!server->groups[g].program)
			continue;
		snprintf(name, sizeof(name), "lighttpd/%s.conf", abx_groups[g].name);
		if (expand_group(server, g, &text, err) < 0 || write_text(server, name, &text, err) < 0)
			return -1;
		abx_strbuf_addf(&includes, "include \"%s\"\n", name);
	}
	abx_strbuf_adds(&includes, "include \"lighttpd/end.conf\"\n");
	add_backend(server, "/", ABX_GROUP_CORE, &backends);
	if (includes.failed || expand_end(server, backends.buf, &end, err) < 0 || write_text(server, "lighttpd/end.conf", &end, err) < 0 ||
	    write_error_documents(server, err) < 0)
		return -1;
	/* With a web server that is not ours, the include files are what it takes from here. */
	return server->web.listen_fd < 0 ? 0 : write_main(server, includes.buf, err);
}
