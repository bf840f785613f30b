#include <poll.h>
#include <string.h>

#include "common/clock.h"
#include "common/spawn.h"
#include "common/sse.h"
#include "handlers/file_ops/answer.h"
#include "handlers/file_ops/guard.h"
#include "handlers/file_ops/handlers.h"
#include "handlers/file_ops/slots.h"
#include "handlers/file_ops/snapshot.h"
#include "handlers/file_ops/wake.h"

#define ENTRIES_MAX 5000

/* While the kernel tells of every change, looking is only a safeguard. */
#define SAFEGUARD_MS 5000

/* Changes come in flocks: look when the first has had company, and not again at once. */
#define GATHER_MS 10
#define PAUSE_MS  20

/* Looking may take this part of the time of a processor. */
#define LOAD_PART 10

struct watch {
	struct abx_request *req;
	struct abx_path top; /* as it was when the watch began; its descriptor keeps the inode's number from being used again */
	bool recursive;
	int64_t interval_ms, deadline_ms;
	struct snapshot snapshot;
	struct wake wake;
	bool told_overflow, gone;
	int64_t safeguard_ms;          /* when the wake is to be made anew */
	int64_t looked_ms, looking_ms; /* when the last look ended, and how long it took */
	int64_t sent_ms;
};

static void watch_release(struct watch *w)
{
	abx_path_release(&w->top);
	snapshot_release(&w->snapshot);
	wake_release(&w->wake);
}

/* ---- events */

static int send_event(struct watch *w, const char *name, const struct abx_strbuf *json)
{
	w->sent_ms = abx_clock_ms();
	return abx_sse_event(&w->req->res, name, json);
}

static int report(void *ctx, enum snapshot_change change, const char *name, const struct figures *figures)
{
	static const char *const names[] = {
		[SNAPSHOT_CREATED] = "created", [SNAPSHOT_MODIFIED] = "modified", [SNAPSHOT_DELETED] = "deleted",
	};
	struct watch *w = ctx;
	abx_auto_strbuf struct abx_strbuf json = ABX_STRBUF_INIT, path = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&json);

	abx_strbuf_addf(&path, "%s/%s", strcmp(w->top.resolved, "/") == 0 ? "" : w->top.resolved, name);
	abx_jw_object(&jw);
	answer_path(&jw, "path", path.buf);
	abx_jw_kstring(&jw, "type", answer_list_type(figures->is_dir));
	abx_jw_kint(&jw, "size", figures->size);
	answer_time(&jw, "modified", figures->modified);
	abx_jw_object_end(&jw);
	if (path.failed)
		json.failed = true;
	return send_event(w, names[change], &json);
}

static int send_ready(struct watch *w)
{
	abx_auto_strbuf struct abx_strbuf json = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&json);

	abx_jw_object(&jw);
	answer_path(&jw, "path", w->top.resolved);
	abx_jw_kint(&jw, "entries", (int64_t)w->snapshot.n);
	abx_jw_object_end(&jw);
	return send_event(w, "ready", &json);
}

static int send_overflow(struct watch *w)
{
	abx_auto_strbuf struct abx_strbuf json = ABX_STRBUF_INIT;

	if (w->told_overflow)
		return 0;
	w->told_overflow = true;
	abx_strbuf_addf(&json, "{\"limit\": %d}", ENTRIES_MAX);
	return send_event(w, "overflow", &json);
}

/* The last event. */
static int send_end(struct watch *w, const char *reason)
{
	abx_auto_strbuf struct abx_strbuf json = ABX_STRBUF_INIT;

	abx_strbuf_addf(&json, "{\"reason\": \"%s\"}", reason);
	send_event(w, "end", &json);
	return 0;
}

static int send_stop(struct watch *w)
{
	abx_auto_strbuf struct abx_strbuf json = ABX_STRBUF_INIT;

	abx_strbuf_adds(&json, "{\"error\": \"The server is stopping\", \"type\": \"RuntimeError\"}");
	send_event(w, "error", &json);
	return 0;
}

static int client_left(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_GONE, "The client left");
}

/* ---- looking */

static void cover(void *ctx, int dir_fd)
{
	struct watch *w = ctx;

	wake_add(&w->wake, dir_fd);
}

/* Whether the directory is still what stands at its path. */
static bool top_is_there(struct watch *w)
{
	abx_auto_path struct abx_path now = ABX_PATH_INIT;
	struct abx_err unused = ABX_ERR_INIT;

	return abx_path_resolve(w->req->roots, w->top.resolved, ABX_PATH_NOFOLLOW, &now, &unused) == 0 &&
	       now.st.st_dev == w->top.st.st_dev && now.st.st_ino == w->top.st.st_ino;
}

