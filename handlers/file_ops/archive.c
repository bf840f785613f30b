#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/transfer.h"
#include "handlers/file_ops/handlers.h"
#include "handlers/file_ops/http.h"
#include "handlers/file_ops/pack.h"
#include "handlers/file_ops/slots.h"
#include "handlers/file_ops/spool.h"

/* One of the paths that are asked for. No descriptor is kept: there may be thousands of them. */
struct source {
	const char *given;
	char *resolved;
	char *name; /* of its first member */
};

struct sources {
	struct source *list;
	size_t n;
};

static void sources_release(struct sources *sources)
{
	for (size_t i = 0; i < sources->n; i++) {
		free(sources->list[i].resolved);
		free(sources->list[i].name);
	}
	free(sources->list);
}

/* The last component of the path as it was given; where that says nothing ("..") the place's own name. */
static char *member_name(const char *given, const struct abx_path *path)
{
	size_t len = strlen(given), start;

	while (len > 0 && given[len - 1] == '/')
		len--;
	for (start = len; start > 0 && given[start - 1] != '/'; start--)
		;
	bool dots = len - start == 0 || (len - start <= 2 && memcmp(given + start, "..", len - start) == 0);
	if (!dots)
		return strndup(given + start, len - start);
	return strdup(path->name[0] == '/' ? "root" : path->name);
}

/* The same place twice is once (1); two places under one name would hide each other. */
static int compare_sources(const struct source *a, const struct source *b, struct abx_err *err)
{
	if (strcmp(a->name, b->name) != 0)
		return 0;
	if (strcmp(a->resolved, b->resolved) == 0)
		return 1;
	return abx_err_set(err, ABX_E_VALUE, "paths: two of them end in '%s'", a->name);
}

static int add_source(struct abx_request *req, struct sources *sources, const char *given, struct abx_err *err)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct source *source = &sources->list[sources->n];
	int same = 0;

	if (abx_path_resolve(req->roots, given, 0, &path, err) < 0)
		return -1;
	*source = (struct source){
		.given = given, .resolved = ABX_STEAL(path.resolved), .name = member_name(given, &path),
	};
	sources->n++;
	if (!source->name)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	for (size_t i = 0; same == 0 && i + 1 < sources->n; i++)
		same = compare_sources(&sources->list[i], source, err);
	if (same > 0) {
		free(source->resolved);
		free(source->name);
		sources->n--;
	}
	return same < 0 ? -1 : 0;
}

static int take_sources(struct abx_request *req, struct sources *sources, struct abx_err *err)
{
	const json_t *paths = abx_arg_json(req, "paths"), *item;
	size_t i;

	if ((int64_t)json_array_size(paths) > req->rule->limits.max_files)
		return abx_err_set(err, ABX_E_VALUE, "There are more than %lld files", (long long)req->rule->limits.max_files);
	sources->list = calloc(json_array_size(paths), sizeof(*sources->list));
	if (!sources->list)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	json_array_foreach(paths, i, item)
		if (add_source(req, sources, json_string_value(item), err) < 0)
			return -1;
	return 0;
}

static int take_format(const struct abx_request *req, enum pack_format *ret_format, struct abx_err *err)
{
	const char *format = abx_arg_string(req, "format");

	if (strcmp(format, "tar.gz") != 0 && strcmp(format, "zip") != 0)
		return abx_err_set(err, ABX_E_VALUE, "format: must be tar.gz or zip");
	*ret_format = *format == 'z' ? PACK_ZIP : PACK_TAR_GZ;
	return 0;
}

static int make(struct pack *pack, enum pack_format format, const struct sources *sources, struct abx_err *err)
{
	if (pack_begin(pack, format, err) < 0)
		return -1;
	for (size_t i = 0; i < sources->n; i++) {
		abx_auto_path struct abx_path path = ABX_PATH_INIT;

		if (abx_path_resolve(pack->req->roots, sources->list[i].given, 0, &path, err) < 0 ||
		    pack_add(pack, &path, sources->list[i].name, err) < 0)
			return -1;
	}
	return pack_end(pack, err);
}

