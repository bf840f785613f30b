#include "handlers/commands/watch.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "common/clock.h"
#include "common/gate.h"
#include "common/log.h"
#include "common/responder.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t earlier;  /* a call whose time is over before the watcher would look */
	pthread_cond_t answered;
	struct watch *first;
	int64_t wakes_us; /* when it looks; INT64_MAX: never */
	unsigned lost;
	bool started;
} watcher = { .lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER, .wakes_us = INT64_MAX };

static void unlink_watch(struct watch *watch)
{
	if (watch->prev)
		watch->prev->next = watch->next;
	else
		watcher.first = watch->next;
	if (watch->next)
		watch->next->prev = watch->prev;
}

/* Answer in the call's place. Without the lock: the request is ours until the state says that it was answered. */
static void answer(struct watch *watch)
{
	abx_auto_strbuf struct abx_strbuf seconds = ABX_STRBUF_INIT;
	struct abx_err err = ABX_ERR_INIT;

	if (watch->seconds == (double)(int64_t)watch->seconds)
		abx_strbuf_addf(&seconds, "%lld", (long long)watch->seconds);
	else
		abx_json_repr(watch->seconds, &seconds);
	abx_log(ABX_LOG_WARNING, "the command '%s' goes on past its %s s; its thread is left behind", watch->command->name, seconds.buf);
	abx_err_set(&err, ABX_E_TIMEOUT, "Command timed out after %ss", seconds.buf);
	abx_gate_conclude(watch->req, &err);
}

/* End the calls whose time is over. Returns when to look again. */
static int64_t look(void)
{
	int64_t next = INT64_MAX;

	for (struct watch *watch = watcher.first; watch;) {
		if (watch->deadline_us > abx_clock_us()) {
			next = watch->deadline_us < next ? watch->deadline_us : next;
			watch = watch->next;
			continue;
		}
		unlink_watch(watch);
		watch->state = WATCH_OVER;
		watcher.lost++;
		atomic_fetch_add(watch->lost, 1);
		abx_responder_lose_threads(1);
		pthread_mutex_unlock(&watcher.lock);
		answer(watch);
		pthread_mutex_lock(&watcher.lock);
		watch->state = WATCH_ANSWERED;
		pthread_cond_broadcast(&watcher.answered);
		/* The list may be another by now. */
		watch = watcher.first;
		next = INT64_MAX;
	}
	return next;
}

static void *watch_calls(void *arg)
{
	pthread_mutex_lock(&watcher.lock);
	for (;;) {
		watcher.wakes_us = look();
		if (watcher.wakes_us == INT64_MAX) {
			pthread_cond_wait(&watcher.earlier, &watcher.lock);
		} else {
			struct timespec at = { .tv_sec = watcher.wakes_us / 1000000, .tv_nsec = watcher.wakes_us % 1000000 * 1000 };

			pthread_cond_timedwait(&watcher.earlier, &watcher.lock, &at);
		}
	}
	return arg;
}

static int start(struct abx_err *err)
{
	pthread_condattr_t clock;
	pthread_attr_t detached;
	pthread_t thread;
	int rc;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&watcher.earlier, &clock);
	pthread_condattr_destroy(&clock);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &detached, watch_calls, NULL);
	pthread_attr_destroy(&detached);
	if (rc)
		return abx_err_errno(err, rc, "Cannot watch a native command");
	watcher.started = true;
	return 0;
}

/* With the lock held. */
static int enter(struct watch *watch, struct abx_err *err)
{
	if (atomic_load(watch->lost) >= WATCH_LOST_COMMAND || watcher.lost >= WATCH_LOST_ALL)
		return abx_err_set(err, ABX_E_TABLE_FULL, "Too many calls of '%s' that went past their time have not returned yet", watch->command->name);
	if (!watcher.started && start(err) < 0)
		return -1;
	watch->prev = NULL;
	watch->next = watcher.first;
	if (watch->next)
		watch->next->prev = watch;
	watcher.first = watch;
	if (watch->deadline_us < watcher.wakes_us) {
		watcher.wakes_us = watch->deadline_us;
		pthread_cond_signal(&watcher.earlier);
	}
	return 0;
}

int watch_begin(struct watch *watch, struct abx_err *err)
{
	int result;

	watch->deadline_us = abx_clock_us() + (int64_t)((watch->seconds < 1e9 ? watch->seconds : 1e9) * 1e6);
	watch->state = WATCH_RUNS;
	pthread_mutex_lock(&watcher.lock);
	result = enter(watch, err);
	pthread_mutex_unlock(&watcher.lock);
	return result;
}

bool watch_end(struct watch *watch)
{
	bool over;

	pthread_mutex_lock(&watcher.lock);
	over = watch->state != WATCH_RUNS;
	if (over) {
		while (watch->state != WATCH_ANSWERED)
			pthread_cond_wait(&watcher.answered, &watcher.lock);
		watcher.lost--;
		atomic_fetch_sub(watch->lost, 1);
		abx_responder_lose_threads(-1);
	} else {
		unlink_watch(watch);
	}
	pthread_mutex_unlock(&watcher.lock);
	return over;
}
