/*
 * A small harness for tests in C that speak TAP (run them under prove). A program calls checks and
 * ends with `return done_testing();`. Where a check fails both values are printed.
 */
#ifndef T_TAP_H
#define T_TAP_H

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TAP_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

static struct {
	int run, failed;
} tap;

/* Print the result of one check. Returns `passed`. */
static inline bool TAP_PRINTF(2, 0) tap_result(bool passed, const char *fmt, va_list ap)
{
	printf("%sok %d - ", passed ? "" : "not ", ++tap.run);
	vprintf(fmt, ap);
	putchar('\n');
	tap.failed += !passed;
	fflush(stdout);
	return passed;
}

/* A remark that is seen under prove -v. */
static inline void TAP_PRINTF(1, 2) note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("# ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

static inline bool TAP_PRINTF(2, 3) ok(bool passed, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_result(passed, fmt, ap);
	va_end(ap);
	return passed;
}

static inline bool TAP_PRINTF(3, 4) is_int(long long got, long long want, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!tap_result(got == want, fmt, ap))
		fprintf(stderr, "#  got: %lld\n# want: %lld\n", got, want);
	va_end(ap);
	return got == want;
}

static inline void tap_print_bytes(const char *label, const char *bytes, size_t len)
{
	fprintf(stderr, "# %s: %zu bytes: ", label, len);
	for (size_t i = 0; i < len && i < 400; i++)
		if (isprint((unsigned char)bytes[i]) && bytes[i] != '\\')
			fputc(bytes[i], stderr);
		else
			fprintf(stderr, "\\x%02x", (unsigned char)bytes[i]);
	fprintf(stderr, "%s\n", len > 400 ? " …" : "");
}

static inline bool TAP_PRINTF(5, 6)
	is_mem(const void *got, size_t got_len, const void *want, size_t want_len, const char *fmt, ...)
{
	bool same = got_len == want_len && (got_len == 0 || memcmp(got, want, got_len) == 0);
	va_list ap;

	va_start(ap, fmt);
	if (!tap_result(same, fmt, ap)) {
		tap_print_bytes(" got", got, got_len);
		tap_print_bytes("want", want, want_len);
	}
	va_end(ap);
	return same;
}

/* Compare strings; either may be NULL. */
static inline bool TAP_PRINTF(3, 4) is_str(const char *got, const char *want, const char *fmt, ...)
{
	bool same = got && want ? strcmp(got, want) == 0 : got == want;
	va_list ap;

	va_start(ap, fmt);
	if (!tap_result(same, fmt, ap))
		fprintf(stderr, "#  got: %s\n# want: %s\n", got ? got : "(null)", want ? want : "(null)");
	va_end(ap);
	return same;
}

/* Count one check as skipped, with the reason. */
static inline void TAP_PRINTF(1, 2) skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("ok %d # SKIP ", ++tap.run);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout);
}

/* End the test: prints the plan, returns main's exit status. No check at all is a failure. */
static inline int done_testing(void)
{
	printf("1..%d\n", tap.run);
	return tap.failed || tap.run == 0;
}

#endif
