/* What a worker says: the headers of its frames, and the table of its code. */
#include <string.h>

#include "common/worker.h"
#include "policy/code.h"
#include "t/fuzz/fuzz.h"

static void check_frames(const uint8_t *data, size_t size)
{
	for (; size >= ABX_WORKER_HEADER; data += ABX_WORKER_HEADER, size -= ABX_WORKER_HEADER) {
		unsigned char again[ABX_WORKER_HEADER];
		struct abx_worker_frame frame;

		if (abx_worker_parse(data, &frame) < 0)
			continue;
		FUZZ_CHECK(frame.kind && strchr("TFRHDZ", frame.kind));
		FUZZ_CHECK(frame.len <= ABX_WORKER_TEXT_MAX || frame.kind == 'R' || frame.kind == 'D');
		abx_worker_header(frame.kind, frame.len, again);
		FUZZ_CHECK(memcmp(again, data, sizeof(again)) == 0);
	}
}

static void check_table(const uint8_t *data, size_t size)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_code *code = abx_code_parse((const char *)data, size, &err);

	if (!code) {
		FUZZ_CHECK(err.kind == ABX_E_VALUE && err.message[0]);
		return;
	}
	FUZZ_CHECK(*code->name && code->groups[ABX_GROUP_CORE] != 0);
	for (size_t i = 0; i < code->n_rows; i++) {
		const struct abx_endpoint *row = &code->rows[i];

		FUZZ_CHECK(*row->id && row->path[0] == '/' && row->group < ABX_GROUP__COUNT && row->method <= ABX_DELETE);
		FUZZ_CHECK(!strpbrk(row->path, "\"\\%?# \n"));
	}
	abx_code_free(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_frames(data, size);
	check_table(data, size);
	return 0;
}
