/* From header values to struct abx_credentials: what the gate and the pty daemon share. */
#ifndef ABX_CREDENTIALS_H
#define ABX_CREDENTIALS_H

#include "common/request.h"

/* Where the parts of the headers live while a call is authenticated. */
struct abx_credential_text {
	struct abx_strbuf tokens, authorizations;
};

#define ABX_CREDENTIAL_TEXT_INIT { ABX_STRBUF_INIT, ABX_STRBUF_INIT }

/* Overwrite and free it: it holds tokens. */
void abx_credentials_forget(struct abx_credential_text *text);

/*
 * Cut the texts up. X-Access-Token: values separated by commas, as duplicates arrive when they were merged on the way; a token holds no comma. Authorization:
 * "Bearer a, Bearer b" is two values; commas of other schemes (Digest) separate the parameters of one. Of each header no value is noted twice, and a third one not at all.
 */
void abx_credentials_split(struct abx_credential_text *text, struct abx_credentials *creds);

/* The credentials of a request. */
void abx_credentials_collect(const struct abx_request *req, struct abx_credential_text *text, struct abx_credentials *creds);

/* Append the token that identified the caller: of two headers it is the valid one. Nothing is appended in local mode. */
void abx_credentials_own_token(const struct abx_request *req, struct abx_strbuf *out);

#endif
