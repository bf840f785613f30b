/*
 * JSON that is passed on: what jansson takes is found as one value, and what is found either reads back with jansson or has in it what only Python takes.
 */
#include "common/json_value.h"

#include <jansson.h>
#include <string.h>

#include "common/json.h"
#include "t/fuzz/fuzz.h"

/* Things that are passed on and that jansson refuses. */
static bool is_lenient(const char *text, size_t len)
{
	unsigned depth = 0;
	size_t digits = 0;

	for (size_t i = 0; i < len; i++) {
		digits = text[i] >= '0' && text[i] <= '9' ? digits + 1 : 0;
		depth += text[i] == '[' || text[i] == '{';
		if (digits > 17 || depth > 500 || (len - i > 1 && memcmp(text + i, "\\u", 2) == 0) || text[i] == 'N' || text[i] == 'I' ||
		    text[i] == 'e' || text[i] == 'E')
			return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct abx_err err = ABX_ERR_INIT, strict_err = ABX_ERR_INIT;
	size_t start = 0, len = 0;
	int found = abx_json_value_find(text, size, &start, &len, &err);
	json_t *strict = abx_json_parse(text, size, &strict_err);

	/* A NUL byte behind a number is the end of the text for jansson. */
	FUZZ_CHECK(!strict || memchr(text, 0, size) || (found == 0 && len > 0));
	FUZZ_CHECK(found < 0 || start + len <= size);
	if (found == 0 && len > 0 && !is_lenient(text, size)) {
		/* Repeated keys are fine here. */
		json_t *value = json_loadb(text + start, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		FUZZ_CHECK(value);
		json_decref(value);
	}
	json_decref(strict);
	return 0;
}
