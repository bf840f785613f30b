#include "handlers/dev_tools/git_parse.h"

#include <string.h>

const char *git_state_name(enum git_state state)
{
	static const char *const names[] = {
		[GIT_MODIFIED] = "modified",   [GIT_ADDED] = "added",   [GIT_DELETED] = "deleted",
		[GIT_RENAMED] = "renamed",     [GIT_COPIED] = "copied", [GIT_UNMERGED] = "unmerged",
		[GIT_UNTRACKED] = "untracked",
	};

	return names[state];
}

/* Take what is before `end` off the front. false: there is no `end`. */
static bool take_until(struct git_text *rest, char end, struct git_text *ret_piece)
{
	const char *at = rest->len ? memchr(rest->data, end, rest->len) : NULL;

	if (!at)
		return false;
	*ret_piece = (struct git_text){ rest->data, (size_t)(at - rest->data) };
	rest->data = at + 1;
	rest->len -= ret_piece->len + 1;
	return true;
}

static bool skip_fields(struct git_text *text, int n)
{
	struct git_text field;

	while (n-- > 0)
		if (!take_until(text, ' ', &field) || field.len == 0)
			return false;
	return true;
}

static bool begins(const struct git_text *text, const char *with)
{
	size_t len = strlen(with);

	return text->len >= len && memcmp(text->data, with, len) == 0;
}

/*
 * Two letters, of the index and of the working tree, become one state: what is not there any more is deleted, what
 * was not there before is added, and the rest (contents, mode, type) is modified. /
 */
static enum git_state state_of(char index, char tree)
{
	if (tree == 'D' || (index == 'D' && tree == '.'))
		return GIT_DELETED;
	if (index == 'A' || tree == 'A')
		return GIT_ADDED;
	return GIT_MODIFIED;
}

static bool is_letter(char c)
{
	return c != '\0' && strchr(".MTADRCU", c);
}

/* "1 XY sub mH mI mW hH hI path" */
static bool parse_changed(struct git_text record, struct git_entry *entry)
{
	char index, tree;

	if (record.len < 5 || !is_letter(record.data[2]) || !is_letter(record.data[3]))
		return false;
	index = record.data[2];
	tree = record.data[3];
	if (!skip_fields(&record, 8) || record.len == 0)
		return false;
	*entry = (struct git_entry){ .state = state_of(index, tree), .path = record };
	return true;
}

/* "2 XY sub mH mI mW hH hI Xscore path", and the original path as a record of its own. */
static bool parse_renamed(struct git_text record, struct git_text *rest, struct git_entry *entry)
{
	struct git_text score, original;

	if (!skip_fields(&record, 8) || !take_until(&record, ' ', &score) || record.len == 0)
		return false;
	if (score.len < 2 || (*score.data != 'R' && *score.data != 'C'))
		return false;
	if (!take_until(rest, '\0', &original) || original.len == 0)
		return false;
	*entry = (struct git_entry){ .state = *score.data == 'R' ? GIT_RENAMED : GIT_COPIED,
				     .path = record,
				     .original = original };
	return true;
}

/* "u XY sub m1 m2 m3 mW h1 h2 h3 path" */
static bool parse_unmerged(struct git_text record, struct git_entry *entry)
{
	if (!skip_fields(&record, 10) || record.len == 0)
		return false;
	*entry = (struct git_entry){ .state = GIT_UNMERGED, .path = record };
	return true;
}

static bool parse_entry(const struct git_text *record, struct git_text *rest, struct git_entry *entry)
{
	if (begins(record, "1 "))
		return parse_changed(*record, entry);
	if (begins(record, "2 "))
		return parse_renamed(*record, rest, entry);
	if (begins(record, "u "))
		return parse_unmerged(*record, entry);
	if (!begins(record, "? ") || record->len < 3)
		return false;
	*entry = (struct git_entry){ .state = GIT_UNTRACKED, .path = { record->data + 2, record->len - 2 } };
	return true;
}

enum git_record git_status_next(struct git_text *rest, struct git_entry *ret_entry)
{
	static const char branch[] = "# branch.head ", detached[] = "(detached)";
	struct git_text record;

	for (;;) {
		if (rest->len == 0)
			return GIT_RECORD_END;
		if (!take_until(rest, '\0', &record))
			return GIT_RECORD_BROKEN;
		if (begins(&record, branch))
			break;
		if (!begins(&record, "# "))
			return parse_entry(&record, rest, ret_entry) ? GIT_RECORD_ENTRY : GIT_RECORD_BROKEN;
	}
	record.data += strlen(branch);
	record.len -= strlen(branch);
	if (record.len == strlen(detached) && memcmp(record.data, detached, record.len) == 0)
		record = (struct git_text){ "HEAD", 4 };
	*ret_entry = (struct git_entry){ .path = record };
	return GIT_RECORD_BRANCH;
}

/* Lines, or "-" for a binary file. */
static bool parse_count(const struct git_text *field, int64_t *ret_count)
{
	int64_t count = 0;

	if (field->len == 1 && *field->data == '-') {
		*ret_count = -1;
		return true;
	}
	if (field->len == 0 || field->len > 18)
		return false;
	for (size_t i = 0; i < field->len; i++) {
		if (field->data[i] < '0' || field->data[i] > '9')
			return false;
		count = count * 10 + (field->data[i] - '0');
	}
	*ret_count = count;
	return true;
}

int git_numstat_next(struct git_text *rest, struct git_numstat *ret_file)
{
	struct git_text record, insertions, deletions;
	struct git_numstat file = { 0 };

	if (rest->len == 0)
		return 0;
	if (!take_until(rest, '\0', &record))
		return -1;
	if (record.len == 0)
		return 0;
	if (!take_until(&record, '\t', &insertions) || !take_until(&record, '\t', &deletions) ||
	    !parse_count(&insertions, &file.insertions) || !parse_count(&deletions, &file.deletions))
		return -1;
	file.path = record;
	/* A rename has an empty name here, and then both names. */
	if (record.len == 0 && (!take_until(rest, '\0', &file.original) || !take_until(rest, '\0', &file.path) ||
				file.original.len == 0 || file.path.len == 0))
		return -1;
	*ret_file = file;
	return 1;
}
