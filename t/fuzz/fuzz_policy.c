/*
 * The document loader: whatever it takes can be built, published and loaded, and comes out as it went in; and what is refused names the file. The first byte chooses
 * between YAML, JSON and a template.
 */
#include "policy/document.h"

#include <string.h>
#include <unistd.h>

#include "t/fuzz/fuzz.h"

static struct abx_settings settings;

static void init(void)
{
	static char token[] = "ABX_SERVER_TOKEN=t";
	static char *env[] = { token, NULL };
	struct abx_err err = ABX_ERR_INIT;
	static bool done;

	if (!done)
		FUZZ_CHECK(abx_settings_load(env, &settings, &err) == 0);
	done = true;
}

/* The value as text is the same when it was read from its own canonical text: JSON is YAML here as well. */
static void check_canonical(const char *text, size_t len)
{
	abx_auto_strbuf struct abx_strbuf first = ABX_STRBUF_INIT_MAX((size_t)64 << 20), second = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_node struct abx_node *root = abx_json_parse_nodes("f", text, len, &err);

	if (!root)
		return;
	abx_node_canonical(root, &first);
	abx_auto_node struct abx_node *again = abx_json_parse_nodes("f", first.buf, first.len, &err);
	FUZZ_CHECK(again != NULL);
	abx_node_canonical(again, &second);
	FUZZ_CHECK(first.len == second.len && memcmp(first.buf, second.buf, first.len) == 0);
}

static void check_policy(const struct abx_document *document)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_policy *built = abx_policy_build(&settings, document, &err), *loaded;
	int fd;

	/* An identity may be called admin, or have the token of the environment. */
	if (!built) {
		FUZZ_CHECK(err.kind == ABX_E_VALUE);
		return;
	}
	fd = abx_policy_publish(built, &err);
	FUZZ_CHECK(fd >= 0);
	loaded = abx_policy_load(fd, &err);
	close(fd);
	FUZZ_CHECK(loaded != NULL);
	FUZZ_CHECK(loaded->n_identities == built->n_identities && strcmp(loaded->revision, built->revision) == 0);
	for (size_t i = 0; i < abx_endpoint_count(); i++) {
		const struct abx_rule *a = &built->rules[i], *b = &loaded->rules[i];

		FUZZ_CHECK(a->enabled == b->enabled && strcmp(a->rule, b->rule) == 0 && a->given == b->given);
		for (size_t k = 0; k < ABX_RULE_LIST__COUNT; k++)
			FUZZ_CHECK(!a->lists[k] == !b->lists[k]);
		FUZZ_CHECK(abx_endpoint_at(i)->group != ABX_GROUP_CORE || a->enabled);
	}
	abx_policy_free(built);
	abx_policy_free(loaded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct abx_document_source source = { .name = "p.yaml" };
	struct abx_err err = ABX_ERR_INIT;

	if (size == 0)
		return 0;
	init();
	if (*data % 3 == 1)
		source = (struct abx_document_source){ .name = "p.json", .json_only = true };
	else if (*data % 3 == 2)
		source.name = "template.yaml";
	abx_auto_free char *text = strndup((const char *)data + 1, size - 1);
	if (!text)
		return 0;
	abx_auto_document struct abx_document *document = abx_document_parse(&source, text, strlen(text), &err);
	if (document)
		check_policy(document);
	else
		FUZZ_CHECK(err.kind == ABX_E_VALUE && strncmp(err.message, source.name, strlen(source.name)) == 0);
	check_canonical(text, strlen(text));
	return 0;
}
