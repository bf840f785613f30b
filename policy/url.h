/*
 * URLs in their parts, and globs over them.
 *
 * A URL glob is scheme://host[:port][/path], each part a glob of its own, so that a star in the host crosses none of / ? # @ and the colon. A glob without
 * a path covers all paths. Without a port it allows the scheme's own, and denies every one.
 */
#ifndef ABX_URL_H
#define ABX_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* A URL whose every part is beyond doubt. */
struct abx_url {
	char *scheme; /* "http" or "https" */
	char *host;   /* lower case, without a dot at the end; an IPv6 address without its brackets, in its shortest form */
	bool is_address, is_v6;
	unsigned char address[16]; /* 4 or 16 bytes, network order */
	char port[6]; /* never empty */
	bool default_port;
	char *path;    /* from the slash on, dot segments taken out */
	char *decoded; /* the same, percent-encoding decoded */
	char *full, *full_decoded; /* path and query; the query as it was written */
};

/* Take a URL apart. NULL: done, and the caller releases *ret_url; else what is wrong with it. */
const char *abx_url_parse(const char *text, struct abx_url *ret_url);
void abx_url_release(struct abx_url *url);

/* What is wrong with a glob, or NULL. */
const char *abx_url_glob_check(const char *glob);

bool abx_url_glob_allows(const char *glob, const struct abx_url *url);
bool abx_url_glob_denies(const char *glob, const struct abx_url *url);

/* Whether an address (4 or 16 bytes) is none of the public Internet's: loopback, private, link-local, multicast, reserved, or such a one in IPv6 clothes. */
bool abx_address_is_private(const unsigned char *address, bool is_v6);

/* Whether the host is such an address, or a name of this machine. */
bool abx_url_is_private(const struct abx_url *url);

#endif
