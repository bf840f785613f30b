/* The headers of raw downloads: the first byte says which reader gets the rest, the second how large the file is. */
#include "handlers/file_ops/http.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "t/fuzz/fuzz.h"

static void check_range(const char *text, int64_t size)
{
	int64_t first = -1, length = -1;
	enum http_range range = http_range_parse(text, size, &first, &length);

	if (range == HTTP_RANGE_PART)
		FUZZ_CHECK(first >= 0 && length > 0 && first < size && length <= size - first);
	else
		FUZZ_CHECK(first == -1 && length == -1);
	FUZZ_CHECK(size > 0 || range != HTTP_RANGE_PART);
}

/* Whatever the name is: one line of ASCII, and what is behind filename* is the name again. */
static void check_disposition(const char *name)
{
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT, text = ABX_STRBUF_INIT;
	const char *coded, *end;

	http_disposition(name, &out);
	FUZZ_CHECK(!out.failed);
	for (size_t i = 0; i < out.len; i++)
		FUZZ_CHECK(out.buf[i] >= ' ' && out.buf[i] < 0x7f);
	FUZZ_CHECK(strncmp(out.buf, "attachment; filename=\"", 22) == 0);
	end = strchr(out.buf + 22, '"');
	FUZZ_CHECK(end != NULL);
	if (!end[1]) {
		FUZZ_CHECK((size_t)(end - out.buf - 22) == strlen(name) && memcmp(out.buf + 22, name, strlen(name)) == 0);
		return;
	}
	coded = end + strlen("\"; filename*=UTF-8''");
	for (const char *p = coded; *p; p++)
		FUZZ_CHECK(*p == '%' || strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-", *p));
	abx_utf8_lossy(name, strlen(name), &text);
	abx_auto_strbuf struct abx_strbuf back = ABX_STRBUF_INIT;
	for (const char *p = coded; *p; p++) {
		char hex[3] = { 0 };

		if (*p == '%') {
			memcpy(hex, p + 1, 2);
			p += 2;
		}
		abx_strbuf_addc(&back, hex[0] ? (char)strtol(hex, NULL, 16) : *p);
	}
	FUZZ_CHECK(back.len == text.len && memcmp(back.buf, text.buf, text.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	abx_auto_free char *text = NULL;

	if (size < 2)
		return 0;
	text = malloc(size - 1);
	memcpy(text, data + 2, size - 2);
	text[size - 2] = '\0';
	switch (data[0] % 5) {
	case 0:
		check_range(text, data[1] < 0x80 ? data[1] : INT64_MAX - data[1]);
		break;
	case 1:
		http_etag_listed(text, "\"a\"");
		break;
	case 2:
		http_not_modified_since(text, data[1]);
		break;
	case 3:
		http_if_range(text, "\"a\"", "Sun, 06 Nov 1994 08:49:37 GMT");
		break;
	default:
		check_disposition(text);
	}
	return 0;
}
