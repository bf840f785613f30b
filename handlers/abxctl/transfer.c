#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base64.h"
#include "common/json.h"
#include "common/uri.h"
#include "common/utf8.h"
#include "handlers/abxctl/http.h"

/* The server's limit of a JSON body. */
#define BODY_MAX ((size_t)10 << 20)

/* ---- upload */

/* Append the member that names the file: names that are not UTF-8 have one of their own. */
static void add_path(struct abx_json_writer *jw, const char *path)
{
	size_t len = strlen(path);
	abx_auto_free char *encoded = malloc(ABX_BASE64_ENCODED(len) + 1);

	if (abx_utf8_is_valid(path, len)) {
		abx_jw_kstring(jw, "path", path);
	} else if (encoded) {
		abx_jw_key(jw, "path_base64");
		abx_jw_stringn(jw, encoded, abx_base64_encode(path, len, encoded));
	} else {
		jw->out->failed = true;
	}
}

/* Read a file, or standard input for "-", of at most `max` bytes. */
static int read_local(const char *path, size_t max, struct abx_strbuf *out)
{
	bool is_input = strcmp(path, "-") == 0;
	abx_auto_fd int fd = is_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	char piece[65536];
	ssize_t n = fd < 0 ? -1 : 0;

	if (fd >= 0)
		while ((n = read(fd, piece, sizeof(piece))) > 0 && out->len <= max)
			abx_strbuf_add(out, piece, (size_t)n);
	if (n < 0)
		return ctl_fail(CTL_FAILED, "cannot read %s: %s", path, strerror(errno));
	if (out->len > max)
		return ctl_fail(CTL_FAILED, "%s is too large: %zu bytes of a file fit into a request, which is at most %zu MiB",
				path, max, BODY_MAX >> 20);
	return out->failed ? ctl_fail(CTL_FAILED, "out of memory") : CTL_OK;
}

static void add_base64(const struct abx_strbuf *data, struct abx_strbuf *out)
{
	if (abx_strbuf_reserve(out, ABX_BASE64_ENCODED(data->len)) < 0)
		return;
	out->len += abx_base64_encode(data->buf, data->len, out->buf + out->len);
	out->buf[out->len] = '\0';
}

int cmd_upload(struct ctl *ctl)
{
	static const char tail[] = "\"}";
	abx_auto_strbuf struct abx_strbuf data = ABX_STRBUF_INIT_MAX(BODY_MAX), body = ABX_STRBUF_INIT_MAX(BODY_MAX);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	const char *local = ctl->argv[0], *remote = ctl->argv[1];
	int status = CTL_OK;

	abx_jw_object(&jw);
	add_path(&jw, remote);
	abx_jw_key(&jw, "content_base64");
	abx_strbuf_addc(&body, '"');
	if (body.failed)
		return ctl_fail(CTL_USAGE, "the path is too long");
	status = read_local(local, (BODY_MAX - body.len - strlen(tail)) / 4 * 3, &data);
	if (status != CTL_OK)
		return status;
	add_base64(&data, &body);
	abx_strbuf_adds(&body, tail);
	if (body.failed)
		return ctl_fail(CTL_FAILED, "out of memory");
	const struct http_request request = { .method = "POST", .target = "/upload", .body = body.buf, .body_len = body.len };
	json_auto_t *answer = http_call_json(ctl, &request, &status);
	if (!answer)
		return status;
	const char *resolved = json_string_value(json_object_get(answer, "path"));
	printf("%s: %zu bytes\n", resolved ? resolved : remote, data.len);
	return CTL_OK;
}

/* ---- download */

