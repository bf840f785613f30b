/* A FastCGI client (specification 1.0, sections 3 to 5) for one request without a body. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "handlers/core/core.h"

enum { BEGIN_REQUEST = 1, END_REQUEST = 3, PARAMS = 4, STDIN = 5, STDOUT = 6 };

#define RECORD_MAX 65535

static void add_record(struct abx_strbuf *out, int type, const char *data, size_t len)
{
	do {
		size_t n = len < RECORD_MAX ? len : RECORD_MAX;
		const unsigned char header[8] = { 1, (unsigned char)type, 0, 1, (unsigned char)(n >> 8), (unsigned char)n };

		abx_strbuf_add(out, header, sizeof(header));
		abx_strbuf_add(out, data, n);
		data += n;
		len -= n;
	} while (len);
}

static void add_length(struct abx_strbuf *out, size_t len)
{
	const unsigned char bytes[4] = { (unsigned char)(0x80 | len >> 24), (unsigned char)(len >> 16),
					 (unsigned char)(len >> 8), (unsigned char)len };

	if (len < 128)
		abx_strbuf_addc(out, (char)len);
	else
		abx_strbuf_add(out, bytes, sizeof(bytes));
}

static void add_param(struct abx_strbuf *out, const char *name, size_t name_len, const char *value)
{
	size_t value_len = strlen(value);

	add_length(out, name_len);
	add_length(out, value_len);
	abx_strbuf_add(out, name, name_len);
	abx_strbuf_add(out, value, value_len);
}

/* The variables are passed on, but for those that lighttpd changed when it turned the request into an error. */
static void add_request(const struct abx_request *req, struct abx_strbuf *out)
{
	static const char *const own[] = { "REQUEST_METHOD=", "CONTENT_LENGTH=", "REDIRECT_STATUS=", "HTTP_X_REQUEST_ID=" };
	static const char role[8] = { 0, 1 }; /* responder, close the connection afterwards */
	abx_auto_strbuf struct abx_strbuf params = ABX_STRBUF_INIT;

	for (char *const *p = req->io->params; *p; p++) {
		const char *equals = strchr(*p, '=');
		bool skip = !equals;

		for (size_t i = 0; i < ABX_N(own); i++)
			skip = skip || strncmp(*p, own[i], strlen(own[i])) == 0;
		if (!skip)
			add_param(&params, *p, (size_t)(equals - *p), equals + 1);
	}
	add_param(&params, "REQUEST_METHOD", 14, req->method);
	add_param(&params, "CONTENT_LENGTH", 14, "0");
	add_param(&params, "REDIRECT_STATUS", 15, "200");
	add_param(&params, "HTTP_X_REQUEST_ID", 17, req->request_id);
	add_record(out, BEGIN_REQUEST, role, sizeof(role));
	add_record(out, PARAMS, params.buf, params.len);
	add_record(out, PARAMS, "", 0);
	add_record(out, STDIN, "", 0);
	out->failed |= params.failed;
}

static int connect_group(const struct abx_policy *policy, enum abx_group group)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	abx_auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s.sock", policy->run_dir, abx_groups[group].name);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return abx_steal_fd(&fd);
}

/* Wait until the responder has sent something. -1: the client has left meanwhile. */
static int wait_readable(const struct abx_request *req, int fd)
{
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = req->io->client_fd, .events = POLLRDHUP } };

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -1;
	return fds[0].revents ? 0 : -1;
}

static int read_exactly(const struct abx_request *req, int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n;

		if (wait_readable(req, fd) < 0)
			return -1;
		n = recv(fd, (char *)buf + done, len - done, 0);
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

/* Pass records of output on until the end. 0: the answer came whole. */
static int pump(struct abx_request *req, int fd)
{
	abx_auto_free char *content = malloc(RECORD_MAX + 255);
	unsigned char header[8];

	while (content && read_exactly(req, fd, header, sizeof(header)) == 0) {
		size_t len = (size_t)header[4] << 8 | header[5];

		if (read_exactly(req, fd, content, len + header[6]) < 0)
			return -1;
		if (header[1] == END_REQUEST)
			return 0;
		if (header[1] != STDOUT || len == 0)
			continue;
		/* The other responder's header block is the head of our answer. */
		if (req->res.state == ABX_RESPONSE_NEW) {
			req->res.state = ABX_RESPONSE_BODY;
			req->res.status = len > 8 && memcmp(content, "Status: ", 8) == 0 ? atoi(content + 8) : 200;
		}
		if (abx_response_write(&req->res, content, len) < 0)
			return -1;
	}
	return -1;
}

int core_relay(struct abx_request *req, enum abx_group group, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf request = ABX_STRBUF_INIT;
	abx_auto_fd int fd = connect_group(req->service->policy, group);

	add_request(req, &request);
	if (fd < 0 || request.failed || abx_write_all(fd, request.buf, request.len) < 0)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The responder of group '%s' is not running; try again",
				   abx_groups[group].name);
	if (pump(req, fd) < 0)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The responder of group '%s' broke off its answer",
				   abx_groups[group].name);
	return 0;
}
