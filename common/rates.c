#include "common/rates.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <string.h>

#include "common/auto.h"
#include "common/clock.h"

#define CALLS_MAX 0xffffu /* of one mark */

static void lock_slot(struct abx_rate_slot *slot)
{
	if (pthread_mutex_lock(&slot->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&slot->lock);
}

static void unlock_slot(struct abx_rate_slot *slot)
{
	pthread_mutex_unlock(&slot->lock);
}

/* ---- slots */

static void make_key(const char *identity, const char *endpoint, unsigned char key[16])
{
	unsigned char digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, strlen(identity) + 1, (const uint8_t *)identity);
	sha256_update(&ctx, strlen(endpoint), (const uint8_t *)endpoint);
	sha256_digest(&ctx, sizeof(digest), digest);
	memcpy(key, digest, 16);
}

static int init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;
	int rc = pthread_mutexattr_init(&attributes);

	if (rc)
		return rc;
	rc = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (!rc)
		rc = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (!rc)
		rc = pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return rc;
}

void abx_rates_begin(struct abx_rates *rates)
{
	rates->round++;
}

/* A slot for a new key: one that was never used, or one that nobody asks for any longer. */
static struct abx_rate_slot *new_slot(struct abx_rates *rates)
{
	if (rates->n < ABX_RATE_SLOTS) {
		if (init_lock(&rates->slots[rates->n].lock))
			return NULL;
		return &rates->slots[rates->n++];
	}
	for (uint32_t i = 0; i < rates->n; i++)
		if (rates->slots[i].round != rates->round)
			return &rates->slots[i];
	return NULL;
}

int32_t abx_rates_slot(struct abx_rates *rates, const char *identity, const char *endpoint)
{
	struct abx_rate_slot *slot = NULL;
	unsigned char key[16];

	make_key(identity, endpoint, key);
	for (uint32_t i = 0; i < rates->n && !slot; i++)
		if (memcmp(rates->slots[i].key, key, sizeof(key)) == 0)
			slot = &rates->slots[i];
	if (!slot) {
		slot = new_slot(rates);
		if (!slot)
			return -1;
		lock_slot(slot);
		memcpy(slot->key, key, sizeof(key));
		memset(slot->owners, 0, sizeof(slot->owners));
		slot->n = 0;
		slot->total = 0;
		unlock_slot(slot);
	}
	slot->round = rates->round;
	return (int32_t)(slot - rates->slots);
}

/* ---- marks */

static abx_rate_mark mark_of(int64_t us, uint64_t calls)
{
	return (uint64_t)us << 16 | calls;
}

static int64_t mark_us(abx_rate_mark mark)
{
	return (int64_t)(mark >> 16);
}

static uint64_t mark_calls(abx_rate_mark mark)
{
	return mark & CALLS_MAX;
}

static abx_rate_mark *mark_at(struct abx_rates *rates, int32_t index, uint32_t i)
{
	return &rates->marks[index][(rates->slots[index].first + i) % ABX_RATE_MARKS];
}

/* Forget marks that have left the window. */
static void expire(struct abx_rates *rates, int32_t index, int64_t window_us, int64_t now_us)
{
	struct abx_rate_slot *slot = &rates->slots[index];

	while (slot->n > 0) {
		abx_rate_mark mark = *mark_at(rates, index, 0);

		if (mark_us(mark) + window_us > now_us)
			break;
		slot->total -= mark_calls(mark);
		slot->first = (slot->first + 1) % ABX_RATE_MARKS;
		slot->n--;
	}
	if (slot->n == 0)
		slot->total = 0;
}

/* Whether the call can share the last mark: because the ring is full, or because calls come so close together that not each of them can have its own. */
static bool shares_mark(struct abx_rates *rates, int32_t index, const struct abx_rate_limits *limits, int64_t now_us)
{
	struct abx_rate_slot *slot = &rates->slots[index];
	int64_t step = limits->window_ms * 1000 / (ABX_RATE_MARKS / 2) + 1;
	abx_rate_mark last;

	if (slot->n == 0)
		return false;
	last = *mark_at(rates, index, slot->n - 1);
	if (mark_calls(last) == CALLS_MAX)
		return false;
	return slot->n == ABX_RATE_MARKS || (limits->count > ABX_RATE_MARKS && now_us / step == mark_us(last) / step);
}

