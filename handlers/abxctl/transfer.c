#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base64.h"
#include "common/json.h"
#include "common/uri.h"
#include "common/utf8.h"
#include "handlers/abxctl/http.h"
#include "handlers/abxctl/store.h"

/* The path goes into the query byte for byte, or as base64 where it is not UTF-8. */
static int make_target(const char *endpoint, const char *path, struct abx_strbuf *out)
{
	size_t len = strlen(path);
	bool valid = abx_utf8_is_valid(path, len);

	abx_strbuf_addf(out, "%s?%s=", endpoint, valid ? "path" : "path_base64");
	if (valid) {
		abx_uri_encode(path, len, true, out);
	} else {
		abx_auto_free char *encoded = malloc(ABX_BASE64_ENCODED(len) + 1);
		if (!encoded)
			return ctl_fail(CTL_FAILED, "out of memory");
		abx_uri_encode(encoded, abx_base64_encode(path, len, encoded), false, out);
	}
	return out->failed ? ctl_fail(CTL_USAGE, "the path is too long") : CTL_OK;
}

/* ---- upload */

/* Open a file, or standard input for "-", and find out how much there is to send. */
static int open_source(const char *path, struct http_source *ret)
{
	struct stat st;
	off_t at;

	ret->name = path;
	ret->fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (ret->fd < 0 || fstat(ret->fd, &st) < 0)
		return ctl_fail(CTL_FAILED, "cannot read %s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return ctl_fail(CTL_FAILED, "cannot read %s: %s", path, strerror(EISDIR));
	/* Files that the kernel makes up, in /proc say, call themselves empty. */
	at = S_ISREG(st.st_mode) && st.st_size > 0 ? lseek(ret->fd, 0, SEEK_CUR) : -1;
	ret->len = at < 0 ? -1 : at < st.st_size ? st.st_size - at : 0;
	return CTL_OK;
}

static void close_source(struct http_source *source)
{
	if (source->fd >= 0)
		close(source->fd);
}

int cmd_upload(struct ctl *ctl)
{
	struct http_source source __attribute__((cleanup(close_source))) = { .fd = -1 };
	abx_auto_strbuf struct abx_strbuf target = ABX_STRBUF_INIT;
	const char *local = ctl->argv[0], *remote = ctl->argv[1];
	int status = make_target("/upload", remote, &target);

	if (status == CTL_OK)
		status = open_source(local, &source);
	if (status != CTL_OK)
		return status;
	const struct http_request request = { .method = "POST", .target = target.buf, .source = &source, .progress = true };
	json_auto_t *answer = http_call_json(ctl, &request, &status);
	if (!answer)
		return status;
	const char *resolved = json_string_value(json_object_get(answer, "path"));
	const json_t *bytes = json_object_get(answer, "bytes");
	if (!resolved || !json_is_integer(bytes))
		return ctl_fail(CTL_FAILED, "%s does not answer as expected: there is no path or no count of bytes", ctl->url);
	if (ctl->json)
		return ctl_print_json(ctl, answer);
	printf("%s: %" JSON_INTEGER_FORMAT " bytes\n", resolved, json_integer_value(bytes));
	return CTL_OK;
}

/* ---- download */

static int fetch(struct ctl *ctl, const char *target, FILE *file, const char *name, int64_t *ret_bytes)
{
	const struct http_sink sink = { .file = file, .name = name };
	const struct http_request request = { .method = "GET", .target = target, .sink = &sink, .progress = true };
	http_auto_answer struct http_answer answer = HTTP_ANSWER_INIT;
	int status = http_call(ctl, &request, &answer);

	if (status == CTL_OK)
		*ret_bytes = answer.received;
	return status;
}

static int fetch_to_file(struct ctl *ctl, const char *target, const char *local)
{
	store_auto struct store store = STORE_INIT;
	json_auto_t *report = NULL;
	int64_t bytes = 0;

	if (store_open(local, &store) < 0)
		return ctl_fail(CTL_FAILED, "cannot write %s: %s", local, strerror(errno));
	int status = fetch(ctl, target, store.file, local, &bytes);
	if (status != CTL_OK)
		return status;
	if (store_commit(&store) < 0)
		return ctl_fail(CTL_FAILED, "cannot write %s: %s", local, strerror(errno));
	if (!ctl->json) {
		printf("%s: %lld bytes\n", local, (long long)bytes);
		return CTL_OK;
	}
	report = json_pack("{s:s?, s:I}", "path", abx_utf8_is_valid(local, strlen(local)) ? local : NULL, "bytes", (json_int_t)bytes);
	return ctl_print_json(ctl, report);
}

int cmd_download(struct ctl *ctl)
{
	abx_auto_strbuf struct abx_strbuf target = ABX_STRBUF_INIT;
	const char *local = ctl->argv[1];
	int64_t bytes;
	int status = make_target("/download", ctl->argv[0], &target);

	if (status != CTL_OK)
		return status;
	abx_strbuf_adds(&target, "&raw=1");
	if (target.failed)
		return ctl_fail(CTL_USAGE, "the path is too long");
	if (strcmp(local, "-") == 0)
		return fetch(ctl, target.buf, stdout, "to standard output", &bytes);
	return fetch_to_file(ctl, target.buf, local);
}
