/* What the two files that know of libcurl share. */
#ifndef ABXCTL_HTTP_CURL_H
#define ABXCTL_HTTP_CURL_H

#include <curl/curl.h>

#include "handlers/abxctl/abxctl.h"

/* The settings of every connection: URL, proxy, certificates, time to connect. `message` has room for CURL_ERROR_SIZE bytes. */
CURLcode http_curl_prepare(CURL *curl, const char *url, char *message);

/* Say why there is no connection. Returns the exit status. */
int http_curl_explain(const struct ctl *ctl, CURL *curl, CURLcode rc, const char *message, struct abx_err *err);

#endif
