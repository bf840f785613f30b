/* Rates and calls that run: exact in every window, and alive through the death of whoever counts. */
#include "common/rates.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/auto.h"
#include "t/tap.h"

#define SECOND 1000000

static struct abx_rates *rates;

static struct abx_rates *map_rates(void)
{
	void *at = mmap(NULL, sizeof(struct abx_rates), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int32_t new_slot(void)
{
	static int n;
	char name[16];

	snprintf(name, sizeof(name), "e%d", n++);
	return abx_rates_slot(rates, "ci", name);
}

/* One call at a time in microseconds: passed? */
static bool pass_at(int32_t slot, const struct abx_rate_limits *limits, int64_t us, int64_t *wait_ms)
{
	return abx_rates_enter_at(rates, slot, limits, getpid(), us, wait_ms) == ABX_RATE_PASSED;
}

static void test_slots(void)
{
	int32_t a, b;

	abx_rates_begin(rates);
	a = abx_rates_slot(rates, "ci", "shell");
	b = abx_rates_slot(rates, "ci", "upload");
	ok(a >= 0 && b >= 0 && a != b, "two endpoints, two slots");
	ok(abx_rates_slot(rates, "reader", "shell") != a, "two identities, two slots");
	ok(abx_rates_slot(rates, "c", "ishell") != a, "names are kept apart");
	abx_rates_begin(rates);
	is_int(abx_rates_slot(rates, "ci", "shell"), a, "the next policy finds it again");
}

static void test_window(void)
{
	const struct abx_rate_limits limits = { 3, 10000, 0 };
	int32_t slot = new_slot();
	int64_t wait;

	ok(pass_at(slot, &limits, 1 * SECOND, &wait), "the first of three");
	ok(pass_at(slot, &limits, 2 * SECOND, &wait), "the second");
	ok(pass_at(slot, &limits, 3 * SECOND, &wait), "the third");
	ok(!pass_at(slot, &limits, 4 * SECOND, &wait), "not the fourth");
	is_int(wait, 7000, "which has to wait until the first has left the window");
	for (int i = 0; i < 100; i++)
		pass_at(slot, &limits, 5 * SECOND + i, &wait);
	ok(!pass_at(slot, &limits, 11 * SECOND - 1, &wait), "a microsecond too early");
	is_int(wait, 1, "waits a millisecond");
	ok(pass_at(slot, &limits, 11 * SECOND, &wait), "refused calls have not counted");
	ok(!pass_at(slot, &limits, 11 * SECOND, &wait), "one for one");
	is_int(wait, 1000, "until the second has left");
	ok(pass_at(slot, &limits, 12 * SECOND, &wait), "when it has");
	ok(pass_at(slot, &limits, 100 * SECOND, &wait), "long after");
	ok(pass_at(slot, &limits, 100 * SECOND, &wait) && pass_at(slot, &limits, 100 * SECOND, &wait), "all three at once");
	ok(!pass_at(slot, &limits, 100 * SECOND, &wait), "and no more");
}

static void test_changed_limits(void)
{
	const struct abx_rate_limits five = { 5, 10000, 0 }, two = { 2, 10000, 0 }, wide = { 2, 20000, 0 }, many = { 9000, 10000, 0 };
	int32_t slot = new_slot();
	int64_t wait;

	for (int i = 0; i < 5; i++)
		pass_at(slot, &five, i * SECOND, &wait);
	ok(!pass_at(slot, &two, 5 * SECOND, &wait), "a lower rate counts what has passed");
	is_int(wait, 8000, "and waits until all but one have left");
	ok(!pass_at(slot, &two, 12 * SECOND, &wait), "not yet");
	ok(pass_at(slot, &two, 13 * SECOND, &wait), "now");
	ok(!pass_at(slot, &wide, 16 * SECOND, &wait), "a wider window counts what is still known");
	ok(pass_at(slot, &many, 17 * SECOND, &wait), "a higher rate lets it pass");
}

/* Every window of a long random sequence: never more than the rate, and never fewer than it could be. */
static void check_random(int64_t count, int64_t window_ms, int calls, int64_t step_us, bool exact, const char *name)
{
	const struct abx_rate_limits limits = { count, window_ms, 0 };
	abx_auto_free int64_t *passed = calloc((size_t)calls, sizeof(*passed));
	int32_t slot = new_slot();
	/* Calls that share a mark leave the window with the last of them, no more than a 2048th of it later. */
	int64_t longest_us = window_ms * 1000 + (exact ? 0 : window_ms * 1000 / 2048 + 1);
	size_t n = 0, first = 0, first_held = 0;
	int over = 0, under = 0;
	int64_t now = SECOND, wait, waited_too_little = 0;

	srandom(42);
	for (int i = 0; passed && i < calls; i++) {
		now += random() % step_us;
		while (first < n && passed[first] + window_ms * 1000 <= now)
			first++;
		while (first_held < n && passed[first_held] + longest_us <= now)
			first_held++;
		bool room = (int64_t)(n - first) < count, surely = (int64_t)(n - first_held) < count;
		bool passes = pass_at(slot, &limits, now, &wait);

		over += passes && !room;
		under += !passes && surely;
		if (!passes && exact && now + wait * 1000 < passed[first] + window_ms * 1000)
			waited_too_little++;
		if (passes)
			passed[n++] = now;
	}
	is_int(over, 0, "%s: in no window more than the rate passes (%zu of %d calls)", name, n, calls);
	is_int(under, 0, "%s: whatever has room passes", name);
	is_int(waited_too_little, 0, "%s: the wait is long enough", name);
	ok(n >= (size_t)count, "%s: some passed", name);
}

static void test_running(void)
{
	const struct abx_rate_limits limits = { 0, 0, 2 }, both = { 5, 60000, 1 };
	int32_t slot = new_slot(), other = new_slot();
	int64_t wait;
	int pipe_fds[2], status;
	char byte;

	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_PASSED, "the first of two");
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_PASSED, "the second");
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_TOO_MANY, "not the third");
	abx_rates_leave(rates, slot, getpid());
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_PASSED, "one has left, one may come");
	abx_rates_leave(rates, slot, getpid());
	abx_rates_leave(rates, slot, getpid());
	abx_rates_leave(rates, slot, getpid());
	abx_rates_leave(rates, slot, getpid());
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_PASSED, "leaving too often gives nothing away");
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_PASSED, "two");
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_TOO_MANY, "and no more");
	abx_rates_leave(rates, slot, getpid());
	abx_rates_leave(rates, slot, getpid());

	is_int(abx_rates_enter(rates, other, &both, getpid(), &wait), ABX_RATE_PASSED, "both limits");
	for (int i = 0; i < 10; i++)
		abx_rates_enter(rates, other, &both, getpid(), &wait);
	abx_rates_leave(rates, other, getpid());
	for (int i = 0; i < 4; i++) {
		is_int(abx_rates_enter(rates, other, &both, getpid(), &wait), ABX_RATE_PASSED, "one too many at a time has not counted for the rate");
		abx_rates_leave(rates, other, getpid());
	}
	is_int(abx_rates_enter(rates, other, &both, getpid(), &wait), ABX_RATE_TOO_OFTEN, "now it is too often");
	is_int(abx_rates_enter(rates, other, &(struct abx_rate_limits){ 0, 0, 1 }, getpid(), &wait), ABX_RATE_PASSED, "which does not count as running");
	abx_rates_leave(rates, other, getpid());

	/* A process that dies with calls. */
	if (pipe(pipe_fds) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		abx_rates_enter(rates, slot, &limits, getpid(), &wait);
		abx_rates_enter(rates, slot, &limits, getpid(), &wait);
		_exit(write(pipe_fds[1], "x", 1) == 1 && pause());
	}
	ok(read(pipe_fds[0], &byte, 1) == 1, "another process has two calls running");
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_TOO_MANY, "they count here");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_TOO_MANY, "also when it is dead");
	abx_rates_forget(rates, pid);
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_PASSED, "until that is told");
	abx_rates_leave(rates, slot, getpid());
}