/* ---- the JSON form */

static int put_spool(void *ctx, const void *data, size_t len, struct abx_err *err)
{
	const struct abx_file *file = ctx;

	return abx_write_all(file->fd, data, len) < 0 ? abx_err_errno(err, errno, "Cannot spool the archive") : 0;
}

static int archive_json(struct abx_request *req, struct pack *pack, enum pack_format format, const struct sources *sources,
			struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf head = ABX_STRBUF_INIT, tail = ABX_STRBUF_INIT;
	abx_auto_file struct abx_file file = { .fd = spool_open(err) };

	pack->put = put_spool;
	pack->ctx = &file;
	if (file.fd < 0 || make(pack, format, sources, err) < 0)
		return -1;
	file.size = pack->bytes;
	abx_strbuf_adds(&head, "{\"content_base64\": \"");
	abx_strbuf_addf(&tail, "\", \"format\": \"%s\", \"bytes\": %lld}", abx_arg_string(req, "format"), (long long)file.size);
	if (tail.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	return abx_file_send_base64(req, &file, &head, tail.buf, err);
}

/* ---- the raw form */

struct raw_archive {
	struct abx_request *req;
	const char *name, *extension;
};

/* The response begins with the first bytes, so that what goes wrong before them is still an error. */
static int begin_raw(const struct raw_archive *raw, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf name = ABX_STRBUF_INIT, disposition = ABX_STRBUF_INIT;

	abx_strbuf_addf(&name, "%s.%s", raw->name, raw->extension);
	http_disposition(name.buf, &disposition);
	if (name.failed || disposition.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	abx_response_header(&raw->req->res, "Content-Disposition", disposition.buf);
	if (abx_response_begin(&raw->req->res, 200, "application/octet-stream", -1) < 0)
		return abx_err_set(err, ABX_E_GONE, "The client left");
	return 0;
}

static int put_raw(void *ctx, const void *data, size_t len, struct abx_err *err)
{
	const struct raw_archive *raw = ctx;

	if (raw->req->res.state == ABX_RESPONSE_NEW && begin_raw(raw, err) < 0)
		return -1;
	if (abx_response_write(&raw->req->res, data, len) < 0)
		return abx_err_set(err, ABX_E_GONE, "The client left");
	return 0;
}

/* What can be told before the first byte is, since behind it there is no way to say that something went wrong but to break off. */
static int count(struct pack *pack, const struct sources *sources, struct abx_err *err)
{
	for (size_t i = 0; i < sources->n; i++) {
		abx_auto_path struct abx_path path = ABX_PATH_INIT;

		if (abx_path_resolve(pack->req->roots, sources->list[i].given, 0, &path, err) < 0 || pack_count(pack, &path, err) < 0)
			return -1;
	}
	pack->files = 0;
	return 0;
}

static int archive_raw(struct abx_request *req, struct pack *pack, enum pack_format format, const struct sources *sources,
		       struct abx_err *err)
{
	struct raw_archive raw = {
		.req = req,
		.name = sources->n == 1 ? sources->list[0].name : "archive",
		.extension = abx_arg_string(req, "format"),
	};

	pack->put = put_raw;
	pack->ctx = &raw;
	if (count(pack, sources, err) < 0)
		return -1;
	return make(pack, format, sources, err);
}

int h_files_archive(struct abx_request *req, struct abx_err *err)
{
	__attribute__((cleanup(sources_release))) struct sources sources = { 0 };
	auto_pack struct pack pack = {
		.req = req, .max_files = req->rule->limits.max_files, .max_bytes = req->rule->limits.max_bytes,
	};
	auto_slot int slot = -1;
	enum pack_format format;

	if (take_format(req, &format, err) < 0 || take_sources(req, &sources, err) < 0 || (slot = slot_take(err)) < 0)
		return -1;
	return abx_request_wants_raw(req) ? archive_raw(req, &pack, format, &sources, err) :
					    archive_json(req, &pack, format, &sources, err);
}
