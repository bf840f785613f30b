/*
 * What git prints for programs: `status --porcelain=v2 -z` and `diff --numstat -z`. Names are whatever bytes the file
 * system has.
 */
#ifndef ABX_GIT_PARSE_H
#define ABX_GIT_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of the text that is parsed. */
struct git_text {
	const char *data;
	size_t len;
};

enum git_state {
	GIT_MODIFIED,
	GIT_ADDED,
	GIT_DELETED,
	GIT_RENAMED,
	GIT_COPIED,
	GIT_UNMERGED,
	GIT_UNTRACKED,
};

/* The state's name in answers. */
const char *git_state_name(enum git_state state);

struct git_entry {
	enum git_state state;
	struct git_text path, original; /* `original` (renamed, copied) is the name before; else its data is NULL */
};

/* What git_status_next found. */
enum git_record {
	GIT_RECORD_ENTRY,
	GIT_RECORD_BRANCH, /* the branch's name is in entry.path: "HEAD" when it is detached */
	GIT_RECORD_END,
	GIT_RECORD_BROKEN /* not what git prints, or cut off */
};

/*
 * Take the next record off the front of `rest`, which is the output of git status with --branch. Headers that say
 * nothing of the branch are skipped.
 */
enum git_record git_status_next(struct git_text *rest, struct git_entry *ret_entry);

/* One file of `git diff --numstat -z`. */
struct git_numstat {
	int64_t insertions, deletions; /* -1: binary */
	struct git_text path, original;
};

/*
 * Take the next file off the front of `rest`. 1; 0 at the end, which is an empty record or the end of the text; -1
 * for what git does not print.
 */
int git_numstat_next(struct git_text *rest, struct git_numstat *ret_file);

#endif
