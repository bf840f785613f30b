#include "policy/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auto.h"
#include "common/glob.h"

void abx_url_release(struct abx_url *url)
{
	free(url->scheme);
	free(url->host);
	free(url->path);
	free(url->decoded);
	free(url->full);
	free(url->full_decoded);
	*url = (struct abx_url){ .scheme = NULL };
}

static void lower(char *text)
{
	for (; *text; text++)
		*text = (char)tolower((unsigned char)*text);
}

/* ---- the host */

/* Browsers take more spellings of an IPv4 address than the four decimal numbers: what ends in a number must be just these. */
static const char *parse_name(struct abx_url *url)
{
	size_t len = strlen(url->host);
	const char *last;

	if (len > 1 && url->host[len - 1] == '.')
		url->host[--len] = '\0';
	if (!len || len > 253 || url->host[0] == '.' || strstr(url->host, ".."))
		return "has no valid host";
	if (url->host[strspn(url->host, "abcdefghijklmnopqrstuvwxyz0123456789-._")])
		return "has a host with characters that no name has; write other alphabets in the form xn--…";
	last = strrchr(url->host, '.');
	last = last ? last + 1 : url->host;
	if (!last[strspn(last, "0123456789")] || strncmp(last, "0x", 2) == 0) {
		char canonical[INET_ADDRSTRLEN];

		if (inet_pton(AF_INET, url->host, url->address) != 1 ||
		    !inet_ntop(AF_INET, url->address, canonical, sizeof(canonical)) || strcmp(canonical, url->host) != 0)
			return "has an IPv4 address that is not four decimal numbers";
		url->is_address = true;
	}
	return NULL;
}

static const char *parse_v6(struct abx_url *url)
{
	char canonical[INET6_ADDRSTRLEN];

	if (inet_pton(AF_INET6, url->host, url->address) != 1 || !inet_ntop(AF_INET6, url->address, canonical, sizeof(canonical)))
		return "has no valid IPv6 address";
	url->is_address = url->is_v6 = true;
	free(url->host);
	url->host = strdup(canonical);
	return url->host ? NULL : "cannot be kept";
}

static const char *parse_port(struct abx_url *url, const char *port, size_t len)
{
	const char *standard = strcmp(url->scheme, "https") == 0 ? "443" : "80";
	long number;

	if (!len) {
		snprintf(url->port, sizeof(url->port), "%s", standard);
	} else {
		number = len <= 5 && strspn(port, "0123456789") >= len ? strtol(port, NULL, 10) : -1;
		if (number < 0 || number > 65535)
			return "has no valid port";
		snprintf(url->port, sizeof(url->port), "%ld", number);
	}
	url->default_port = strcmp(url->port, standard) == 0;
	return NULL;
}

static const char *parse_authority(struct abx_url *url, const char *p, size_t len)
{
	const char *end = p + len, *host_end, *wrong;
	bool bracket = len > 0 && *p == '[';

	if (memchr(p, '@', len))
		return "holds a user name";
	host_end = bracket ? memchr(p, ']', len) : memchr(p, ':', len);
	if (!host_end && bracket)
		return "has no valid IPv6 address";
	if (!host_end)
		host_end = end;
	url->host = strndup(p + bracket, (size_t)(host_end - p) - bracket);
	if (!url->host)
		return "cannot be kept";
	lower(url->host);
	wrong = bracket ? parse_v6(url) : parse_name(url);
	if (wrong)
		return wrong;
	p = host_end + bracket;
	if (p < end && *p != ':')
		return "has no valid port";
	return p < end ? parse_port(url, p + 1, (size_t)(end - p - 1)) : parse_port(url, p, 0);
}

/* ---- the path */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode what is percent-encoded: all of it, or only the dots, which browsers take for dots. In place. */
static void decode(char *text, bool all)
{
	char *out = text;

	for (; *text; out++) {
		int c = -1;

		if (text[0] == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0)
			c = hex(text[1]) << 4 | hex(text[2]);
		if (c > 0 && (all || c == '.')) {
			*out = (char)c;
			text += 3;
		} else {
			*out = *text++;
		}
	}
	*out = '\0';
}

