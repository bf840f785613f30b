/* Percent-decoding there and back, and query strings against what their parts decode to. */
#include "common/uri.h"

#include <string.h>

#include "t/fuzz/fuzz.h"

static void check_round_trip(const char *text, size_t size)
{
	for (int keep_slash = 0; keep_slash < 2; keep_slash++) {
		abx_auto_strbuf struct abx_strbuf coded = ABX_STRBUF_INIT, back = ABX_STRBUF_INIT;
		abx_uri_encode(text, size, keep_slash, &coded);
		for (size_t i = 0; i < coded.len; i++)
			FUZZ_CHECK(coded.buf[i] > ' ' && coded.buf[i] < 0x7f);
		abx_uri_decode(coded.buf, coded.len, keep_slash, &back);
		FUZZ_CHECK(back.len == size && memcmp(back.buf, text, size) == 0);
	}
}

/* The parts of the query, decoded one by one, are the parameters in their order. */
static void check_params(const char *text, const struct abx_query *query)
{
	size_t n = 0;

	for (const char *p = text;; p++) {
		size_t len = strcspn(p, "&");
		if (len) {
			abx_auto_strbuf struct abx_strbuf name = ABX_STRBUF_INIT, value = ABX_STRBUF_INIT;
			size_t name_len = strcspn(p, "&=");
			abx_uri_decode(p, name_len, true, &name);
			if (p[name_len] == '=')
				abx_uri_decode(p + name_len + 1, len - name_len - 1, true, &value);
			FUZZ_CHECK(n < query->n);
			const struct abx_query_param *param = &query->params[n++];
			FUZZ_CHECK(param->name_len == name.len && memcmp(param->name, name.buf, name.len + 1) == 0);
			FUZZ_CHECK(param->value_len == value.len &&
				   memcmp(param->value, value.buf, value.len + 1) == 0);
			if (strlen(param->name) == param->name_len)
				FUZZ_CHECK(abx_query_find(query, param->name) != NULL);
		}
		p += len;
		if (*p == '\0')
			break;
	}
	FUZZ_CHECK(n == query->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	abx_auto_free char *text = malloc(size + 1);
	struct abx_err err = ABX_ERR_INIT;
	struct abx_query query;

	memcpy(text, data, size);
	text[size] = '\0';
	check_round_trip(text, size);
	if (abx_query_parse(text, &query, &err) == 0)
		check_params(text, &query);
	else
		FUZZ_CHECK((err.kind == ABX_E_DUPLICATE_PARAMETER || err.kind == ABX_E_VALUE) && query.n == 0);
	abx_query_release(&query);
	return 0;
}
