#include "common/credentials.h"

#include <string.h>

static void forget(struct abx_strbuf *text)
{
	explicit_bzero(text->buf, text->len);
	abx_strbuf_release(text);
}

void abx_credentials_forget(struct abx_credential_text *text)
{
	forget(&text->tokens);
	forget(&text->authorizations);
}

/* A value that was there already says nothing new. So there is always room for a second one, whatever the number of headers. */
static void add(const char *values[2], size_t *n, const char *value)
{
	if (*n == 0 || (*n == 1 && strcmp(values[0], value) != 0))
		values[(*n)++] = value;
}

/* A value without the blanks around it. Cuts the text. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len > 0 && strchr(" \t", text[len - 1]))
		len--;
	text[len] = '\0';
	return text;
}

/*
 * Duplicates of X-Access-Token arrive merged, "a, b"; a token of ours holds no comma, so each part is one value. A blank inside is part of a value, which
 * is none of ours then.
 */
static void split_tokens(char *text, struct abx_credentials *creds)
{
	char *save = NULL;

	for (char *part = strtok_r(text, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
		char *value = trim(part);

		if (*value)
			add(creds->access_tokens, &creds->n_access_tokens, value);
	}
}

/* "Bearer a, Bearer b" is two headers; commas of other schemes (Digest) separate the parameters of one. */
static void split_authorizations(char *text, struct abx_credentials *creds)
{
	while (text && *text) {
		char *next = strstr(text, ", ");

		while (next && !memchr(next + 2, ' ', strcspn(next + 2, ",=\"")))
			next = strstr(next + 2, ", ");
		if (next)
			*next = '\0';
		add(creds->authorizations, &creds->n_authorizations, text);
		text = next ? next + 2 : NULL;
	}
}

void abx_credentials_split(struct abx_credential_text *text, struct abx_credentials *creds)
{
	split_tokens(text->tokens.buf, creds);
	split_authorizations(text->authorizations.buf, creds);
}

/* Every variable of the two headers' names; look-alikes of Authorization do not exist, since its name has no separator. */
void abx_credentials_collect(const struct abx_request *req, struct abx_credential_text *text, struct abx_credentials *creds)
{
	static const char token[] = "HTTP_X_ACCESS_TOKEN=", authorization[] = "HTTP_AUTHORIZATION=";
	/* X_Access_Token arrives under the same name as the real header; the web server tells whether that was there. */
	bool has_token = abx_request_variable(req, "ABX_HAS_TOKEN") != NULL;

	for (char *const *p = req->io->params; *p; p++) {
		if (has_token && strncmp(*p, token, sizeof(token) - 1) == 0)
			abx_strbuf_addf(&text->tokens, "%s,", *p + sizeof(token) - 1);
		else if (strncmp(*p, authorization, sizeof(authorization) - 1) == 0)
			abx_strbuf_addf(&text->authorizations, "%s%s", text->authorizations.len ? ", " : "", *p + sizeof(authorization) - 1);
	}
	abx_credentials_split(text, creds);
}

void abx_credentials_own_token(const struct abx_request *req, struct abx_strbuf *out)
{
	struct abx_credential_text text = ABX_CREDENTIAL_TEXT_INIT;
	struct abx_credentials creds = { 0 }, bearer = { 0 };
	struct abx_err unused = ABX_ERR_INIT;

	if (req->service->policy->local)
		return;
	abx_credentials_collect(req, &text, &creds);
	bearer = creds;
	bearer.n_access_tokens = 0;
	/* A bearer token that is valid has won; the other header may be a gateway's. */
	if (abx_policy_authenticate(req->service->policy, &bearer, &unused)) {
		const char *token = strchr(creds.authorizations[0], ' ');

		abx_strbuf_adds(out, token + strspn(token, " "));
	} else if (creds.n_access_tokens) {
		abx_strbuf_adds(out, creds.access_tokens[0]);
	}
	abx_credentials_forget(&text);
}