/* Take "." and ".." out (RFC 3986, section 5.2.4). In place. */
static void remove_dots(char *path)
{
	char *out = path;

	for (char *p = path; *p;) {
		size_t len = strcspn(p + 1, "/");
		bool last = !p[1 + len], dot = len == 1 && p[1] == '.', dots = len == 2 && p[1] == '.' && p[2] == '.';

		if (dots)
			while (out > path && *--out != '/')
				;
		if ((dot || dots) && last)
			*out++ = '/';
		if (!dot && !dots) {
			memmove(out, p, len + 1);
			out += len + 1;
		}
		p += len + 1;
	}
	*out = '\0';
}

static const char *parse_path(struct abx_url *url, const char *p)
{
	size_t len = strcspn(p, "?#"), query = p[len] == '?' ? strcspn(p + len, "#") : 0;

	if (asprintf(&url->path, "%s%.*s", len ? "" : "/", (int)len, p) < 0) {
		url->path = NULL;
		return "cannot be kept";
	}
	decode(url->path, false);
	remove_dots(url->path);
	url->decoded = strdup(url->path);
	if (!url->decoded)
		return "cannot be kept";
	decode(url->decoded, true);
	remove_dots(url->decoded);
	if (asprintf(&url->full, "%s%.*s", url->path, (int)query, p + len) < 0) {
		url->full = NULL;
		return "cannot be kept";
	}
	if (asprintf(&url->full_decoded, "%s%.*s", url->decoded, (int)query, p + len) < 0) {
		url->full_decoded = NULL;
		return "cannot be kept";
	}
	return NULL;
}

static const char *parse(const char *text, struct abx_url *url)
{
	size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), authority;
	const char *wrong;

	if (strlen(text) > 65536)
		return "is too long";
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\')
			return "holds a blank, backslash or control character";
	if (strncmp(text + scheme, "://", 3) != 0)
		return "does not begin with http:// or https://";
	url->scheme = strndup(text, scheme);
	if (!url->scheme)
		return "cannot be kept";
	lower(url->scheme);
	if (strcmp(url->scheme, "http") != 0 && strcmp(url->scheme, "https") != 0)
		return "does not begin with http:// or https://";
	text += scheme + 3;
	authority = strcspn(text, "/?#");
	wrong = parse_authority(url, text, authority);
	return wrong ? wrong : parse_path(url, text + authority);
}

const char *abx_url_parse(const char *text, struct abx_url *ret_url)
{
	struct abx_url url = { .scheme = NULL };
	const char *wrong = parse(text, &url);

	if (wrong) {
		abx_url_release(&url);
		return wrong;
	}
	*ret_url = url;
	return NULL;
}

/* ---- globs */

struct glob {
	char *text;
	const char *scheme, *host, *port, *path; /* port and path: NULL where there is none */
};

static void glob_release(struct glob *glob)
{
	free(glob->text);
}

static const char *glob_split(const char *text, struct glob *glob)
{
	char *p, *colon;

	glob->text = strdup(text);
	if (!glob->text)
		return "cannot be kept";
	p = strstr(glob->text, "://");
	if (!p)
		return "is not a URL glob: write scheme://host/path";
	*p = '\0';
	glob->scheme = glob->text;
	p += 3;
	glob->host = p;
	p = *p == '[' ? strchr(p, ']') : p;
	if (!p)
		return "has a '[' in its host that nothing closes";
	colon = p + strcspn(p, ":/");
	p = colon + strcspn(colon, "/");
	if (*p) {
		/* The slash belongs to the path, so the host ends by moving it on a place. */
		glob->path = text + (p - glob->text);
		*p = '\0';
	}
	if (*colon == ':') {
		*colon = '\0';
		glob->port = colon + 1;
	}
	return NULL;
}

/* "[::1]" at the beginning of a host is an address and no set. */
static bool bracketed_address(const char *host, unsigned char address[16])
{
	size_t len = strlen(host);
	char text[INET6_ADDRSTRLEN];

	if (len < 2 || host[len - 1] != ']' || len - 2 >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(len - 2), host + 1);
	return inet_pton(AF_INET6, text, address) == 1;
}

const char *abx_url_glob_check(const char *text)
{
	__attribute__((cleanup(glob_release))) struct glob glob = { .text = NULL };
	const char *wrong = glob_split(text, &glob);
	unsigned char address[16];

	if (wrong)
		return wrong;
	if (!abx_glob_match_nocase(glob.scheme, "http") && !abx_glob_match_nocase(glob.scheme, "https"))
		return "can match neither http:// nor https://";
	if (!*glob.host)
		return "has no host";
	if (strpbrk(glob.host, "@#\\") || (*glob.host == '[' && !bracketed_address(glob.host, address)))
		return "has a host that no URL has";
	if (glob.port && (!*glob.port || glob.port[strspn(glob.port, "0123456789*?")]))
		return "has no valid port";
	return NULL;
}

