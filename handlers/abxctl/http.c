#include "handlers/abxctl/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/json.h"
#include "handlers/abxctl/http_curl.h"
#include "handlers/abxctl/progress.h"

/* Addresses of this machine are never asked for through a proxy. */
#define LOOPBACK "127.0.0.1,localhost,[::1],::1"

#define CONNECT_MS 10000

struct transfer {
	CURL *curl;
	const struct http_request *request;
	struct http_answer *answer;
	int output_errno, input_errno; /* of the sink and the source; 0: all is well */
	struct progress progress;
};

void http_answer_release(struct http_answer *answer)
{
	abx_strbuf_release(&answer->body);
}

static void free_list(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

static void free_curl(CURL **curl)
{
	curl_easy_cleanup(*curl);
}

/* ---- the answer */

/* If the header line is the one of `name`, its value. */
static const char *header_value(const char *line, size_t len, const char *name, size_t *ret_len)
{
	size_t skip = strlen(name);

	if (len <= skip || line[skip] != ':' || strncasecmp(line, name, skip) != 0)
		return NULL;
	skip++;
	while (skip < len && (line[skip] == ' ' || line[skip] == '\t'))
		skip++;
	while (len > skip && (unsigned char)line[len - 1] <= ' ')
		len--;
	*ret_len = len - skip;
	return line + skip;
}

static size_t take_header(char *line, size_t size, size_t n, void *arg)
{
	struct http_answer *answer = ((struct transfer *)arg)->answer;
	size_t len = size * n, value_len = 0;
	const char *value = header_value(line, len, "X-Request-Id", &value_len);

	if (value)
		snprintf(answer->request_id, sizeof(answer->request_id), "%.*s", (int)value_len, value);
	value = header_value(line, len, "Content-Type", &value_len);
	if (value)
		answer->is_json = value_len >= 16 && strncasecmp(value, "application/json", 16) == 0;
	return len;
}

static size_t pass_on(struct transfer *transfer, const char *data, size_t len)
{
	const struct http_sink *sink = transfer->request->sink;

	errno = EIO;
	if (fwrite(data, 1, len, sink->file) != len || (sink->flush && fflush(sink->file) != 0)) {
		transfer->output_errno = errno;
		return 0;
	}
	transfer->answer->received += (int64_t)len;
	return len;
}

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *transfer = arg;
	struct http_answer *answer = transfer->answer;
	size_t len = size * n;
	long status = 0;

	if (len == 0)
		return 0;
	answer->last_byte = data[len - 1];
	curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
	if (transfer->request->sink && status / 100 == 2)
		return pass_on(transfer, data, len);
	abx_strbuf_add(&answer->body, data, len);
	return answer->body.failed ? 0 : len;
}

/* ---- the request */

static size_t give_body(char *room, size_t size, size_t n, void *arg)
{
	struct transfer *transfer = arg;
	const struct http_source *source = transfer->request->source;
	int64_t left = source->len < 0 ? INT64_MAX : source->len - transfer->answer->sent;
	ssize_t got = read(source->fd, room, left < (int64_t)(size * n) ? (size_t)left : size * n);

	if (got < 0 || (got == 0 && source->len >= 0 && left > 0)) {
		/* A file that has become shorter would leave the server waiting for the rest. */
		transfer->input_errno = got < 0 ? errno : ESTALE;
		return CURL_READFUNC_ABORT;
	}
	transfer->answer->sent += got;
	return (size_t)got;
}

static int show_progress(void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
	struct transfer *transfer = arg;
	bool sending = transfer->request->source;

	progress_show(&transfer->progress, sending ? up : down, sending ? up_total : down_total);
	return 0;
}

static bool add_header(struct curl_slist **list, const char *header)
{
	struct curl_slist *longer = curl_slist_append(*list, header);

	if (longer)
		*list = longer;
	return longer;
}

static bool make_headers(const struct ctl *ctl, const struct http_request *request, struct curl_slist **list)
{
	abx_auto_strbuf struct abx_strbuf bearer = ABX_STRBUF_INIT;

	/* Waiting for a "100 Continue" only costs time. */
	if (!add_header(list, "Expect:") || (request->body && !add_header(list, "Content-Type: application/json")))
		return false;
	if (request->source && !add_header(list, "Content-Type: application/octet-stream"))
		return false;
	if (request->source && request->source->len < 0 && !add_header(list, "Transfer-Encoding: chunked"))
		return false;
	if (!ctl->token)
		return true;
	abx_strbuf_addf(&bearer, "Authorization: Bearer %s", ctl->token);
	bool added = !bearer.failed && add_header(list, bearer.buf);
	explicit_bzero(bearer.buf, bearer.len);
	return added;
}