/* false: there is no room for one more mark. */
static bool note(struct abx_rates *rates, int32_t index, const struct abx_rate_limits *limits, int64_t now_us)
{
	struct abx_rate_slot *slot = &rates->slots[index];

	if (shares_mark(rates, index, limits, now_us)) {
		abx_rate_mark *last = mark_at(rates, index, slot->n - 1);

		*last = mark_of(now_us, mark_calls(*last) + 1);
	} else if (slot->n < ABX_RATE_MARKS) {
		*mark_at(rates, index, slot->n) = mark_of(now_us, 1);
		slot->n++;
	} else {
		return false;
	}
	slot->total++;
	return true;
}

/* How long until so many marks have left the window that one more call may pass. */
static int64_t wait_ms(struct abx_rates *rates, int32_t index, const struct abx_rate_limits *limits, int64_t now_us)
{
	struct abx_rate_slot *slot = &rates->slots[index];
	uint64_t left = slot->total;
	int64_t us = now_us;

	for (uint32_t i = 0; i < slot->n && left >= (uint64_t)limits->count; i++) {
		abx_rate_mark mark = *mark_at(rates, index, i);

		left -= mark_calls(mark);
		us = mark_us(mark) + limits->window_ms * 1000;
	}
	return us > now_us ? (us - now_us + 999) / 1000 : 1;
}

/* ---- calls that run */

static int64_t count_running(const struct abx_rate_slot *slot)
{
	int64_t n = 0;

	for (size_t i = 0; i < ABX_RATE_OWNERS; i++)
		n += slot->owners[i].pid ? slot->owners[i].running : 0;
	return n;
}

/* Add to what the process has running. false: there is no room for one more process. */
static bool change_running(struct abx_rate_slot *slot, pid_t pid, int change)
{
	size_t at = ABX_RATE_OWNERS;

	for (size_t i = 0; i < ABX_RATE_OWNERS; i++) {
		if (slot->owners[i].pid == pid) {
			at = i;
			break;
		}
		if (at == ABX_RATE_OWNERS && slot->owners[i].running == 0)
			at = i;
	}
	if (at == ABX_RATE_OWNERS)
		return false;
	if (slot->owners[at].pid != pid)
		slot->owners[at].running = 0;
	slot->owners[at].pid = pid;
	slot->owners[at].running += change;
	return true;
}

enum abx_rate_verdict abx_rates_enter_at(struct abx_rates *rates, int32_t index, const struct abx_rate_limits *limits, pid_t self,
					 int64_t now_us, int64_t *ret_wait_ms)
{
	struct abx_rate_slot *slot = &rates->slots[index];

	if (limits->max_concurrent && count_running(slot) >= limits->max_concurrent)
		return ABX_RATE_TOO_MANY;
	if (limits->max_concurrent && !change_running(slot, self, 0))
		return ABX_RATE_TOO_MANY;
	if (limits->count) {
		expire(rates, index, limits->window_ms * 1000, now_us);
		if (slot->total >= (uint64_t)limits->count || !note(rates, index, limits, now_us)) {
			*ret_wait_ms = wait_ms(rates, index, limits, now_us);
			return ABX_RATE_TOO_OFTEN;
		}
	}
	if (limits->max_concurrent)
		change_running(slot, self, 1);
	return ABX_RATE_PASSED;
}

enum abx_rate_verdict abx_rates_enter(struct abx_rates *rates, int32_t index, const struct abx_rate_limits *limits, pid_t self,
				      int64_t *ret_wait_ms)
{
	struct abx_rate_slot *slot = &rates->slots[index];
	enum abx_rate_verdict verdict;

	lock_slot(slot);
	/* The time is taken inside, so that the marks are in order. */
	verdict = abx_rates_enter_at(rates, index, limits, self, abx_clock_us(), ret_wait_ms);
	unlock_slot(slot);
	return verdict;
}

void abx_rates_leave(struct abx_rates *rates, int32_t index, pid_t self)
{
	struct abx_rate_slot *slot = &rates->slots[index];

	lock_slot(slot);
	for (size_t i = 0; i < ABX_RATE_OWNERS; i++)
		if (slot->owners[i].pid == self && slot->owners[i].running > 0)
			slot->owners[i].running--;
	unlock_slot(slot);
}

void abx_rates_forget(struct abx_rates *rates, pid_t pid)
{
	for (uint32_t i = 0; i < rates->n; i++) {
		struct abx_rate_slot *slot = &rates->slots[i];

		lock_slot(slot);
		for (size_t k = 0; k < ABX_RATE_OWNERS; k++)
			if (slot->owners[k].pid == pid) {
				slot->owners[k].pid = 0;
				slot->owners[k].running = 0;
			}
		unlock_slot(slot);
	}
}
