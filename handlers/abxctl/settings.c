#include "handlers/abxctl/abxctl.h"

#include <string.h>
#include <strings.h>

#define DEFAULT_URL "http://127.0.0.1:9000"

/* curl speaks other protocols as well, and would read files. A path is added at the end, so there can be no query. */
static bool is_base_url(const char *url)
{
	size_t scheme = strncasecmp(url, "http://", 7) == 0 ? 7 : strncasecmp(url, "https://", 8) == 0 ? 8 : 0;

	return scheme && url[scheme] && !strchr("/:@", url[scheme]) && !strpbrk(url, "?#");
}

static int take_url(struct ctl *ctl)
{
	const char *url = getenv("ABX_TEMPLATE_URL");

	if (!url || !*url)
		url = DEFAULT_URL;
	if (!is_base_url(url))
		return ctl_fail(CTL_USAGE, "ABX_TEMPLATE_URL: '%s' is not of the form http://host:port or https://host", url);
	ctl->url = strdup(url);
	if (!ctl->url)
		return ctl_fail(CTL_FAILED, "out of memory");
	for (size_t len = strlen(ctl->url); ctl->url[len - 1] == '/'; len--)
		ctl->url[len - 1] = '\0';
	return CTL_OK;
}

/* The token leaves the environment: others of the same user can read that of a process. */
static int take_token(struct ctl *ctl)
{
	char *token = getenv("ABX_SERVER_TOKEN");

	if (!token || !*token)
		return CTL_OK;
	ctl->token = strdup(token);
	if (!ctl->token)
		return ctl_fail(CTL_FAILED, "out of memory");
	explicit_bzero(token, strlen(token));
	unsetenv("ABX_SERVER_TOKEN");
	for (const char *c = ctl->token; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == ',' || *c == 0x7f)
			return ctl_fail(CTL_USAGE, "ABX_SERVER_TOKEN: a token cannot hold a comma, blank or control character");
	return CTL_OK;
}

int ctl_settings(struct ctl *ctl)
{
	int status = take_token(ctl);

	return status == CTL_OK ? take_url(ctl) : status;
}

void ctl_release(struct ctl *ctl)
{
	if (ctl->token)
		explicit_bzero(ctl->token, strlen(ctl->token));
	free(ctl->token);
	free(ctl->url);
}