static CURLcode set_proxy(CURL *curl)
{
	const char *listed = getenv("no_proxy") ? getenv("no_proxy") : getenv("NO_PROXY");
	abx_auto_strbuf struct abx_strbuf hosts = ABX_STRBUF_INIT;

	abx_strbuf_adds(&hosts, LOOPBACK);
	if (listed && strcmp(listed, "*") == 0)
		return curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	if (listed && *listed)
		abx_strbuf_addf(&hosts, ",%s", listed);
	return hosts.failed ? CURLE_OUT_OF_MEMORY : curl_easy_setopt(curl, CURLOPT_NOPROXY, hosts.buf);
}

static CURLcode set_body(CURL *curl, const struct http_request *request)
{
	bool is_post = strcmp(request->method, "POST") == 0;
	CURLcode rc = CURLE_OK;

	if (request->source) {
		rc = curl_easy_setopt(curl, CURLOPT_POST, 1L);
		if (rc == CURLE_OK)
			rc = curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->source->len);
	} else if (is_post || request->body) {
		rc = curl_easy_setopt(curl, CURLOPT_POST, 1L);
		if (rc == CURLE_OK)
			rc = curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
		if (rc == CURLE_OK)
			rc = curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
	}
	if (rc == CURLE_OK && !is_post && strcmp(request->method, "GET") != 0)
		rc = curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
	return rc;
}

/* Keep the first failure of several settings. */
#define SET(curl, option, value)                                  \
	do {                                                      \
		if (rc == CURLE_OK)                               \
			rc = curl_easy_setopt(curl, option, value); \
	} while (0)

CURLcode http_curl_prepare(CURL *curl, const char *url, char *message)
{
	const char *authorities = getenv("SSL_CERT_FILE");
	CURLcode rc = set_proxy(curl);

	SET(curl, CURLOPT_URL, url);
	SET(curl, CURLOPT_USERAGENT, "abxctl/" PACKAGE_VERSION);
	SET(curl, CURLOPT_PATH_AS_IS, 1L);
	SET(curl, CURLOPT_NOSIGNAL, 1L);
	SET(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	SET(curl, CURLOPT_ERRORBUFFER, message);
	if (authorities && *authorities)
		SET(curl, CURLOPT_CAINFO, authorities);
	return rc;
}

static CURLcode prepare(struct transfer *transfer, const char *url, struct curl_slist *headers, char *message)
{
	CURLcode rc = set_body(transfer->curl, transfer->request);

	if (rc == CURLE_OK)
		rc = http_curl_prepare(transfer->curl, url, message);
	SET(transfer->curl, CURLOPT_HTTPHEADER, headers);
	SET(transfer->curl, CURLOPT_TIMEOUT_MS, (long)transfer->request->timeout_ms);
	SET(transfer->curl, CURLOPT_HEADERFUNCTION, take_header);
	SET(transfer->curl, CURLOPT_HEADERDATA, transfer);
	SET(transfer->curl, CURLOPT_WRITEFUNCTION, take_body);
	SET(transfer->curl, CURLOPT_WRITEDATA, transfer);
	SET(transfer->curl, CURLOPT_READFUNCTION, give_body);
	SET(transfer->curl, CURLOPT_READDATA, transfer);
	SET(transfer->curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
	SET(transfer->curl, CURLOPT_BUFFERSIZE, 512L << 10);
	SET(transfer->curl, CURLOPT_NOPROGRESS, transfer->request->progress ? 0L : 1L);
	SET(transfer->curl, CURLOPT_XFERINFOFUNCTION, show_progress);
	SET(transfer->curl, CURLOPT_XFERINFODATA, transfer);
	return rc;
}

int http_curl_explain(const struct ctl *ctl, CURL *curl, CURLcode rc, const char *message, struct abx_err *err)
{
	curl_off_t began = 0;

	if (!*message)
		message = curl_easy_strerror(rc);
	if (rc == CURLE_URL_MALFORMAT) {
		abx_err_set(err, ABX_E_VALUE, "%s: %s", ctl->url, message);
		return CTL_USAGE;
	}
	abx_err_set(err, ABX_E_UNAVAILABLE, "%s: %s", ctl->url, message);
	curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &began);
	return began || rc == CURLE_OUT_OF_MEMORY ? CTL_FAILED : CTL_NO_CONNECTION;
}

static int explain(const struct ctl *ctl, const struct transfer *transfer, CURLcode rc, const char *message,
		   struct abx_err *err)
{
	if (transfer->output_errno) {
		abx_err_set(err, ABX_E_INTERNAL, "cannot write %s: %s", transfer->request->sink->name, strerror(transfer->output_errno));
		return CTL_FAILED;
	}
	if (transfer->input_errno) {
		abx_err_set(err, ABX_E_INTERNAL, "cannot read %s: %s", transfer->request->source->name, strerror(transfer->input_errno));
		return CTL_FAILED;
	}
	if (transfer->answer->body.failed) {
		abx_err_set(err, ABX_E_TOO_LARGE, "the answer of the server is too large");
		return CTL_FAILED;
	}
	return http_curl_explain(ctl, transfer->curl, rc, message, err);
}

int http_send(const struct ctl *ctl, const struct http_request *request, struct http_answer *ret_answer,
	      struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf url = ABX_STRBUF_INIT;
	struct curl_slist *headers __attribute__((cleanup(free_list))) = NULL;
	CURL *curl __attribute__((cleanup(free_curl))) = curl_easy_init();
	struct transfer transfer = { .curl = curl, .request = request, .answer = ret_answer, .progress = PROGRESS_INIT };
	char message[CURL_ERROR_SIZE] = "";

	abx_strbuf_addf(&url, "%s%s", ctl->url, request->target);
	if (!curl || url.failed || !make_headers(ctl, request, &headers)) {
		abx_err_set(err, ABX_E_INTERNAL, "out of memory");
		return CTL_FAILED;
	}
	CURLcode rc = prepare(&transfer, url.buf, headers, message);
	if (rc == CURLE_OK)
		rc = curl_easy_perform(curl);
	progress_end(&transfer.progress);
	if (rc != CURLE_OK)
		return explain(ctl, &transfer, rc, message, err);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret_answer->status);
	return CTL_OK;
}

