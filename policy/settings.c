#include "policy/settings.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "policy/digest.h"

static const char *env_find(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

/* The value, or NULL when it is unset or empty: an empty setting means the default everywhere. */
static const char *setting(char *const *env, const char *name)
{
	const char *value = env_find(env, name);

	return value && *value ? value : NULL;
}

static int copy(char **ret, const char *value, struct abx_err *err)
{
	*ret = strdup(value);
	return *ret ? 0 : abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

static int load_string(char *const *env, const char *name, const char *fallback, char **ret, struct abx_err *err)
{
	const char *value = setting(env, name);

	if (!value)
		value = fallback;
	return value ? copy(ret, value, err) : 0;
}

static int load_number(char *const *env, const char *name, int64_t min, int64_t max, int64_t *number,
		       struct abx_err *err)
{
	const char *value = setting(env, name);
	char *end;
	long long parsed;

	if (!value)
		return 0;
	errno = 0;
	parsed = strtoll(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end || errno || parsed < min || parsed > max)
		return abx_err_set(err, ABX_E_VALUE, "%s: '%s' is not a whole number from %lld to %lld", name, value,
				   (long long)min, (long long)max);
	*number = parsed;
	return 0;
}

static int load_port(char *const *env, const char *name, int fallback, int *ret_port, struct abx_err *err)
{
	int64_t number = fallback;

	if (load_number(env, name, 1, 65535, &number, err) < 0)
		return -1;
	*ret_port = (int)number;
	return 0;
}

/* An IPv4 or IPv6 address, or a host name: it ends up in the web server's configuration, so nothing else may pass. */
static int load_host(char *const *env, struct abx_settings *s, struct abx_err *err)
{
	struct in6_addr address;

	if (load_string(env, "ABX_SERVER_HOST", "0.0.0.0", &s->host, err) < 0)
		return -1;
	if (inet_pton(AF_INET6, s->host, &address) == 1)
		return 0;
	for (const char *p = s->host; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '.' && *p != '-')
			return abx_err_set(err, ABX_E_VALUE, "ABX_SERVER_HOST: '%s' is not an address or host name",
					   s->host);
	return 0;
}

/* What a header could not carry, or would carry as two. */
static bool is_token(const char *token)
{
	for (; *token; token++)
		if ((unsigned char)*token <= ' ' || *token == ',' || *token == 0x7f)
			return false;
	return true;
}

static int load_token(char *const *env, struct abx_settings *s, struct abx_err *err)
{
	const char *token = setting(env, "ABX_SERVER_TOKEN");

	if (!token)
		return 0;
	if (!is_token(token))
		return abx_err_set(err, ABX_E_VALUE,
				   "ABX_SERVER_TOKEN: a token cannot hold a comma, blank or control character");
	return copy(&s->token, token, err);
}

/* A path stays what it means now, wherever the server goes. */
static int load_policy(char *const *env, struct abx_settings *s, struct abx_err *err)
{
	const char *value = setting(env, "ABX_SERVER_POLICY");
	abx_auto_free char *cwd = NULL;

	if (!value || *value == '{' || *value == '/')
		return value ? copy(&s->policy, value, err) : 0;
	cwd = getcwd(NULL, 0);
	if (!cwd || asprintf(&s->policy, "%s/%s", cwd, value) < 0) {
		s->policy = NULL;
		return abx_err_errno(err, errno, "ABX_SERVER_POLICY: '%s'", value);
	}
	return 0;
}

static int add_group(struct abx_settings *s, const char *name, size_t len, struct abx_err *err)
{
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		if (strlen(abx_groups[g].name) == len && memcmp(abx_groups[g].name, name, len) == 0) {
			s->groups[g] = true;
			return 0;
		}
	return abx_err_set(err, ABX_E_VALUE,
			   "ABX_SERVER_ENABLED_GROUPS: unknown group '%.*s'; the groups are core, commands, file_ops, "
			   "process, terminal, system, dev_tools, browser, agents",
			   (int)len, name);
}

static int load_groups(char *const *env, struct abx_settings *s, struct abx_err *err)
{
	const char *p = setting(env, "ABX_SERVER_ENABLED_GROUPS");

	while (p && *p) {
		size_t len;

		p += strspn(p, ", \t");
		len = strcspn(p, ", \t");
		if (len && add_group(s, p, len, err) < 0)
			return -1;
		p += len;
	}
	return 0;
}

static int load_directory(char *const *env, const char *name, const char *fallback, char **ret, struct abx_err *err)
{
	if (load_string(env, name, fallback, ret, err) < 0)
		return -1;
	if (!*ret)
		return 0;
	if (**ret != '/')
		return abx_err_set(err, ABX_E_VALUE, "%s: '%s' is not an absolute path", name, *ret);
	/* It goes into the web server's configuration between quotes. */
	if (strpbrk(*ret, "\"\\\n\r"))
		return abx_err_set(err, ABX_E_VALUE, "%s: a path cannot hold a quote, backslash or line break", name);
	return 0;
}

static int load_mount_prefix(char *const *env, struct abx_settings *s, struct abx_err *err)
{
	size_t len;

	if (load_string(env, "ABX_MOUNT_PREFIX", "", &s->mount_prefix, err) < 0)
		return -1;
	len = strlen(s->mount_prefix);
	if (len && s->mount_prefix[len - 1] == '/')
		s->mount_prefix[--len] = '\0';
	if (len && s->mount_prefix[0] != '/')
		return abx_err_set(err, ABX_E_VALUE, "ABX_MOUNT_PREFIX: '%s' does not begin with '/'", s->mount_prefix);
	for (const char *p = s->mount_prefix; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("/_-", *p))
			return abx_err_set(err, ABX_E_VALUE,
					   "ABX_MOUNT_PREFIX: only letters, digits, '_', '-' and '/' are allowed");
	return 0;
}

/* Whether the text is a web origin as a browser writes it: scheme://host, with a port or without, and nothing more. */
static bool is_origin(const char *text, size_t len)
{
	const char *colon = memchr(text, ':', len), *host;

	if ((len == 1 && *text == '*') || (len == 4 && memcmp(text, "null", 4) == 0))
		return true;
	if (!colon || colon == text || (size_t)(colon - text) + 3 >= len || memcmp(colon, "://", 3) != 0)
		return false;
	host = colon + 3;
	for (const char *p = text; p < colon; p++)
		if (!isalnum((unsigned char)*p) && !strchr("+-.", *p))
			return false;
	if (*host == ':')
		return false;
	for (const char *p = host; p < text + len; p++)
		if (*p <= ' ' || *p > '~' || strchr("/?#@\\\"*", *p))
			return false;
	return true;
}

static int load_origins(char *const *env, struct abx_settings *s, struct abx_err *err)
{
	if (load_string(env, "ABX_ALLOWED_ORIGINS", NULL, &s->allowed_origins, err) < 0)
		return -1;
	for (const char *p = s->allowed_origins; p && *p;) {
		p += strspn(p, ", \t");
		size_t len = strcspn(p, ", \t");

		if (len && !is_origin(p, len))
			return abx_err_set(err, ABX_E_VALUE,
					   "ABX_ALLOWED_ORIGINS: '%.*s' is not an origin: write scheme://host or scheme://host:port, without a path, or *",
					   (int)len, p);
		p += len;
	}
	return 0;
}

static int load_log(char *const *env, struct abx_settings *s, struct abx_err *err)
{
	const char *level = setting(env, "ABX_LOG_LEVEL"), *format = setting(env, "ABX_LOG_FORMAT");

	s->log_level = ABX_LOG_INFO;
	if (level && abx_log_level_parse(level, &s->log_level) < 0)
		return abx_err_set(err, ABX_E_VALUE, "ABX_LOG_LEVEL: '%s' is not debug, info, warning or error", level);
	if (format && strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
		return abx_err_set(err, ABX_E_VALUE, "ABX_LOG_FORMAT: '%s' is not text or json", format);
	s->log_json = format && strcmp(format, "json") == 0;
	return 0;
}

static int load(char *const *env, struct abx_settings *s, struct abx_err *err)
{
	s->max_upload = 104857600;
	if (load_host(env, s, err) < 0 || load_port(env, "ABX_SERVER_PORT", 9000, &s->port, err) < 0 ||
	    load_port(env, "ABX_PTY_PORT", 9001, &s->pty_port, err) < 0 || load_token(env, s, err) < 0 ||
	    load_groups(env, s, err) < 0 || load_policy(env, s, err) < 0 ||
	    load_directory(env, "ABX_SERVER_BASE_DIR", "/home/user", &s->base_dir, err) < 0 ||
	    load_number(env, "ABX_MAX_UPLOAD_SIZE", 1, (int64_t)1 << 50, &s->max_upload, err) < 0 ||
	    load_directory(env, "ABX_RUN_DIR", NULL, &s->run_dir, err) < 0 ||
	    load_directory(env, "ABX_SPOOL_DIR", NULL, &s->spool_dir, err) < 0 ||
	    load_directory(env, "ABX_COMMANDS_DIR", ABX_SYSCONFDIR "/commands.d", &s->commands_dir, err) < 0 ||
	    load_string(env, "ABX_AGENTS_DEFAULT", "codex", &s->agents_default, err) < 0 ||
	    load_origins(env, s, err) < 0 ||
	    load_mount_prefix(env, s, err) < 0)
		return -1;
	return load_log(env, s, err);
}

int abx_settings_load(char *const *env, struct abx_settings *ret_settings, struct abx_err *err)
{
	struct abx_settings settings = { 0 };

	if (load(env, &settings, err) < 0) {
		abx_settings_release(&settings);
		return -1;
	}
	*ret_settings = settings;
	return 0;
}

void abx_settings_forget_token(struct abx_settings *s)
{
	if (s->token)
		explicit_bzero(s->token, strlen(s->token));
	free(s->token);
	s->token = NULL;
}

void abx_settings_release(struct abx_settings *s)
{
	abx_settings_forget_token(s);
	free(s->host);
	free(s->policy);
	free(s->template_file);
	free(s->base_dir);
	free(s->run_dir);
	free(s->spool_dir);
	free(s->commands_dir);
	free(s->agents_default);
	free(s->allowed_origins);
	free(s->mount_prefix);
	for (size_t i = 0; i < s->n_secrets; i++)
		free(s->secrets[i].name);
	free(s->secrets);
	*s = (struct abx_settings){ 0 };
}

static struct abx_secret *find_secret(const struct abx_settings *s, const char *name, size_t len)
{
	for (size_t i = 0; i < s->n_secrets; i++)
		if (strncmp(s->secrets[i].name, name, len) == 0 && !s->secrets[i].name[len])
			return &s->secrets[i];
	return NULL;
}

static struct abx_secret *add_secret(struct abx_settings *s, const char *name, const char *token)
{
	struct abx_secret *grown = realloc(s->secrets, (s->n_secrets + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	s->secrets = grown;
	grown += s->n_secrets;
	grown->name = strdup(name);
	if (!grown->name)
		return NULL;
	abx_digest(token, strlen(token), grown->hash);
	s->n_secrets++;
	return grown;
}

int abx_settings_token_of(struct abx_settings *s, char *const *env, const char *name, unsigned char hash[ABX_TOKEN_HASH],
			  struct abx_err *err)
{
	const struct abx_secret *secret = find_secret(s, name, strlen(name));

	if (!secret) {
		const char *token = setting(env, name);

		if (!token)
			return abx_err_set(err, ABX_E_VALUE, "the variable %s is not set", name);
		if (!is_token(token))
			return abx_err_set(err, ABX_E_VALUE, "%s: a token cannot hold a comma, blank or control character", name);
		secret = add_secret(s, name, token);
		if (!secret)
			return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	memcpy(hash, secret->hash, ABX_TOKEN_HASH);
	return 0;
}

/* Whether the string of an environment is the server's own business. */
static bool is_private(const struct abx_settings *s, const char *var)
{
	return strncmp(var, "ABX_", 4) == 0 || find_secret(s, var, strcspn(var, "="));
}

char **abx_settings_child_env(const struct abx_settings *s, char *const *env)
{
	size_t n = 0;
	char **child;

	while (env[n])
		n++;
	child = calloc(n + 1, sizeof(*child));
	if (!child)
		return NULL;
	n = 0;
	for (; *env; env++)
		if (!is_private(s, *env))
			child[n++] = *env;
	return child;
}

void abx_settings_scrub_environment(const struct abx_settings *s, char **env)
{
	for (; *env; env++)
		if (is_private(s, *env)) {
			char *value = strchr(*env, '=');

			if (value)
				explicit_bzero(value + 1, strlen(value + 1));
		}
}
