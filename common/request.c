#include "common/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/clock.h"
#include "common/ids.h"

/* The path of a request target, without scheme, host and mount prefix. Sets *ret_len to its length. */
static const char *target_path(const char *uri, const char *prefix, size_t *ret_len)
{
	size_t prefix_len = strlen(prefix);

	if (strncmp(uri, "http://", 7) == 0 || strncmp(uri, "https://", 8) == 0) {
		uri = strchr(uri, '/') + 2;
		uri += strcspn(uri, "/?");
	}
	if (strncmp(uri, prefix, prefix_len) == 0 && strchr("/?", uri[prefix_len]))
		uri += prefix_len;
	*ret_len = strcspn(uri, "?#");
	return uri;
}

void abx_request_init(struct abx_request *req, const struct abx_service *service, struct abx_io *io)
{
	const char *uri, *path, *id;
	size_t len;

	*req = (struct abx_request){ .service = service, .io = io, .started_us = abx_clock_us(), .query = "" };
	abx_response_init(&req->res, io);
	req->method = abx_request_variable(req, "REQUEST_METHOD");
	if (!req->method)
		req->method = "";
	uri = abx_request_variable(req, "REQUEST_URI");
	path = target_path(uri ? uri : "", service->policy->mount_prefix, &len);
	req->path = strndup(path, len);
	if (path[len] == '?')
		req->query = path + len + 1;
	id = abx_request_variable(req, "HTTP_X_REQUEST_ID");
	if (id && abx_id_is_sane(id))
		snprintf(req->request_id, sizeof(req->request_id), "%s", id);
	else
		abx_id_unique(req->request_id);
}

void abx_request_release(struct abx_request *req)
{
	for (size_t i = 0; i < req->n_params; i++)
		free(req->params[i].value);
	json_decref(req->args);
	json_decref(req->error_members);
	free(req->failure.message);
	abx_block_free(&req->block);
	free(req->path);
	abx_response_release(&req->res);
}

const char *abx_request_variable(const struct abx_request *req, const char *name)
{
	size_t len = strlen(name);

	for (char *const *p = req->io->params; *p; p++)
		if (strncmp(*p, name, len) == 0 && (*p)[len] == '=')
			return *p + len + 1;
	return NULL;
}

/* ABX_MOUNTED is set by those files, each of which appends the name of its group. */
bool abx_request_group_is_mounted(const struct abx_request *req, enum abx_group group)
{
	const char *p = abx_request_variable(req, "ABX_MOUNTED"), *name = abx_groups[group].name;
	size_t len = strlen(name);

	while (p && *p) {
		size_t word;

		p += strspn(p, ",");
		word = strcspn(p, ",");
		if (word == len && memcmp(p, name, len) == 0)
			return true;
		p += word;
	}
	return group == ABX_GROUP_CORE;
}

const char *abx_request_param(const struct abx_request *req, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < req->n_params; i++)
		if (req->params[i].name_len == len && memcmp(req->params[i].name, name, len) == 0)
			return req->params[i].value;
	return NULL;
}

const json_t *abx_arg_json(const struct abx_request *req, const char *name)
{
	return json_object_get(req->args, name);
}

bool abx_arg_given(const struct abx_request *req, const char *name)
{
	return abx_arg_json(req, name) != NULL;
}

const char *abx_arg_string(const struct abx_request *req, const char *name)
{
	return json_string_value(abx_arg_json(req, name));
}

int64_t abx_arg_int(const struct abx_request *req, const char *name)
{
	return json_integer_value(abx_arg_json(req, name));
}

double abx_arg_number(const struct abx_request *req, const char *name)
{
	return json_number_value(abx_arg_json(req, name));
}

bool abx_arg_bool(const struct abx_request *req, const char *name)
{
	return json_is_true(abx_arg_json(req, name));
}

bool abx_arg_data(const struct abx_request *req, const char *name, const char **ret_data, size_t *ret_len)
{
	const json_t *value = abx_arg_json(req, name);

	if (!json_is_string(value))
		return false;
	if (req->text.name && strcmp(req->text.name, name) == 0) {
		*ret_data = req->text.data;
		*ret_len = req->text.len;
	} else {
		*ret_data = json_string_value(value);
		*ret_len = json_string_length(value);
	}
	return true;
}

int abx_arg_base64(struct abx_request *req, const char *name, const char **ret_data, size_t *ret_len,
		   struct abx_err *err)
{
	const char *text = "";
	size_t len = 0;
	char *out = req->body;
	ssize_t n;

	abx_arg_data(req, name, &text, &len);
	/* A cut member is decoded where it lies; a small one over the body, which was parsed and is at least as long. */
	if (req->text.name && text == req->text.data)
		out = req->text.data;
	n = len ? abx_base64_decode(text, len, out) : 0;
	if (n < 0)
		return abx_err_set(err, ABX_E_VALUE, "%s: is not valid base64 (standard alphabet, padded)", name);
	*ret_data = out;
	*ret_len = (size_t)n;
	return 0;
}

/* The default of the row, in seconds; 0: none. */
static double default_timeout(const struct abx_request *req)
{
	for (size_t i = 0; i < req->endpoint->n_args; i++) {
		const struct abx_arg *arg = &req->endpoint->args[i];

		if (arg->type == ABX_ARG_TIMEOUT && arg->default_json)
			return strtod(arg->default_json, NULL);
	}
	return (double)req->endpoint->limits.timeout_seconds;
}

double abx_arg_timeout(const struct abx_request *req, char text[32])
{
	const json_t *given = abx_arg_json(req, "timeout");
	double seconds = given ? json_number_value(given) : default_timeout(req);
	int64_t most = req->rule->max_timeout;

	if (most && (seconds > (double)most || seconds <= 0)) {
		snprintf(text, 32, "%lld", (long long)most);
		return (double)most;
	}
	if (json_is_real(given)) {
		abx_auto_strbuf struct abx_strbuf repr = ABX_STRBUF_INIT;

		abx_json_repr(seconds, &repr);
		snprintf(text, 32, "%s", repr.buf);
	} else {
		snprintf(text, 32, "%lld", (long long)seconds);
	}
	return seconds;
}