/* ---- answers that are no success */

/* The message of an error body, or NULL: a string, or the agents' object that holds one. */
static const char *error_text(const json_t *body)
{
	const json_t *error = json_object_get(body, "error");

	if (json_is_object(error))
		error = json_object_get(error, "message");
	return json_string_value(error);
}

void http_describe(const struct ctl *ctl, const struct http_answer *answer, struct abx_strbuf *out)
{
	struct abx_err err = ABX_ERR_INIT;
	json_auto_t *body = abx_json_parse(answer->body.buf, answer->body.len, &err);
	const char *text = error_text(body);

	if (text)
		abx_strbuf_adds(out, text);
	else
		abx_strbuf_addf(out, "%s answered with HTTP status %ld", ctl->url, answer->status);
	if (answer->status == 401)
		abx_strbuf_adds(out, ctl->token ? ": the server does not know this ABX_SERVER_TOKEN" : ": set ABX_SERVER_TOKEN");
	if (answer->status >= 500 && answer->request_id[0])
		abx_strbuf_addf(out, " (request %s)", answer->request_id);
}

int http_call(const struct ctl *ctl, const struct http_request *request, struct http_answer *ret_answer)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_err err = ABX_ERR_INIT;
	int status = http_send(ctl, request, ret_answer, &err);

	if (status != CTL_OK)
		return ctl_fail(status, "%s", err.message);
	if (ret_answer->status / 100 == 2)
		return CTL_OK;
	http_describe(ctl, ret_answer, &text);
	return ctl_fail(CTL_FAILED, "%s", text.buf);
}

json_t *http_call_json(const struct ctl *ctl, const struct http_request *request, int *ret_status)
{
	http_auto_answer struct http_answer answer = HTTP_ANSWER_INIT;
	struct abx_err err = ABX_ERR_INIT;
	int status = http_call(ctl, request, &answer);
	json_t *body;

	if (status != CTL_OK) {
		*ret_status = status;
		return NULL;
	}
	body = abx_json_parse_body(answer.body.buf, answer.body.len, NULL, NULL, &err);
	if (!body)
		*ret_status = ctl_fail(CTL_FAILED, "%s does not answer as expected: %s", ctl->url, err.message);
	return body;
}
