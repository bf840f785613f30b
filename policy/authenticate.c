#include <string.h>
#include <strings.h>

#include "policy/digest.h"
#include "policy/policy.h"

/* In constant time, a word at a time: a call may be compared with many. */
static bool is_same(const unsigned char a[ABX_TOKEN_HASH], const unsigned char b[ABX_TOKEN_HASH])
{
	uint64_t x[ABX_TOKEN_HASH / 8], y[ABX_TOKEN_HASH / 8], difference = 0;

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	for (size_t i = 0; i < ABX_N(x); i++)
		difference |= x[i] ^ y[i];
	return difference == 0;
}

/* Every identity is compared, whichever matched: the time tells nothing of the list. */
static const struct abx_identity *identify(const struct abx_policy *policy, const char *token, size_t len)
{
	const struct abx_identity *found = NULL;
	unsigned char hash[ABX_TOKEN_HASH];

	abx_digest(token, len, hash);
	for (size_t i = 0; i < policy->n_identities; i++) {
		const struct abx_identity *identity = &policy->identities[i];

		if (identity->has_token && is_same(identity->token_hash, hash))
			found = identity;
	}
	return found;
}

/* The token of "Bearer T" (RFC 6750), or NULL for another scheme. */
static const char *bearer_token(const char *value)
{
	if (strncasecmp(value, "bearer", 6) != 0 || value[6] != ' ')
		return NULL;
	value += 6;
	return value + strspn(value, " ");
}

const struct abx_identity *abx_policy_authenticate(const struct abx_policy *policy, const struct abx_credentials *creds,
						   struct abx_err *err)
{
	const struct abx_identity *by_bearer = NULL, *by_token = NULL;
	const char *token;

	if (policy->local)
		return &policy->identities[0];
	if (creds->n_access_tokens > 1) {
		abx_err_set(err, ABX_E_AMBIGUOUS_CREDENTIALS, "X-Access-Token was sent with two different values");
		return NULL;
	}
	if (creds->n_authorizations > 1) {
		abx_err_set(err, ABX_E_AMBIGUOUS_CREDENTIALS, "Authorization was sent with two different values");
		return NULL;
	}
	if (creds->n_authorizations && (token = bearer_token(creds->authorizations[0])))
		by_bearer = identify(policy, token, strlen(token));
	if (creds->n_access_tokens)
		by_token = identify(policy, creds->access_tokens[0], strlen(creds->access_tokens[0]));
	if (!by_bearer && !by_token)
		abx_err_set(err, ABX_E_UNAUTHORIZED, "unauthorized");
	return by_bearer ? by_bearer : by_token;
}
