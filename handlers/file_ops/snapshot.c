#include "handlers/file_ops/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "common/auto.h"

struct scanning {
	const struct scan *scan;
	struct snapshot *old;
	size_t old_pos;       /* the first tracked entry that the walk has not reached */
	size_t gone;          /* tracked entries before it that were not seen */
	struct snapshot fresh; /* entries that are not tracked, at most scan->limit */
	bool overflow;
};

void snapshot_release(struct snapshot *snapshot)
{
	abx_strbuf_release(&snapshot->names);
	free(snapshot->list);
	*snapshot = (struct snapshot)SNAPSHOT_INIT;
}

static const char *name_of(const struct snapshot *snapshot, size_t i)
{
	return snapshot->names.buf + snapshot->list[i].name;
}

static struct figures figures_of(const struct abx_tree_entry *entry)
{
	return (struct figures){
		.is_dir = entry->is_dir,
		.size = entry->st.st_size,
		.modified = entry->st.st_mtim,
		.ino = entry->st.st_ino,
	};
}

/* Append an entry. The list grows by doubling, so its capacity needs no member: it is full at every power of two. */
static int add(struct snapshot *snapshot, const char *name, const struct figures *figures)
{
	if ((snapshot->n & (snapshot->n - 1)) == 0) {
		struct tracked *grown = realloc(snapshot->list, (snapshot->n ? snapshot->n * 2 : 1) * sizeof(*grown));

		if (!grown)
			return -1;
		snapshot->list = grown;
	}
	snapshot->list[snapshot->n++] = (struct tracked){ .name = snapshot->names.len, .was = *figures };
	abx_strbuf_add(&snapshot->names, name, strlen(name) + 1);
	return snapshot->names.failed ? -1 : 0;
}

static int visit(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err)
{
	struct scanning *s = ctx;
	struct snapshot *old = s->old;
	struct figures now = figures_of(entry);
	int order = 1;

	while (s->old_pos < old->n && (order = strcmp(name_of(old, s->old_pos), entry->relative)) < 0) {
		s->old_pos++;
		s->gone++;
	}
	if (s->old_pos < old->n && order == 0) {
		old->list[s->old_pos].seen = true;
		old->list[s->old_pos++].now = now;
		return 0;
	}
	/* Room is what the limit leaves, and what gone entries give back; how many are gone is only known at the end. */
	if (s->fresh.n == s->scan->limit) {
		s->overflow = true;
		return s->old_pos == old->n;
	}
	if (add(&s->fresh, entry->relative, &now) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	/* The rest has no room, and nothing that is tracked is among it. */
	if (s->old_pos == old->n && s->fresh.n > s->scan->limit - (old->n - s->gone)) {
		s->overflow = true;
		return 1;
	}
	return 0;
}

static bool differ(const struct figures *a, const struct figures *b)
{
	return a->size != b->size || a->ino != b->ino || a->modified.tv_sec != b->modified.tv_sec ||
	       a->modified.tv_nsec != b->modified.tv_nsec;
}

/* The differences of one tracked entry. Returns 0 or -1 as the report does. */
static int report_tracked(const struct scan *scan, const char *name, const struct tracked *entry)
{
	if (!scan->report)
		return 0;
	if (!entry->seen)
		return scan->report(scan->ctx, SNAPSHOT_DELETED, name, &entry->was);
	if (entry->was.is_dir != entry->now.is_dir) {
		if (scan->report(scan->ctx, SNAPSHOT_DELETED, name, &entry->was) < 0)
			return -1;
		return scan->report(scan->ctx, SNAPSHOT_CREATED, name, &entry->now);
	}
	if (!entry->now.is_dir && differ(&entry->was, &entry->now))
		return scan->report(scan->ctx, SNAPSHOT_MODIFIED, name, &entry->now);
	return 0;
}

static int report_new(const struct scan *scan, const char *name, const struct figures *figures)
{
	return scan->report ? scan->report(scan->ctx, SNAPSHOT_CREATED, name, figures) : 0;
}

/* Merge what was tracked and is still there with `room` of the new entries into `next`, reporting on the way. */
static int merge(const struct scanning *s, size_t room, struct snapshot *next, struct abx_err *err)
{
	const struct snapshot *old = s->old, *fresh = &s->fresh;
	size_t o = 0, f = 0, n_fresh = fresh->n < room ? fresh->n : room;

	while (o < old->n || f < n_fresh) {
		bool take_old = f == n_fresh || (o < old->n && strcmp(name_of(old, o), name_of(fresh, f)) < 0);
		const char *name = take_old ? name_of(old, o) : name_of(fresh, f);
		const struct figures *now = take_old ? &old->list[o].now : &fresh->list[f].was;
		int stop;

		if ((!take_old || old->list[o].seen) && add(next, name, now) < 0)
			return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		stop = take_old ? report_tracked(s->scan, name, &old->list[o]) : report_new(s->scan, name, now);
		if (stop < 0)
			return 1;
		o += take_old;
		f += !take_old;
	}
	return 0;
}

static int walk(struct scanning *s, struct abx_err *err)
{
	const struct abx_tree tree = {
		.top = s->scan->top,
		.roots = s->scan->roots,
		.max_depth = s->scan->recursive ? 0 : 1,
		.flags = ABX_TREE_STAT,
		.visit = visit,
		.opened = s->scan->opened,
		.opened_ctx = s->scan->ctx,
		.ctx = s,
	};

	return tree.top && abx_tree_walk(&tree, err) < 0 ? -1 : 0;
}

int snapshot_scan(struct snapshot *snapshot, const struct scan *scan, bool *ret_overflow, struct abx_err *err)
{
	struct scanning s = { .scan = scan, .old = snapshot, .fresh = SNAPSHOT_INIT };
	struct snapshot next = SNAPSHOT_INIT;
	size_t kept = 0;
	int result;

	for (size_t i = 0; i < snapshot->n; i++)
		snapshot->list[i].seen = false;
	result = walk(&s, err);
	if (result == 0) {
		for (size_t i = 0; i < snapshot->n; i++)
			kept += snapshot->list[i].seen;
		result = merge(&s, scan->limit - kept, &next, err);
	}
	if (result == 0) {
		*ret_overflow = s.overflow || s.fresh.n > scan->limit - kept;
		snapshot_release(snapshot);
		*snapshot = next;
	} else {
		snapshot_release(&next);
	}
	snapshot_release(&s.fresh);
	return result;
}
