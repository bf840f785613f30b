/* How often, and how many at a time: the counters that a policy's rates and max_concurrent ask for. */
#ifndef ABX_ADMISSION_H
#define ABX_ADMISSION_H

#include <stdint.h>

#include "common/rates.h"
#include "policy/policy.h"

/* A call that passed. */
struct abx_admission {
	int32_t slot;    /* in which it counts as running until abx_admission_end; -1: in none */
	int64_t wait_ms; /* of one that came too often: how long until the next may pass */
};

/* Count a call of `identity`, which is one of the policy's or NULL, to the endpoint. -1: ABX_E_RATE or ABX_E_CONCURRENCY. */
int abx_admission_begin(struct abx_rates *rates, const struct abx_policy *policy, const struct abx_rule *rule, const char *endpoint,
			const struct abx_identity *identity, struct abx_admission *ret_admission, struct abx_err *err);
void abx_admission_end(struct abx_rates *rates, int32_t slot);

/* The seconds that Retry-After tells. */
static inline long long abx_admission_seconds(const struct abx_admission *admission)
{
	return (admission->wait_ms + 999) / 1000;
}

#endif