/* Where the bytes go first: beside `path`, so that a rename puts them in its place. */
static int make_temporary(const char *path, mode_t mode, char **ret_name)
{
	const char *slash = strrchr(path, '/');
	int dir_len = slash ? (int)(slash + 1 - path) : 0, fd;
	abx_auto_free char *name = NULL;

	if (asprintf(&name, "%.*s.abxctl-XXXXXX", dir_len, path) < 0) {
		name = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0 && fchmod(fd, mode) < 0) {
		close(fd);
		unlink(name);
		return -1;
	}
	if (fd >= 0)
		*ret_name = ABX_STEAL(name);
	return fd;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* All or nothing: when it fails the old file is as it was. */
static int replace_file(const char *path, mode_t mode, const char *data, size_t len)
{
	abx_auto_free char *temporary = NULL;
	int fd = make_temporary(path, mode, &temporary), saved;

	if (fd < 0)
		return -1;
	bool written = write_all(fd, data, len) == 0;
	saved = errno;
	if (close(fd) < 0 && written) {
		written = false;
		saved = errno;
	}
	if (written && rename(temporary, path) == 0)
		return 0;
	if (written)
		saved = errno;
	unlink(temporary);
	errno = saved;
	return -1;
}

static mode_t default_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int write_local(const char *path, const char *data, size_t len)
{
	abx_auto_free char *real = realpath(path, NULL); /* a link stays one */
	struct stat st;

	if (!real)
		return errno == ENOENT ? replace_file(path, default_mode(), data, len) : -1;
	if (stat(real, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return replace_file(real, st.st_mode & 07777, data, len);
	/* A pipe or a device; a directory is refused here. */
	abx_auto_fd int fd = open(real, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -1 : write_all(fd, data, len);
}

static int deliver(const char *local, const char *data, size_t len)
{
	if (strcmp(local, "-") == 0)
		return fwrite(data, 1, len, stdout) == len ? CTL_OK : ctl_fail(CTL_FAILED, "cannot write to standard output");
	if (write_local(local, data, len) < 0)
		return ctl_fail(CTL_FAILED, "cannot write %s: %s", local, strerror(errno));
	printf("%s: %zu bytes\n", local, len);
	return CTL_OK;
}

/* The content of an answer of /download, decoded where it lies in `body`, or in a copy that the caller frees. */
static int decode(struct abx_strbuf *body, char **ret_copy, const char **ret_data, size_t *ret_len, struct abx_err *err)
{
	static const char *const cut[] = { "content_base64", NULL };
	struct abx_json_text text;
	json_auto_t *answer = abx_json_parse_body(body->buf, body->len, cut, &text, err);
	const json_t *content = json_object_get(answer, cut[0]);

	if (!answer)
		return -1;
	if (!text.name && json_is_string(content)) {
		/* It was short, and so is not in place. */
		text.len = json_string_length(content);
		*ret_copy = text.data = malloc(text.len + 1);
		if (!text.data)
			return abx_err_set(err, ABX_E_INTERNAL, "out of memory");
		memcpy(text.data, json_string_value(content), text.len);
	} else if (!text.name) {
		return abx_err_set(err, ABX_E_VALUE, "there is no content");
	}
	ssize_t len = abx_base64_decode(text.data, text.len, text.data);
	if (len < 0)
		return abx_err_set(err, ABX_E_VALUE, "the content is not base64");
	*ret_data = text.data;
	*ret_len = (size_t)len;
	return 0;
}

/* The path goes into the query byte for byte, or as base64 where it is not UTF-8. */
static void make_target(const char *path, struct abx_strbuf *out)
{
	abx_auto_strbuf struct abx_strbuf name = ABX_STRBUF_INIT, data = ABX_STRBUF_INIT;
	size_t len = strlen(path);
	bool valid = abx_utf8_is_valid(path, len);

	abx_strbuf_add(&name, path, len);
	if (valid)
		abx_strbuf_add(&data, path, len);
	else
		add_base64(&name, &data);
	abx_strbuf_addf(out, "/download?%s=", valid ? "path" : "path_base64");
	abx_uri_encode(data.buf, data.len, valid, out);
	if (data.failed)
		out->failed = true;
}

int cmd_download(struct ctl *ctl)
{
	http_auto_answer struct http_answer answer = HTTP_ANSWER_INIT;
	abx_auto_strbuf struct abx_strbuf target = ABX_STRBUF_INIT;
	abx_auto_free char *copy = NULL;
	struct abx_err err = ABX_ERR_INIT;
	const char *data = NULL;
	size_t len = 0;

	make_target(ctl->argv[0], &target);
	if (target.failed)
		return ctl_fail(CTL_USAGE, "the path is too long");
	const struct http_request request = { .method = "GET", .target = target.buf };
	int status = http_call(ctl, &request, &answer);
	if (status != CTL_OK)
		return status;
	if (decode(&answer.body, &copy, &data, &len, &err) < 0)
		return ctl_fail(CTL_FAILED, "%s does not answer as expected: %s", ctl->url, err.message);
	return deliver(ctl->argv[1], data, len);
}
