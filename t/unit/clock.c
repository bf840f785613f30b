#include "common/clock.h"

#include <stdlib.h>
#include <string.h>

#include "common/auto.h"
#include "t/tap.h"

/* Made with Python 3.11: datetime.fromtimestamp(s + 1e-9 * ns, tz=timezone.utc).isoformat(). */
static const struct {
	struct timespec ts;
	const char *iso;
} table[] = {
	{ { 0, 0 }, "1970-01-01T00:00:00+00:00" },
	{ { 1760227200, 0 }, "2025-10-12T00:00:00+00:00" },
	{ { 0, 123456000 }, "1970-01-01T00:00:00.123456+00:00" },
	{ { 0, 123456789 }, "1970-01-01T00:00:00.123457+00:00" },
	{ { 1, 999999999 }, "1970-01-01T00:00:02+00:00" },
	{ { 1700000000, 123456000 }, "2023-11-14T22:13:20.123456+00:00" },
	{ { 1700000000, 1000 }, "2023-11-14T22:13:20.000001+00:00" },
	{ { 1700000000, 500 }, "2023-11-14T22:13:20+00:00" },
	{ { 1700000000, 999999900 }, "2023-11-14T22:13:21+00:00" },
	{ { 951782400, 0 }, "2000-02-29T00:00:00+00:00" },
	{ { 951868800, 5000 }, "2000-03-01T00:00:00.000005+00:00" },
	{ { 4102444799, 0 }, "2099-12-31T23:59:59+00:00" },
	{ { -1, 0 }, "1969-12-31T23:59:59+00:00" },
	{ { -1, 500000000 }, "1969-12-31T23:59:59.500000+00:00" },
	{ { -86400, 1000 }, "1969-12-31T00:00:00.000001+00:00" },
	{ { -62135596800, 0 }, "0001-01-01T00:00:00+00:00" },
	{ { 253402300799, 0 }, "9999-12-31T23:59:59+00:00" },
	{ { 10000000000, 7000 }, "2286-11-20T17:46:40.000008+00:00" },
	{ { 1234567890, 987654321 }, "2009-02-13T23:31:30.987654+00:00" },
	{ { 0, 1500 }, "1970-01-01T00:00:00.000002+00:00" },
	{ { 0, 2500 }, "1970-01-01T00:00:00.000002+00:00" },
	{ { 1000, 7812500 }, "1970-01-01T00:16:40.007812+00:00" },
	{ { -1, 500 }, "1969-12-31T23:59:59+00:00" },
	{ { -1, 2500 }, "1969-12-31T23:59:59.000002+00:00" },
	{ { 2147483648, 250000000 }, "2038-01-19T03:14:08.250000+00:00" },
};

static void check_iso(struct timespec ts, const char *want)
{
	char iso[ABX_CLOCK_ISO_SIZE + 1];

	memset(iso, '#', sizeof(iso));
	abx_clock_iso(iso, ts);
	is_str(iso, want, "%lld.%09ld", (long long)ts.tv_sec, ts.tv_nsec);
	is_int(iso[ABX_CLOCK_ISO_SIZE], '#', "and nothing past the buffer");
}

static void test_iso(void)
{
	/* The zone of the process must not matter. */
	setenv("TZ", "America/New_York", 1);
	tzset();
	for (size_t i = 0; i < ABX_N(table); i++)
		check_iso(table[i].ts, table[i].iso);
	check_iso((struct timespec){ 253402300799, 999999999 }, "9999-12-31T23:59:59+00:00");
	check_iso((struct timespec){ 253402300800, 1000 }, "9999-12-31T23:59:59+00:00");
	check_iso((struct timespec){ INT64_MAX, 999999999 }, "9999-12-31T23:59:59+00:00");
	check_iso((struct timespec){ -62135596801, 5000 }, "0001-01-01T00:00:00+00:00");
	check_iso((struct timespec){ INT64_MIN, 0 }, "0001-01-01T00:00:00+00:00");
}

static void test_moving(void)
{
	int64_t us = abx_clock_us(), ms = abx_clock_ms();
	struct timespec before, after, mono;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	ok(us <= abx_clock_us() && ms <= abx_clock_ms(), "the monotonic clock does not go back");
	ok(us / 1000 <= ms && ms <= (int64_t)mono.tv_sec * 1000 + mono.tv_nsec / 1000000,
	   "milliseconds and microseconds are of one clock");
	clock_gettime(CLOCK_REALTIME, &before);
	double real = abx_clock_real();
	clock_gettime(CLOCK_REALTIME, &after);
	/* A double holds today's time to a quarter of a microsecond. */
	ok(real >= (double)before.tv_sec + 1e-9 * (double)before.tv_nsec - 1e-6 &&
		   real <= (double)after.tv_sec + 1e-9 * (double)after.tv_nsec + 1e-6,
	   "the real time lies between two readings of it");
}

int main(void)
{
	test_iso();
	test_moving();
	return done_testing();
}
