#include "common/service.h"

#include <stdlib.h>

#include "common/audit.h"

/* Endpoints whose rule has lists of paths get trees of their own. */
static int open_rule_roots(struct abx_service *service, struct abx_err *err)
{
	const struct abx_policy *policy = service->policy;

	for (size_t i = 0; i < abx_endpoint_count(); i++) {
		const struct abx_rule *rule = &policy->rules[i];

		if (!rule->lists[ABX_ALLOW_PATHS] && !rule->lists[ABX_DENY_PATHS])
			continue;
		if (!service->rule_roots)
			service->rule_roots = calloc(abx_endpoint_count(), sizeof(*service->rule_roots));
		if (!service->rule_roots)
			return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		if (abx_roots_open_lists(policy->base_dir, rule->lists[ABX_ALLOW_PATHS], rule->lists[ABX_DENY_PATHS], rule->values_rule,
					 &service->rule_roots[i], err) < 0)
			return abx_err_prefix(err, "%s", rule->values_rule);
	}
	return 0;
}

static int open_all(struct abx_service *service, int policy_fd, struct abx_err *err)
{
	const struct abx_policy *policy;

	service->policy = policy = abx_policy_load(policy_fd, err);
	if (!policy || abx_roots_open(policy->base_dir, &service->roots, err) < 0 || open_rule_roots(service, err) < 0)
		return -1;
	if (policy->audit_file && !(service->audit = abx_audit_open(policy->audit_file, policy->audit_all, err)))
		return -1;
	return 0;
}

struct abx_service *abx_service_open(enum abx_group group, int policy_fd, struct abx_board *board, struct abx_err *err)
{
	struct abx_service *service = calloc(1, sizeof(*service));

	if (!service) {
		abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		return NULL;
	}
	service->group = group;
	service->board = board;
	if (open_all(service, policy_fd, err) < 0) {
		abx_service_close(service);
		return NULL;
	}
	return service;
}

void abx_service_close(struct abx_service *service)
{
	union {
		const struct abx_policy *shared;
		struct abx_policy *own;
	} policy = { .shared = service->policy };

	for (size_t i = 0; service->rule_roots && i < abx_endpoint_count(); i++)
		abx_roots_release(&service->rule_roots[i]);
	free(service->rule_roots);
	abx_roots_release(&service->roots);
	abx_audit_close(service->audit);
	abx_policy_free(policy.own);
	free(service);
}
