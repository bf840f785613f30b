/*
 * The output of git status and git diff --numstat: what is taken off the front is inside of the text and in its
 * order, and each step goes forward.
 */
#include "handlers/dev_tools/git_parse.h"

#include <string.h>

#include "t/fuzz/fuzz.h"

static void check_inside(const struct git_text *piece, const char *begin, const char *end)
{
	FUZZ_CHECK(piece->data >= begin && piece->len <= (size_t)(end - piece->data));
	FUZZ_CHECK(piece->len > 0 && !memchr(piece->data, '\0', piece->len));
}

static void check_status(const char *text, size_t size)
{
	struct git_text rest = { text, size };
	struct git_entry entry;
	enum git_record record;

	do {
		const char *before = rest.data;

		record = git_status_next(&rest, &entry);
		FUZZ_CHECK(rest.data >= before && rest.data + rest.len == text + size);
		if (record == GIT_RECORD_BRANCH)
			FUZZ_CHECK(strcmp(entry.path.data, "HEAD") == 0 || entry.path.data > before);
		if (record == GIT_RECORD_ENTRY) {
			FUZZ_CHECK(rest.data > before && git_state_name(entry.state)[0]);
			check_inside(&entry.path, before, rest.data);
			FUZZ_CHECK((entry.original.data != NULL) ==
				   (entry.state == GIT_RENAMED || entry.state == GIT_COPIED));
			if (entry.original.data)
				check_inside(&entry.original, before, rest.data);
		}
	} while (record == GIT_RECORD_ENTRY || record == GIT_RECORD_BRANCH);
	FUZZ_CHECK(record == GIT_RECORD_BROKEN || rest.len == 0);
}

static void check_numstat(const char *text, size_t size)
{
	struct git_text rest = { text, size };
	struct git_numstat file;
	int more;

	do {
		const char *before = rest.data;

		more = git_numstat_next(&rest, &file);
		FUZZ_CHECK(rest.data >= before && rest.data + rest.len == text + size);
		if (more > 0) {
			check_inside(&file.path, before, rest.data);
			FUZZ_CHECK(file.insertions >= -1 && file.deletions >= -1);
			if (file.original.data)
				check_inside(&file.original, before, rest.data);
		}
	} while (more > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_status((const char *)data, size);
	check_numstat((const char *)data, size);
	return 0;
}
