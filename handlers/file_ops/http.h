/* What HTTP says of files: ranges, validators, names (RFC 9110 and 6266). Pure functions. */
#ifndef ABX_FILE_OPS_HTTP_H
#define ABX_FILE_OPS_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/strbuf.h"

enum http_range { HTTP_RANGE_WHOLE, HTTP_RANGE_PART, HTTP_RANGE_UNSATISFIABLE };

/*
 * Read a Range header for a file of `size` bytes. One range of bytes is taken; several, another unit, or what cannot be read means the whole file
 * (RFC 9110, section 14.2). *ret_first and *ret_length are set for HTTP_RANGE_PART.
 */
enum http_range http_range_parse(const char *header, int64_t size, int64_t *ret_first, int64_t *ret_length);

/* Room for http_etag and http_date, the NUL included. */
#define HTTP_ETAG_SIZE 112
#define HTTP_DATE_SIZE 32

/* A strong validator from modification time, size and inode. */
void http_etag(char out[HTTP_ETAG_SIZE], const struct stat *st);

/* "Sun, 06 Nov 1994 08:49:37 GMT". */
void http_date(char out[HTTP_DATE_SIZE], time_t seconds);

/* Whether an If-None-Match header names the tag, weak or strong, or is "*". */
bool http_etag_listed(const char *header, const char *etag);

/* Whether the If-Modified-Since header is a date, and the file is not newer. */
bool http_not_modified_since(const char *header, time_t seconds);

/* Whether an If-Range header (a tag or a date) stands for the file as it is. */
bool http_if_range(const char *header, const char *etag, const char *date);

/* Append a Content-Disposition for a file name of any bytes: `attachment; filename="…"`, and filename* where ASCII cannot say it. */
void http_disposition(const char *name, struct abx_strbuf *out);

#endif