static bool host_matches(const char *glob, const struct abx_url *url)
{
	unsigned char address[16];

	if (*glob == '[')
		return url->is_v6 && bracketed_address(glob, address) && memcmp(address, url->address, sizeof(address)) == 0;
	return url->is_v6 ? strcmp(glob, "*") == 0 : abx_glob_match_nocase(glob, url->host);
}

bool abx_url_glob_allows(const char *text, const struct abx_url *url)
{
	__attribute__((cleanup(glob_release))) struct glob glob = { .text = NULL };

	if (glob_split(text, &glob) || !abx_glob_match_nocase(glob.scheme, url->scheme) || !host_matches(glob.host, url))
		return false;
	if (glob.port ? !abx_glob_match(glob.port, url->port) : !url->default_port)
		return false;
	/* The server may decode the path, or may not: both readings have to be allowed. */
	return !glob.path || (abx_glob_match(glob.path, url->path) && abx_glob_match(glob.path, url->decoded)) ||
	       (abx_glob_match(glob.path, url->full) && abx_glob_match(glob.path, url->full_decoded));
}

bool abx_url_glob_denies(const char *text, const struct abx_url *url)
{
	__attribute__((cleanup(glob_release))) struct glob glob = { .text = NULL };

	if (glob_split(text, &glob) || !abx_glob_match_nocase(glob.scheme, url->scheme) || !host_matches(glob.host, url))
		return false;
	if (glob.port && !abx_glob_match(glob.port, url->port))
		return false;
	return !glob.path || abx_glob_match(glob.path, url->path) || abx_glob_match(glob.path, url->decoded) ||
	       abx_glob_match(glob.path, url->full) || abx_glob_match(glob.path, url->full_decoded);
}

/* ---- addresses */

static const struct {
	unsigned char address[4], bits;
} private_v4[] = {
	{ { 0, 0, 0, 0 }, 8 },	   { { 10, 0, 0, 0 }, 8 },    { { 100, 64, 0, 0 }, 10 }, { { 127, 0, 0, 0 }, 8 },
	{ { 169, 254, 0, 0 }, 16 }, { { 172, 16, 0, 0 }, 12 }, { { 192, 0, 0, 0 }, 24 },  { { 192, 0, 2, 0 }, 24 },
	{ { 192, 168, 0, 0 }, 16 }, { { 198, 18, 0, 0 }, 15 }, { { 198, 51, 100, 0 }, 24 }, { { 203, 0, 113, 0 }, 24 },
	{ { 224, 0, 0, 0 }, 3 },
};

static bool has_prefix(const unsigned char *address, const unsigned char *prefix, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	return memcmp(address, prefix, bytes) == 0 && (!rest || (address[bytes] ^ prefix[bytes]) >> (8 - rest) == 0);
}

static bool is_private_v4(const unsigned char *address)
{
	for (size_t i = 0; i < ABX_N(private_v4); i++)
		if (has_prefix(address, private_v4[i].address, private_v4[i].bits))
			return true;
	return false;
}

bool abx_address_is_private(const unsigned char *address, bool is_v6)
{
	static const unsigned char zero[16], mapped[16] = { [10] = 0xff, [11] = 0xff }, nat64[16] = { 0x00, 0x64, 0xff, 0x9b };
	static const unsigned char global[16] = { 0x20 }, six_to_four[16] = { 0x20, 0x02 }, teredo[16] = { 0x20, 0x01 };
	static const unsigned char documentation[16] = { 0x20, 0x01, 0x0d, 0xb8 };

	if (!is_v6)
		return is_private_v4(address);
	if (has_prefix(address, mapped, 96) || has_prefix(address, nat64, 96))
		return is_private_v4(address + 12);
	if (has_prefix(address, six_to_four, 16))
		return is_private_v4(address + 2);
	/* All that is public lies in 2000::/3. */
	return has_prefix(address, zero, 96) || !has_prefix(address, global, 3) || has_prefix(address, teredo, 32) ||
	       has_prefix(address, documentation, 32);
}

bool abx_url_is_private(const struct abx_url *url)
{
	size_t len = strlen(url->host);

	if (url->is_address)
		return abx_address_is_private(url->address, url->is_v6);
	return strcmp(url->host, "localhost") == 0 || (len > 10 && strcmp(url->host + len - 10, ".localhost") == 0);
}
