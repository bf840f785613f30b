/* What tests of the request path share: a service made from settings, and requests in memory. */
#ifndef T_REQUEST_H
#define T_REQUEST_H

#include <stdlib.h>

#include "common/gate.h"
#include "common/log.h"
#include "common/memory_io.h"
#include "t/tap.h"

/* A service of one group, with the policy that `env` (NULL-terminated) leads to. */
static inline struct abx_service make_service(enum abx_group group, char *const *env)
{
	struct abx_service service = { .group = group };
	struct abx_settings settings;
	struct abx_err err = ABX_ERR_INIT;

	if (abx_settings_load(env, &settings, &err) < 0 || !(service.policy = abx_policy_build(&settings, NULL, &err))) {
		fprintf(stderr, "# %s\n", err.message);
		exit(1);
	}
	abx_settings_release(&settings);
	return service;
}

static inline void free_service(struct abx_service *service)
{
	union {
		const struct abx_policy *shared;
		struct abx_policy *own;
	} policy = { .shared = service->policy };

	abx_policy_free(policy.own);
}

#define PARAMS_MAX 16

/* Serve one request: method, target, body (NULL: none) and further CGI variables (NULL-terminated, or NULL). The answer stays in mem->out. */
static inline void serve(const struct abx_service *service, struct abx_memory_io *mem, const char *method,
			 const char *target, const char *body, const char *const *more)
{
	char method_var[64], target_var[4096], length_var[64];
	char *params[PARAMS_MAX] = { method_var, target_var, length_var };
	size_t n = 3;

	snprintf(method_var, sizeof(method_var), "REQUEST_METHOD=%s", method);
	snprintf(target_var, sizeof(target_var), "REQUEST_URI=%s", target);
	snprintf(length_var, sizeof(length_var), "CONTENT_LENGTH=%zu", body ? strlen(body) : 0);
	for (; more && *more && n < PARAMS_MAX - 1; more++)
		params[n++] = strdup(*more);
	abx_memory_io_init(mem, params, body ? body : "", body ? strlen(body) : 0);
	abx_gate_serve(service, &mem->io);
	while (n > 3)
		free(params[--n]);
}

/* The status of the collected answer; 0: none was sent. */
static inline int status_of(const struct abx_memory_io *mem)
{
	return strncmp(mem->out.buf, "Status: ", 8) == 0 ? atoi(mem->out.buf + 8) : 0;
}

static inline const char *body_of(const struct abx_memory_io *mem)
{
	const char *end = strstr(mem->out.buf, "\r\n\r\n");

	return end ? end + 4 : "";
}

static inline bool has_header(const struct abx_memory_io *mem, const char *line)
{
	const char *at = strstr(mem->out.buf, line);

	return at && at < body_of(mem) && at > mem->out.buf && at[-1] == '\n';
}

#endif
