/* The gate's counters: how often, and how many at a time. */
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

static int refuse_rate(struct abx_request *req, int64_t wait_ms, struct abx_err *err)
{
	long long seconds = (wait_ms + 999) / 1000;
	char rate[ABX_RATE_TEXT], header[24];

	abx_rate_text(&req->rule->rate, rate);
	snprintf(header, sizeof(header), "%lld", seconds);
	abx_response_header(&req->res, "Retry-After", header);
	return abx_err_rule(err, ABX_E_RATE, req->rule->values_rule, "Endpoint '%s' takes no more than %s calls; try again in %lld s",
			    req->endpoint->id, rate, seconds);
}

int abx_gate_admit(struct abx_request *req, struct abx_err *err)
{
	const struct abx_rule *rule = req->rule;
	const struct abx_rate_limits limits = { rule->rate.count, rule->rate.window_ms, rule->max_concurrent };
	int64_t wait_ms;
	int32_t slot;

	if (!rule->slots)
		return 0;
	/* Where nobody is asked who he is, all share one slot. */
	slot = rule->slots[req->identity ? req->identity - req->service->policy->identities : 0];
	switch (abx_rates_enter(&req->service->board->rates, slot, &limits, self(), &wait_ms)) {
	case ABX_RATE_PASSED:
		break;
	case ABX_RATE_TOO_OFTEN:
		return refuse_rate(req, wait_ms, err);
	case ABX_RATE_TOO_MANY:
		return abx_err_rule(err, ABX_E_CONCURRENCY, rule->values_rule, "Endpoint '%s' runs no more than %lld calls at a time",
				    req->endpoint->id, (long long)rule->max_concurrent);
	}
	if (rule->max_concurrent)
		req->held[req->n_held++] = slot;
	return 0;
}

void abx_gate_leave(struct abx_request *req)
{
	while (req->n_held > 0)
		abx_rates_leave(&req->service->board->rates, req->held[--req->n_held], self());
}
