#include "common/clock.h"

#include <stdio.h>
#include <string.h>

#define YEAR_1_SECONDS    (-62135596800)
#define YEAR_9999_SECONDS 253402300799

int64_t abx_clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t abx_clock_ms(void)
{
	return abx_clock_us() / 1000;
}

double abx_clock_real(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static long round_half_even(double x)
{
	long whole = (long)x;
	double rest = x - (double)whole;

	return whole + (rest > 0.5 || (rest == 0.5 && whole % 2));
}

/*
 * Seconds and microseconds as Python arrives at them: os.stat() and time.time() make a double of the time, whose
 * fraction datetime.fromtimestamp() rounds half to even. Cutting the nanoseconds would differ in the last digit.
 */
static time_t split(struct timespec ts, long *ret_us)
{
	double real = (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
	time_t seconds = (time_t)real;
	double fraction = (real - (double)seconds) * 1e6;
	long us = fraction < 0 ? -round_half_even(-fraction) : round_half_even(fraction);

	if (us >= 1000000) {
		us -= 1000000;
		seconds++;
	} else if (us < 0) {
		us += 1000000;
		seconds--;
	}
	*ret_us = us;
	return seconds;
}

void abx_clock_iso(char out[ABX_CLOCK_ISO_SIZE], struct timespec ts)
{
	struct tm tm;
	long us = 0;
	time_t seconds = ts.tv_sec;

	if (seconds < YEAR_1_SECONDS)
		seconds = YEAR_1_SECONDS;
	else if (seconds >= YEAR_9999_SECONDS)
		seconds = YEAR_9999_SECONDS;
	else
		seconds = split(ts, &us);
	gmtime_r(&seconds, &tm);
	/* The remainders tell the compiler how long each part can be. */
	int n = snprintf(out, ABX_CLOCK_ISO_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u", (unsigned)(tm.tm_year + 1900) % 10000,
			 (unsigned)(tm.tm_mon + 1) % 100, (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
			 (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
	if (us)
		n += snprintf(out + n, ABX_CLOCK_ISO_SIZE - (size_t)n, ".%06lu", (unsigned long)us % 1000000);
	memcpy(out + n, "+00:00", sizeof("+00:00"));
}
