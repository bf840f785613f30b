#include "handlers/dev_tools/git_parse.h"

#include "common/auto.h"
#include "t/tap.h"

#define TEXT(literal) ((struct git_text){ (literal), sizeof(literal) - 1 })
#define HASHES "0123456789012345678901234567890123456789 0123456789012345678901234567890123456789"
#define ONE    " N... 100644 100644 100644 " HASHES " "
#define THREE  " N... 100644 100644 100644 100644 " HASHES " 0123456789012345678901234567890123456789 "

static void is_text(const struct git_text *got, const char *want, const char *what)
{
	if (want)
		is_mem(got->data, got->len, want, strlen(want), "%s", what);
	else
		ok(got->data == NULL, "%s: none", what);
}

static void test_states(void)
{
	static const struct {
		const char *xy;
		enum git_state state;
	} cases[] = {
		{ "M.", GIT_MODIFIED }, { ".M", GIT_MODIFIED }, { "MM", GIT_MODIFIED }, { "T.", GIT_MODIFIED },
		{ ".T", GIT_MODIFIED }, { "A.", GIT_ADDED },    { ".A", GIT_ADDED },    { "AM", GIT_ADDED },
		{ "AT", GIT_ADDED },    { "AD", GIT_DELETED },  { "D.", GIT_DELETED },  { ".D", GIT_DELETED },
		{ "MD", GIT_DELETED },  { "DM", GIT_MODIFIED }, { "DA", GIT_ADDED },
	};

	for (size_t i = 0; i < ABX_N(cases); i++) {
		char record[256];
		int len = snprintf(record, sizeof(record), "1 %s%sa name", cases[i].xy, ONE);
		struct git_text rest = { record, (size_t)len + 1 };
		struct git_entry entry;

		is_int(git_status_next(&rest, &entry), GIT_RECORD_ENTRY, "%s is an entry", cases[i].xy);
		is_str(git_state_name(entry.state), git_state_name(cases[i].state), "%s", cases[i].xy);
		is_text(&entry.path, "a name", "path");
		is_text(&entry.original, NULL, "original");
		is_int((long long)rest.len, 0, "nothing is left");
	}
}

static void test_status(void)
{
	static const char output[] = "# branch.oid (initial)\0# branch.head a branch\0# branch.upstream x\0# branch.ab "
				     "+1 -2\0# something new\0"
				     "1 .M" ONE "a\nb\0"
				     "2 R." ONE "R100 new name\0old\tname\0"
				     "2 .C" ONE "C75 copy\0# branch.head not\0"
				     "u UU" THREE "both\0"
				     "? \xff dir/\0";
	static const struct {
		enum git_state state;
		const char *path, *original;
	} wanted[] = {
		{ GIT_MODIFIED, "a\nb", NULL },
		{ GIT_RENAMED, "new name", "old\tname" },
		{ GIT_COPIED, "copy", "# branch.head not" },
		{ GIT_UNMERGED, "both", NULL },
		{ GIT_UNTRACKED, "\xff dir/", NULL },
	};
	struct git_text rest = TEXT(output);
	struct git_entry entry;

	is_int(git_status_next(&rest, &entry), GIT_RECORD_BRANCH, "headers are skipped up to the branch");
	is_text(&entry.path, "a branch", "its name");
	for (size_t i = 0; i < ABX_N(wanted); i++) {
		is_int(git_status_next(&rest, &entry), GIT_RECORD_ENTRY, "entry %zu", i);
		is_int(entry.state, wanted[i].state, "its state");
		is_text(&entry.path, wanted[i].path, "its path");
		is_text(&entry.original, wanted[i].original, "its original");
	}
	is_int(git_status_next(&rest, &entry), GIT_RECORD_END, "the end");
	is_int(git_status_next(&rest, &entry), GIT_RECORD_END, "and again");

	rest = TEXT("# branch.head (detached)\0");
	is_int(git_status_next(&rest, &entry), GIT_RECORD_BRANCH, "detached");
	is_text(&entry.path, "HEAD", "its name");
}