/* Look at everything, and tell what has changed. The first time there is nobody to tell yet. */
static int look(struct watch *w, bool first, struct abx_err *err)
{
	struct abx_err transient = ABX_ERR_INIT;
	struct scan scan = {
		.top = &w->top,
		.roots = w->req->roots,
		.recursive = w->recursive,
		.limit = ENTRIES_MAX,
		.opened = cover,
		.report = first ? NULL : report,
		.ctx = w,
	};
	int64_t began = abx_clock_ms();
	bool overflow = false;
	int result;

	/* Coverage of directories that are gone goes with the old wake; what happens until the new one covers a directory is found by reading it. */
	if (began >= w->safeguard_ms) {
		wake_reset(&w->wake);
		w->safeguard_ms = began + SAFEGUARD_MS;
	}
	wake_drain(&w->wake);
	if (!first && !top_is_there(w)) {
		w->gone = true;
		scan.top = NULL;
	}
	/* Later on, what keeps us from looking (no descriptor or memory for the moment) may have passed the next time. */
	result = snapshot_scan(&w->snapshot, &scan, &overflow, first ? err : &transient);
	w->looked_ms = abx_clock_ms();
	w->looking_ms = w->looked_ms - began;
	if (result < 0)
		return first ? -1 : 0;
	if (first && abx_sse_begin(&w->req->res) < 0)
		return client_left(err);
	if (result > 0 || (first && send_ready(w) < 0) || (overflow && send_overflow(w) < 0))
		return client_left(err);
	return 0;
}

/* ---- waiting */

/* When to look again, if nothing wakes us before. */
static int64_t next_look(const struct watch *w)
{
	int64_t period = w->interval_ms, least = w->looking_ms * LOAD_PART;

	if (w->wake.complete && period < SAFEGUARD_MS)
		period = SAFEGUARD_MS;
	return w->looked_ms + (period > least ? period : least);
}

/* When to look after a change: soon. */
static int64_t early_look(const struct watch *w)
{
	int64_t soon = abx_clock_ms() + GATHER_MS, pause = w->looking_ms * LOAD_PART;
	int64_t least = w->looked_ms + (pause > PAUSE_MS ? pause : PAUSE_MS);

	return soon > least ? soon : least;
}

enum wait_end { WAIT_LOOK, WAIT_TIMEOUT, WAIT_CLIENT_LEFT, WAIT_STOP };

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Wait until it is time to look, heartbeats sent meanwhile. */
static enum wait_end wait_for_look(struct watch *w)
{
	int64_t look_ms = next_look(w);
	struct pollfd fds[] = {
		{ .fd = w->req->io->client_fd, .events = POLLRDHUP },
		{ .fd = abx_spawn_stop_fd(), .events = POLLIN },
		{ .fd = w->wake.fd, .events = POLLIN },
	};

	for (;;) {
		int64_t now = abx_clock_ms(), until = earlier(earlier(look_ms, w->deadline_ms), w->sent_ms + ABX_SSE_HEARTBEAT_MS);

		poll(fds, ABX_N(fds), until > now ? (int)(until - now) : 0);
		now = abx_clock_ms();
		if (fds[0].revents)
			return WAIT_CLIENT_LEFT;
		if (fds[1].revents)
			return WAIT_STOP;
		if (now >= w->deadline_ms)
			return WAIT_TIMEOUT;
		if (fds[2].revents) {
			/* Woken: no more is to be learnt before we look. */
			look_ms = earlier(look_ms, early_look(w));
			fds[2].fd = -1;
		}
		if (now >= look_ms)
			return WAIT_LOOK;
		if (now >= w->sent_ms + ABX_SSE_HEARTBEAT_MS) {
			if (abx_sse_heartbeat(&w->req->res) < 0)
				return WAIT_CLIENT_LEFT;
			w->sent_ms = now;
		}
	}
}

static int follow(struct watch *w, struct abx_err *err)
{
	while (!w->gone) {
		switch (wait_for_look(w)) {
		case WAIT_LOOK:
			if (look(w, false, err) < 0)
				return -1;
			break;
		case WAIT_TIMEOUT:
			return send_end(w, "timeout");
		case WAIT_CLIENT_LEFT:
			return client_left(err);
		case WAIT_STOP:
			return send_stop(w);
		}
	}
	return send_end(w, "deleted");
}

/* ---- the call */

static double clamp(double value, double least, double most)
{
	return value < least ? least : value > most ? most : value;
}

static void take_times(const struct abx_request *req, struct watch *w)
{
	int64_t most = req->rule->limits.max_duration_seconds;
	double timeout = clamp(abx_arg_number(req, "timeout"), 0.1, most > 0 ? (double)most : 1e9);

	w->interval_ms = (int64_t)(clamp(abx_arg_number(req, "interval"), 0.1, 5) * 1000);
	w->deadline_ms = abx_clock_ms() + (int64_t)(timeout * 1000);
}

int h_files_watch(struct abx_request *req, struct abx_err *err)
{
	__attribute__((cleanup(watch_release))) struct watch w = {
		.req = req,
		.top = ABX_PATH_INIT,
		.recursive = abx_arg_bool(req, "recursive"),
		.snapshot = SNAPSHOT_INIT,
		.wake = WAKE_INIT,
	};
	auto_slot int slot = -1;

	take_times(req, &w);
	if (guard_directory(req, "path", &w.top, err) < 0 || (slot = slot_take(err)) < 0 || look(&w, true, err) < 0)
		return -1;
	return follow(&w, err);
}
