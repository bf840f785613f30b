/*
 * The gate alone: what a call of /files/stat costs in it, in process and without a file, with no policy and with one of 50 rules and 20 identities. Prints
 * microseconds of processor time per call, the best of several rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/gate.h"
#include "common/log.h"
#include "common/memory_io.h"
#include "handlers/file_ops/handlers.h"
#include "policy/document.h"

#define CALLS  20000
#define ROUNDS 15

/* The handler of this program: the rows refer to it weakly. */
int h_files_stat(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;

	abx_strbuf_adds(&body, "{}");
	return abx_response_json(&req->res, 200, &body, err);
}

static char *make_document(void)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	size_t n = 0;

	abx_strbuf_adds(&text, "version: 1\nendpoints:\n");
	for (size_t i = 1; n < 50; i++, n++)
		abx_strbuf_addf(&text, "  %s: {scopes: [\"use:%s\"], limits: {rate: 1000000/min, max_concurrent: 1000}}\n", abx_endpoint_at(i)->id,
				abx_endpoint_at(i)->id);
	abx_strbuf_adds(&text, "identities:\n");
	for (int i = 1; i <= 20; i++)
		abx_strbuf_addf(&text, "  - {id: id%d, token_env: TOKEN_%d, scopes: [\"other:*\", \"use:*\"]}\n", i, i);
	return abx_strbuf_detach(&text);
}

static struct abx_board *make_board(struct abx_policy *policy)
{
	struct abx_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (board == MAP_FAILED)
		return NULL;
	for (size_t i = 0; i < abx_endpoint_count(); i++) {
		struct abx_rule *rule = &policy->rules[i];

		if (!rule->rate.count)
			continue;
		rule->slots = calloc(policy->n_identities, sizeof(*rule->slots));
		for (size_t k = 0; rule->slots && k < policy->n_identities; k++)
			rule->slots[k] = abx_rates_slot(&board->rates, policy->identities[k].id, abx_endpoint_at(i)->id);
	}
	return board;
}

/* Microseconds of processor time: other work on the machine is not in it. */
static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static double measure(const struct abx_service *service)
{
	char method[] = "REQUEST_METHOD=GET", target[] = "REQUEST_URI=/files/stat?path=file", has[] = "ABX_HAS_TOKEN=1";
	char token[] = "HTTP_X_ACCESS_TOKEN=token-number-20", remote[] = "REMOTE_ADDR=127.0.0.1";
	char *params[] = { method, target, has, token, remote, NULL };
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double start = cpu_us();

		for (int i = 0; i < CALLS; i++) {
			struct abx_memory_io mem;

			abx_memory_io_init(&mem, params, "", 0);
			abx_gate_serve(service, &mem.io);
			if (strncmp(mem.out.buf, "Status: 200", 11) != 0) {
				fprintf(stderr, "%s\n", mem.out.buf);
				exit(1);
			}
			abx_strbuf_release(&mem.out);
		}
		double took = (cpu_us() - start) / CALLS;
		best = took < best ? took : best;
	}
	return best;
}

static struct abx_policy *make_policy(bool with_document)
{
	char vars[20][40], *env[21] = { NULL };
	struct abx_settings settings;
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_document struct abx_document *document = NULL;
	abx_auto_free char *text = make_document();

	for (int i = 0; i < 20; i++) {
		snprintf(vars[i], sizeof(vars[i]), "TOKEN_%d=token-number-%d", i + 1, i + 1);
		env[i] = vars[i];
	}
	if (abx_settings_load(env, &settings, &err) < 0)
		return NULL;
	const struct abx_document_source source = { .name = "bench", .settings = &settings, .env = env };
	if (with_document)
		document = abx_document_parse(&source, text, strlen(text), &err);
	if (with_document && !document) {
		fprintf(stderr, "%s\n", err.message);
		exit(1);
	}
	struct abx_policy *policy = abx_policy_build(&settings, document, &err);
	abx_settings_release(&settings);
	return policy;
}

int main(void)
{
	struct abx_policy *plain = make_policy(false), *full = make_policy(true);
	struct abx_service without = { .group = ABX_GROUP_FILE_OPS, .policy = plain };
	struct abx_service with = { .group = ABX_GROUP_FILE_OPS, .policy = full, .board = full ? make_board(full) : NULL };

	if (!plain || !with.board)
		return 1;
	abx_log_init("bench", ABX_LOG_ERROR, false);
	double a = measure(&without), b = measure(&with);
	printf("a call in the gate: %.2f us without a policy, %.2f us with 50 rules and 20 identities: %.2f us more\n", a, b, b - a);
	abx_policy_free(plain);
	abx_policy_free(full);
	return 0;
}
