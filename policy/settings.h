/* The ABX_* settings of the environment (contract, section 1), read once by abxd. */
#ifndef ABX_SETTINGS_H
#define ABX_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/endpoint.h"
#include "common/err.h"
#include "common/log.h"

#define ABX_TOKEN_HASH 32 /* SHA-256 */

/* A variable that held the token of an identity. Its value is overwritten once it was read, so the hash stays here. */
struct abx_secret {
	char *name;
	unsigned char hash[ABX_TOKEN_HASH];
};

struct abx_settings {
	char *host;
	int port, pty_port;
	char *token;         /* NULL in local mode; abx_settings_forget_token clears it */
	bool groups[ABX_GROUP__COUNT]; /* named by ABX_SERVER_ENABLED_GROUPS */
	char *policy;        /* ABX_SERVER_POLICY: the document itself ('{…'), or its absolute path; or NULL */
	char *template_file; /* the template.yaml of the code that was started, whose policy holds where no other is given; or NULL. abxd sets it */
	char *base_dir;
	int64_t max_upload;
	char *run_dir;       /* NULL: the default for this user (section 1) */
	char *spool_dir;     /* NULL: inside the run directory */
	char *commands_dir;
	char *agents_default;
	char *allowed_origins; /* as given, or NULL */
	char *mount_prefix;  /* "" or "/name": where the web server mounts the API (ABX_MOUNT_PREFIX) */
	enum abx_log_level log_level;
	bool log_json;
	struct abx_secret *secrets;
	size_t n_secrets;
};

/*
 * Read the settings from `env` ("NAME=value" strings, NULL-terminated). A value that cannot be parsed is ABX_E_VALUE whose message names the
 * variable and says what it takes; abxd then exits with status 78. Unknown ABX_* names are ignored (some belong to
 * single groups). The caller releases with abx_settings_release.
 */
int abx_settings_load(char *const *env, struct abx_settings *ret_settings, struct abx_err *err);
void abx_settings_release(struct abx_settings *settings);

/* Overwrite the token in memory. */
void abx_settings_forget_token(struct abx_settings *settings);

/*
 * The hash of the token in the variable `name`: as it was remembered, or from `env`, and then it is remembered. -1: the variable is unset, or holds no token
 * (ABX_E_VALUE; the message does not show the value).
 */
int abx_settings_token_of(struct abx_settings *settings, char *const *env, const char *name, unsigned char hash[ABX_TOKEN_HASH],
			  struct abx_err *err);

/*
 * The environment for children and responders: a new NULL-terminated array of the strings of `env` that do not begin with "ABX_" and are none of the secrets
 * (the strings are borrowed; free the array).
 */
char **abx_settings_child_env(const struct abx_settings *settings, char *const *env);

/*
 * Overwrite the values of the ABX_* strings and the secrets in the process's own initial environment, so that /proc/PID/environ shows none.
 */
void abx_settings_scrub_environment(const struct abx_settings *settings, char **env);

#endif
