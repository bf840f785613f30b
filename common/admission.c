#include "common/admission.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "common/gate.h"

/* Responders never fork without a new program, so it is asked for once. */
static pid_t self(void)
{
	static _Atomic pid_t pid;

	if (!pid)
		pid = getpid();
	return pid;
}

int abx_admission_begin(struct abx_rates *rates, const struct abx_policy *policy, const struct abx_rule *rule, const char *endpoint,
			const struct abx_identity *identity, struct abx_admission *ret_admission, struct abx_err *err)
{
	const struct abx_rate_limits limits = { rule->rate.count, rule->rate.window_ms, rule->max_concurrent };
	char rate[ABX_RATE_TEXT];
	int32_t slot;

	*ret_admission = (struct abx_admission){ .slot = -1 };
	if (!rule->slots)
		return 0;
	/* Where nobody is asked who he is, all share one slot. */
	slot = rule->slots[identity ? identity - policy->identities : 0];
	switch (abx_rates_enter(rates, slot, &limits, self(), &ret_admission->wait_ms)) {
	case ABX_RATE_PASSED:
		break;
	case ABX_RATE_TOO_OFTEN:
		abx_rate_text(&rule->rate, rate);
		return abx_err_rule(err, ABX_E_RATE, rule->values_rule, "Endpoint '%s' takes no more than %s calls; try again in %lld s", endpoint,
				    rate, abx_admission_seconds(ret_admission));
	case ABX_RATE_TOO_MANY:
		return abx_err_rule(err, ABX_E_CONCURRENCY, rule->values_rule, "Endpoint '%s' runs no more than %lld calls at a time", endpoint,
				    (long long)rule->max_concurrent);
	}
	if (rule->max_concurrent)
		ret_admission->slot = slot;
	return 0;
}

void abx_admission_end(struct abx_rates *rates, int32_t slot)
{
	if (slot >= 0)
		abx_rates_leave(rates, slot, self());
}

int abx_gate_admit(struct abx_request *req, struct abx_err *err)
{
	struct abx_admission admission;
	char header[24];

	if (!req->rule->slots)
		return 0;
	if (abx_admission_begin(&req->service->board->rates, req->service->policy, req->rule, req->endpoint->id, req->identity, &admission, err) < 0) {
		if (err->kind == ABX_E_RATE) {
			snprintf(header, sizeof(header), "%lld", abx_admission_seconds(&admission));
			abx_response_header(&req->res, "Retry-After", header);
		}
		return -1;
	}
	if (admission.slot >= 0)
		req->held[req->n_held++] = admission.slot;
	return 0;
}

void abx_gate_leave(struct abx_request *req)
{
	while (req->n_held > 0)
		abx_admission_end(&req->service->board->rates, req->held[--req->n_held]);
}