/* A process that dies while it holds the lock of a slot. */
static void test_dead_owner(void)
{
	const struct abx_rate_limits limits = { 1000, 60000, 0 };
	int32_t slot = new_slot();
	int64_t wait;
	pid_t pid = fork();

	if (pid == 0) {
		pthread_mutex_lock(&rates->slots[slot].lock);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_PASSED, "a lock whose owner is dead is taken over");
	is_int(abx_rates_enter(rates, slot, &limits, getpid(), &wait), ABX_RATE_PASSED, "for good");
}

/* Many processes at a time: together no more than the rate. */
static void test_together(void)
{
	const struct abx_rate_limits limits = { 500, 3600000, 0 };
	enum { PROCESSES = 4, CALLS = 400 };
	int32_t slot = new_slot();
	int total = 0, status;

	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0) {
			int passed = 0;
			int64_t wait;

			for (int k = 0; k < CALLS; k++)
				passed += abx_rates_enter(rates, slot, &limits, getpid(), &wait) == ABX_RATE_PASSED;
			_exit(passed > CALLS);
		}
	for (int i = 0; i < PROCESSES; i++)
		wait(&status);
	for (uint32_t i = 0; i < rates->slots[slot].n; i++)
		total++;
	is_int(total, 500, "four processes with 400 calls each: 500 have passed");
	is_int((long long)rates->slots[slot].total, 500, "and were counted");
}

/* Slots that no policy asks for any more are given away when there are no others. */
static void test_full(void)
{
	char name[16];
	int32_t slot = 0;
	bool all = true;

	abx_rates_begin(rates);
	for (int i = 0; i < ABX_RATE_SLOTS; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		all &= abx_rates_slot(rates, "x", name) >= 0;
	}
	ok(all, "as many as there are, though others had been taken before");
	is_int(abx_rates_slot(rates, "x", "one more"), -1, "and no more");
	slot = abx_rates_slot(rates, "x", "f7");
	abx_rates_enter(rates, slot, &(struct abx_rate_limits){ 1, 60000, 1 }, getpid(), &(int64_t){ 0 });
	abx_rates_begin(rates);
	ok(abx_rates_slot(rates, "x", "one more") >= 0, "with the next policy there is room");
	for (int i = 0; i < ABX_RATE_SLOTS - 1; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		slot = abx_rates_slot(rates, "x", name);
		all &= slot >= 0 && abx_rates_enter(rates, slot, &(struct abx_rate_limits){ 1, 60000, 1 }, getpid(), &(int64_t){ 0 }) == ABX_RATE_PASSED;
	}
	ok(all, "and what is given away is empty");
}

int main(void)
{
	rates = map_rates();
	if (!rates) {
		puts("Bail out! no memory");
		return 1;
	}
	test_slots();
	test_window();
	test_changed_limits();
	check_random(10, 1000, 20000, 100000, true, "10/s");
	check_random(1, 1000, 5000, 500000, true, "1/s");
	check_random(4096, 60000, 100000, 10000, true, "4096/min");
	check_random(5000, 60000, 200000, 10000, false, "5000/min");
	check_random(100000, 3600000, 400000, 20000, false, "100000/h");
	test_running();
	test_dead_owner();
	test_together();
	test_full();
	return done_testing();
}
