#include "handlers/file_ops/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/uri.h"
#include "common/utf8.h"

/* ---- ranges */

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* Read digits; what is too large for a file is the largest number. NULL: there are none. */
static const char *read_number(const char *p, int64_t *ret_number)
{
	int64_t number = 0;

	if (*p < '0' || *p > '9')
		return NULL;
	for (; *p >= '0' && *p <= '9'; p++) {
		int digit = *p - '0';

		number = number > (INT64_MAX - digit) / 10 ? INT64_MAX : number * 10 + digit;
	}
	*ret_number = number;
	return p;
}

/* "-N": the last N bytes. */
static enum http_range parse_suffix(const char *p, int64_t size, int64_t *ret_first, int64_t *ret_length)
{
	int64_t n;

	p = read_number(p, &n);
	if (!p || *skip_blanks(p))
		return HTTP_RANGE_WHOLE;
	if (n == 0 || size == 0)
		return HTTP_RANGE_UNSATISFIABLE;
	*ret_length = n < size ? n : size;
	*ret_first = size - *ret_length;
	return HTTP_RANGE_PART;
}

enum http_range http_range_parse(const char *header, int64_t size, int64_t *ret_first, int64_t *ret_length)
{
	int64_t first, last = INT64_MAX;
	const char *p = skip_blanks(header);

	if (strncasecmp(p, "bytes", 5) != 0)
		return HTTP_RANGE_WHOLE;
	p = skip_blanks(p + 5);
	if (*p != '=')
		return HTTP_RANGE_WHOLE;
	p = skip_blanks(p + 1);
	if (*p == '-')
		return parse_suffix(p + 1, size, ret_first, ret_length);
	p = read_number(p, &first);
	if (!p || *p != '-')
		return HTTP_RANGE_WHOLE;
	p++;
	if (*p >= '0' && *p <= '9')
		p = read_number(p, &last);
	if (*skip_blanks(p) || last < first)
		return HTTP_RANGE_WHOLE;
	if (first >= size)
		return HTTP_RANGE_UNSATISFIABLE;
	if (last >= size)
		last = size - 1;
	*ret_first = first;
	*ret_length = last - first + 1;
	return HTTP_RANGE_PART;
}

/* ---- validators */

/* With the time of the last change of any kind: a program may set the time of a modification to what it was. */
void http_etag(char out[HTTP_ETAG_SIZE], const struct stat *st)
{
	snprintf(out, HTTP_ETAG_SIZE, "\"%" PRIx64 ".%lx-%" PRIx64 ".%lx-%" PRIx64 "-%" PRIx64 "\"", (uint64_t)st->st_mtim.tv_sec,
		 (unsigned long)st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec, (unsigned long)st->st_ctim.tv_nsec,
		 (uint64_t)st->st_size, (uint64_t)st->st_ino);
}

/* Years that the format has room for. */
#define DATE_MIN INT64_C(-62167219200)
#define DATE_MAX INT64_C(253402300799)

void http_date(char out[HTTP_DATE_SIZE], time_t seconds)
{
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct tm tm;

	if (seconds < DATE_MIN)
		seconds = DATE_MIN;
	if (seconds > DATE_MAX)
		seconds = DATE_MAX;
	gmtime_r(&seconds, &tm);
	snprintf(out, HTTP_DATE_SIZE, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[tm.tm_wday % 7], (unsigned)tm.tm_mday % 100,
		 months[tm.tm_mon % 12], (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
		 (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
}

bool http_etag_listed(const char *header, const char *etag)
{
	size_t len = strlen(etag);
	const char *p = skip_blanks(header);

	if (*p == '*')
		return !*skip_blanks(p + 1);
	while (*p) {
		const char *end;

		p += strspn(p, ", \t");
		if (strncmp(p, "W/", 2) == 0)
			p += 2;
		if (*p != '"')
			return false;
		end = strchr(p + 1, '"');
		if (!end)
			return false;
		if ((size_t)(end + 1 - p) == len && memcmp(p, etag, len) == 0)
			return true;
		p = skip_blanks(end + 1);
		if (*p && *p != ',')
			return false;
	}
	return false;
}

bool http_not_modified_since(const char *header, time_t seconds)
{
	struct tm tm = { 0 };
	const char *end = strptime(skip_blanks(header), "%a, %d %b %Y %H:%M:%S GMT", &tm);

	return end && !*skip_blanks(end) && seconds <= timegm(&tm);
}

bool http_if_range(const char *header, const char *etag, const char *date)
{
	const char *p = skip_blanks(header);
	size_t len = strlen(p);

	while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t'))
		len--;
	/* A weak tag never matches: bytes of two versions must not be put together. */
	return (len == strlen(etag) && memcmp(p, etag, len) == 0) || (len == strlen(date) && memcmp(p, date, len) == 0);
}

/* ---- names */

/* Whether a quoted string can say it so that every client reads the same: some take escapes, some percent signs, for what they stand for. */
static bool is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '%';
}

void http_disposition(const char *name, struct abx_strbuf *out)
{
	bool plain = true;

	abx_strbuf_adds(out, "attachment; filename=\"");
	for (const char *p = name; *p; p++) {
		unsigned char c = (unsigned char)*p;

		/* The bytes after the first of a UTF-8 character add nothing. */
		if ((c & 0xc0) == 0x80 && p > name)
			continue;
		abx_strbuf_addc(out, is_plain(c) ? *p : '_');
		plain &= is_plain(c);
	}
	abx_strbuf_addc(out, '"');
	if (!plain) {
		abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;

		abx_utf8_lossy(name, strlen(name), &text);
		abx_strbuf_adds(out, "; filename*=UTF-8''");
		abx_uri_encode(text.buf, text.len, false, out);
		out->failed |= text.failed;
	}
}
