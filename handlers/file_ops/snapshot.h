/* What a watch knows of a tree: the figures of up to a limit of entries, and how they differ from what is there now. */
#ifndef ABX_FILE_OPS_SNAPSHOT_H
#define ABX_FILE_OPS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/strbuf.h"
#include "common/tree.h"

struct figures {
	bool is_dir;
	int64_t size;
	struct timespec modified;
	ino_t ino;
};

/* Sorted by name, in the order of abx_tree_walk. */
struct tracked {
	size_t name; /* offset in snapshot.names; relative to the top */
	bool seen;
	struct figures was, now;
};

struct snapshot {
	struct abx_strbuf names;
	struct tracked *list;
	size_t n;
};

#define SNAPSHOT_INIT { .names = ABX_STRBUF_INIT_MAX((size_t)64 << 20) }

void snapshot_release(struct snapshot *snapshot);

enum snapshot_change { SNAPSHOT_CREATED, SNAPSHOT_MODIFIED, SNAPSHOT_DELETED };

/* One difference. Returns 0, or -1 to stop. */
typedef int snapshot_report(void *ctx, enum snapshot_change change, const char *name, const struct figures *figures);

struct scan {
	const struct abx_path *top; /* NULL: it is gone, and with it all entries */
	const struct abx_roots *roots;
	bool recursive;
	size_t limit;
	/* Called for each directory before it is read; may be NULL. */
	void (*opened)(void *ctx, int dir_fd);
	snapshot_report *report; /* may be NULL */
	void *ctx;
};

/*
 * Bring the snapshot up to date and report the differences in the order of the names. Entries that are tracked stay so until they are gone; new ones are
 * taken while there is room, and *ret_overflow says whether some were not. 0; 1: the report stopped it; -1: the tree could not be looked at, and
 * the snapshot is as before.
 */
int snapshot_scan(struct snapshot *snapshot, const struct scan *scan, bool *ret_overflow, struct abx_err *err);

#endif
