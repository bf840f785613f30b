/* Times. A moment is an int64_t; the suffix of the name says the unit. */
#ifndef ABX_CLOCK_H
#define ABX_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Milliseconds and microseconds of CLOCK_MONOTONIC: for durations and deadlines. */
int64_t abx_clock_ms(void);
int64_t abx_clock_us(void);

/* Seconds since 1970 with a fraction, of CLOCK_REALTIME (Python's time.time()). */
double abx_clock_real(void);

/* Room for abx_clock_iso, the NUL included. */
#define ABX_CLOCK_ISO_SIZE 40

/*
 * Write `ts` as Python's datetime.isoformat() does in UTC: "2026-10-12T00:00:00+00:00", with
 * ".123456" before the zone when the microseconds are not zero. Years before 1 or past 9999 are clamped.
 */
void abx_clock_iso(char out[ABX_CLOCK_ISO_SIZE], struct timespec ts);

#endif