static void test_broken_status(void)
{
	static const struct {
		struct git_text text;
		const char *what;
	} cases[] = {
		{ TEXT("1 .M" ONE "cut"), "a record without its NUL" },
		{ TEXT("1 .M" ONE "\0"), "no path" },
		{ TEXT("1 .M N... 100644\0"), "too few fields" },
		{ TEXT("1 .X" ONE "a\0"), "a letter that git does not have" },
		{ TEXT("1 .M  N... 100644 100644 100644 " HASHES " a\0"), "an empty field" },
		{ TEXT("1\0"), "a type alone" },
		{ TEXT("2 R." ONE "R100 new\0"), "a rename without its original" },
		{ TEXT("2 R." ONE "R100 new\0\0"), "an empty original" },
		{ TEXT("2 R." ONE "X100 new\0old\0"), "an unknown score" },
		{ TEXT("2 R." ONE "R100\0old\0"), "no new name" },
		{ TEXT("u UU" ONE "a\0"), "too few fields of a conflict" },
		{ TEXT("? \0"), "an untracked nothing" },
		{ TEXT("?\0"), "less than that" },
		{ TEXT("! ignored\0"), "what was not asked for" },
		{ TEXT("\0"), "an empty record" },
	};

	for (size_t i = 0; i < ABX_N(cases); i++) {
		struct git_text rest = cases[i].text;
		struct git_entry entry;

		is_int(git_status_next(&rest, &entry), GIT_RECORD_BROKEN, "%s is broken", cases[i].what);
	}
}

static void test_numstat(void)
{
	static const char output[] = "1\t2\ta\tb\nc\0-\t-\tbin\0"
				     "0\t0\t\0old\0new\0"
				     "123456789012345678\t0\tbig\0\0diff --git";
	struct git_text rest = TEXT(output);
	struct git_numstat file;

	is_int(git_numstat_next(&rest, &file), 1, "a file");
	is_int(file.insertions, 1, "insertions");
	is_int(file.deletions, 2, "deletions");
	is_text(&file.path, "a\tb\nc", "path");
	is_text(&file.original, NULL, "original");
	is_int(git_numstat_next(&rest, &file), 1, "a binary file");
	is_int(file.insertions, -1, "has no insertions");
	is_int(file.deletions, -1, "nor deletions");
	is_int(git_numstat_next(&rest, &file), 1, "a rename");
	is_text(&file.path, "new", "its path");
	is_text(&file.original, "old", "its original");
	is_int(git_numstat_next(&rest, &file), 1, "a large number");
	is_int(file.insertions, 123456789012345678, "of insertions");
	is_int(git_numstat_next(&rest, &file), 0, "the end");
	is_text(&rest, "diff --git", "what follows is left");
	rest = TEXT("");
	is_int(git_numstat_next(&rest, &file), 0, "nothing at all is an end, too");
}

static void test_broken_numstat(void)
{
	static const struct git_text cases[] = {
		TEXT("1\t2\tcut"),       TEXT("1\t2\0"),          TEXT("x\t2\ta\0"),
		TEXT("1\t\ta\0"),        TEXT("1\t-2\ta\0"),      TEXT("1\t2\t\0old\0"),
		TEXT("1\t2\t\0\0new\0"), TEXT("1\t2\t\0old\0\0"), TEXT("1\t1234567890123456789\ta\0"),
	};

	for (size_t i = 0; i < ABX_N(cases); i++) {
		struct git_text rest = cases[i];
		struct git_numstat file;

		is_int(git_numstat_next(&rest, &file), -1, "case %zu is broken", i);
	}
}

int main(void)
{
	test_states();
	test_status();
	test_broken_status();
	test_numstat();
	test_broken_numstat();
	return done_testing();
}
