/*
 * The headers that say who is calling, against a model that is written apart. Each line of the input is a header: "t" and "a" begin values of X-Access-Token and
 * Authorization; other lines are the Accept header and the request's id.
 */
#include <string.h>
#include <strings.h>

#include "common/credentials.h"
#include "common/ids.h"
#include "common/memory_io.h"
#include "policy/digest.h"
#include "t/fuzz/fuzz.h"

#define HEADERS 24

static struct abx_identity identities[] = { { .id = (char[]){ "alpha" }, .has_token = true }, { .id = (char[]){ "beta" }, .has_token = true } };
static struct abx_policy policy = { .mount_prefix = (char[]){ "" }, .identities = identities, .n_identities = ABX_N(identities) };
static const struct abx_service service = { .group = ABX_GROUP_CORE, .policy = &policy };

struct model {
	const char *first[2];  /* by kind: the first value */
	bool ambiguous, plain; /* plain: the model knows the answer */
};

static const char *name_of(const char *token)
{
	for (size_t i = 0; i < ABX_N(identities); i++)
		if (strcmp(token, identities[i].id) == 0)
			return identities[i].id;
	return NULL;
}

static void note(struct model *model, int kind, const char *value)
{
	if (!model->first[kind])
		model->first[kind] = value;
	else if (strcmp(model->first[kind], value) != 0)
		model->ambiguous = true;
}

/* Values without separators are what most requests have; of the others no more is said than that they name nobody who is not in them. */
static bool is_plain(const char *value)
{
	return *value && !strpbrk(value, ", \t\"=");
}

static bool is_plain_bearer(const char *value)
{
	return strncasecmp(value, "bearer ", 7) == 0 && is_plain(value + 7);
}

static void check_model(const struct model *model, const struct abx_identity *found, const struct abx_err *err)
{
	const char *bearer = model->first[1] ? name_of(model->first[1] + 7) : NULL;
	const char *want = bearer ? bearer : model->first[0] ? name_of(model->first[0]) : NULL;

	if (model->ambiguous) {
		FUZZ_CHECK(!found && err->kind == ABX_E_AMBIGUOUS_CREDENTIALS);
		return;
	}
	FUZZ_CHECK((found != NULL) == (want != NULL));
	FUZZ_CHECK(found ? strcmp(found->id, want) == 0 : err->kind == ABX_E_UNAUTHORIZED);
}

static void run(char *const *params, const struct model *model)
{
	struct abx_credential_text text = ABX_CREDENTIAL_TEXT_INIT;
	struct abx_credentials creds = { 0 };
	abx_auto_strbuf struct abx_strbuf own = ABX_STRBUF_INIT;
	struct abx_err err = ABX_ERR_INIT;
	const struct abx_identity *found;
	struct abx_memory_io mem;
	struct abx_request req;
	bool mentioned = false;

	abx_memory_io_init(&mem, params, "", 0);
	abx_request_init(&req, &service, &mem.io);
	abx_credentials_collect(&req, &text, &creds);
	found = abx_policy_authenticate(&policy, &creds, &err);
	FUZZ_CHECK(found || err.kind == ABX_E_UNAUTHORIZED || err.kind == ABX_E_AMBIGUOUS_CREDENTIALS);
	for (char *const *p = params; found && *p; p++)
		mentioned = mentioned || strstr(*p, found->id);
	FUZZ_CHECK(!found || mentioned);
	if (model->plain)
		check_model(model, found, &err);
	if (found) {
		abx_credentials_own_token(&req, &own);
		FUZZ_CHECK(strcmp(own.buf, found->id) == 0);
	}
	abx_request_wants_raw(&req);
	FUZZ_CHECK(abx_id_is_sane(req.request_id));
	abx_credentials_forget(&text);
	abx_request_release(&req);
	abx_strbuf_release(&mem.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char method[] = "REQUEST_METHOD=GET", uri[] = "REQUEST_URI=/files/list?raw=0", has_token[] = "ABX_HAS_TOKEN=1";
	static const char *const names[] = { "HTTP_X_ACCESS_TOKEN=", "HTTP_AUTHORIZATION=", "HTTP_ACCEPT=", "HTTP_X_REQUEST_ID=" };
	char *params[HEADERS + 4] = { method, uri, has_token };
	abx_auto_free char *input = strndup((const char *)data, size);
	struct model model = { .plain = true };
	size_t n = 3;

	for (size_t i = 0; i < ABX_N(identities); i++)
		abx_digest(identities[i].id, strlen(identities[i].id), identities[i].token_hash);
	for (char *save = NULL, *line = strtok_r(input, "\n", &save); line && n < HEADERS + 3; line = strtok_r(NULL, "\n", &save)) {
		size_t kind = *line == 't' ? 0 : *line == 'a' ? 1 : *line == 'r' ? 3 : 2;

		if (kind == 0 || kind == 1) {
			model.plain = model.plain && (kind ? is_plain_bearer(line + 1) : is_plain(line + 1));
			note(&model, (int)kind, line + 1);
		}
		if (asprintf(&params[n], "%s%s", names[kind], line + 1) >= 0)
			n++;
	}
	params[n] = NULL;
	run(params, &model);
	while (n > 3)
		free(params[--n]);
	return 0;
}
