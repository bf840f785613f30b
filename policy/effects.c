/* Which keys can do something on which endpoints. */
#include <string.h>

#include "policy/document.h"

static const struct {
	enum abx_key key;
	const char *name;
} names[] = {
	{ ABX_KEY_ENABLED, "enabled" },
	{ ABX_KEY_SCOPES, "scopes" },
	{ ABX_KEY_PATHS, "paths" },
	{ ABX_KEY_COMMANDS, "commands" },
	{ ABX_KEY_OVERWRITE, "overwrite" },
	{ ABX_KEY_LANGUAGES, "languages" },
	{ ABX_KEY_CONFINE, "confine" },
	{ ABX_KEY_TIMEOUT, "limits.timeout_seconds" },
	{ ABX_KEY_MAX_OUTPUT, "limits.max_output_bytes" },
	{ ABX_KEY_MAX_BYTES, "limits.max_bytes" },
	{ ABX_KEY_MAX_FILES, "limits.max_files" },
	{ ABX_KEY_MAX_DEPTH, "limits.max_depth" },
	{ ABX_KEY_MAX_DURATION, "limits.max_duration_seconds" },
	{ ABX_KEY_RATE, "limits.rate" },
	{ ABX_KEY_CONCURRENT, "limits.max_concurrent" },
};

/* Keys that work on a few endpoints which nothing else tells apart. */
static const struct {
	unsigned keys;
	const char *endpoint;
} works_on[] = {
	{ ABX_KEY_COMMANDS | ABX_KEY_CONFINE, "shell" },
	{ ABX_KEY_COMMANDS | ABX_KEY_CONFINE, "shell_stream" },
	{ ABX_KEY_COMMANDS | ABX_KEY_CONFINE, "process_start" },
	{ ABX_KEY_CONFINE | ABX_KEY_LANGUAGES | ABX_KEY_PATHS, "code_run" },
	{ ABX_KEY_CONFINE, "commands_run" },
	{ ABX_KEY_EXTENSIONS | ABX_KEY_OVERWRITE, "upload" },
	{ ABX_KEY_EXTENSIONS | ABX_KEY_OVERWRITE, "upload_stream" },
	{ ABX_KEY_VARIABLES, "env_get" },
	{ ABX_KEY_VARIABLES, "env_set" },
	{ ABX_KEY_URLS, "browser_navigate" },
	{ ABX_KEY_MAX_DURATION, "files_watch" },
};

/*
 * Keys that nothing enforces yet: a document that uses one is refused, because its owner would believe that it holds. Whoever builds what enforces a key
 * takes its line away. An endpoint that is not implemented at all (ABX_EP_PLANNED) refuses every call, so there a key cannot hold less than it says.
 */
static const struct {
	unsigned keys;
	const char *endpoint; /* NULL: all */
} unfinished[] = {
	{ ABX_KEY_CONFINE, "pty_create" },
	{ ABX_KEY_URLS, NULL },
	{ ABX_KEY_RATE | ABX_KEY_CONCURRENT, "pty_connect" },
};

/* Keys that the gate sees to, whatever the endpoint does. */
#define GATE_KEYS (ABX_KEY_ENABLED | ABX_KEY_SCOPES | ABX_KEY_RATE | ABX_KEY_CONCURRENT)

const char *abx_key_name(enum abx_key key)
{
	for (size_t i = 0; i < ABX_N(names); i++)
		if (names[i].key == key)
			return names[i].name;
	return NULL;
}

static bool has_arg(const struct abx_endpoint *endpoint, enum abx_arg_type type)
{
	for (size_t i = 0; i < endpoint->n_args; i++)
		if (endpoint->args[i].type == type)
			return true;
	return false;
}

/* The keys that can do something on the endpoint. */
static unsigned working_keys(const struct abx_endpoint *endpoint)
{
	const struct abx_limits *limits = &endpoint->limits;
	unsigned keys = ABX_KEY_ENABLED;

	if (!(endpoint->flags & ABX_EP_PUBLIC))
		keys |= endpoint->flags & ABX_EP_OPEN ? GATE_KEYS & ~(unsigned)ABX_KEY_SCOPES : GATE_KEYS;
	if (has_arg(endpoint, ABX_ARG_PATH) || has_arg(endpoint, ABX_ARG_PATHS))
		keys |= ABX_KEY_PATHS;
	if (limits->timeout_seconds || has_arg(endpoint, ABX_ARG_TIMEOUT))
		keys |= ABX_KEY_TIMEOUT;
	keys |= limits->max_output_bytes ? ABX_KEY_MAX_OUTPUT : 0;
	keys |= limits->max_bytes ? ABX_KEY_MAX_BYTES : 0;
	keys |= limits->max_files ? ABX_KEY_MAX_FILES : 0;
	keys |= limits->max_depth ? ABX_KEY_MAX_DEPTH : 0;
	for (size_t i = 0; i < ABX_N(works_on); i++)
		if (strcmp(works_on[i].endpoint, endpoint->id) == 0)
			keys |= works_on[i].keys;
	return keys;
}

enum abx_key_effect abx_key_effect(const struct abx_endpoint *endpoint, enum abx_key key)
{
	if (!(working_keys(endpoint) & key))
		return ABX_KEY_IDLE;
	if ((endpoint->flags & ABX_EP_PLANNED) && !(key & GATE_KEYS))
		return ABX_KEY_LATER;
	for (size_t i = 0; i < ABX_N(unfinished); i++)
		if ((unfinished[i].keys & key) && (!unfinished[i].endpoint || strcmp(unfinished[i].endpoint, endpoint->id) == 0))
			return ABX_KEY_UNFINISHED;
	return ABX_KEY_WORKS;
}
