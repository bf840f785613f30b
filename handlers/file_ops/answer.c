#include "handlers/file_ops/answer.h"

#include <stdlib.h>
#include <string.h>

#include "common/auto.h"
#include "common/base64.h"
#include "common/clock.h"
#include "common/utf8.h"

void answer_path(struct abx_json_writer *jw, const char *key, const char *path)
{
	abx_auto_strbuf struct abx_strbuf twin = ABX_STRBUF_INIT;
	abx_auto_free char *text = NULL;
	size_t len = strlen(path);

	abx_jw_kstring(jw, key, path);
	if (abx_utf8_is_valid(path, len))
		return;
	text = malloc(ABX_BASE64_ENCODED(len));
	if (!text) {
		jw->out->failed = true;
		return;
	}
	abx_strbuf_addf(&twin, "%s_base64", key);
	abx_jw_key(jw, twin.buf);
	abx_jw_stringn(jw, text, abx_base64_encode(path, len, text));
}

void answer_time(struct abx_json_writer *jw, const char *key, struct timespec ts)
{
	char iso[ABX_CLOCK_ISO_SIZE];

	abx_clock_iso(iso, ts);
	abx_jw_kstring(jw, key, iso);
}

const char *answer_list_type(mode_t mode)
{
	return S_ISDIR(mode) ? "directory" : "file";
}
