/* The settings of the environment. */
#include "policy/settings.h"

#include <stdlib.h>

#include "t/tap.h"

static int load(const char *variable, struct abx_settings *settings, struct abx_err *err)
{
	abx_auto_free char *copy = strdup(variable);
	char *env[] = { copy, NULL };

	return abx_settings_load(env, settings, err);
}

static const struct {
	const char *variable, *message; /* NULL: it is fine */
} cases[] = {
	{ "ABX_SERVER_PORT=9100", NULL },
	{ "ABX_SERVER_PORT=", NULL },
	{ "ABX_SERVER_PORT=0", "ABX_SERVER_PORT: '0' is not a whole number from 1 to 65535" },
	{ "ABX_SERVER_PORT=65536", "ABX_SERVER_PORT: '65536' is not" },
	{ "ABX_SERVER_PORT=90a", "ABX_SERVER_PORT: '90a' is not" },
	{ "ABX_SERVER_PORT= 90", "ABX_SERVER_PORT: ' 90' is not" },
	{ "ABX_SERVER_PORT=+90", "ABX_SERVER_PORT: '+90' is not" },
	{ "ABX_SERVER_PORT=99999999999999999999", "ABX_SERVER_PORT: '99999999999999999999' is not" },
	{ "ABX_PTY_PORT=-1", "ABX_PTY_PORT: '-1' is not" },
	{ "ABX_SERVER_HOST=127.0.0.1", NULL },
	{ "ABX_SERVER_HOST=::1", NULL },
	{ "ABX_SERVER_HOST=my-host.example", NULL },
	{ "ABX_SERVER_HOST=a\"b", "ABX_SERVER_HOST: 'a\"b' is not an address or host name" },
	{ "ABX_SERVER_HOST=1::2::3", "ABX_SERVER_HOST: " },
	{ "ABX_SERVER_TOKEN=abc", NULL },
	{ "ABX_SERVER_TOKEN=", NULL },
	{ "ABX_SERVER_TOKEN=a,b", "ABX_SERVER_TOKEN: a token cannot hold" },
	{ "ABX_SERVER_TOKEN=a b", "ABX_SERVER_TOKEN: a token cannot hold" },
	{ "ABX_SERVER_TOKEN=a\tb", "ABX_SERVER_TOKEN: a token cannot hold" },
	{ "ABX_SERVER_ENABLED_GROUPS=dev_tools, browser", NULL },
	{ "ABX_SERVER_ENABLED_GROUPS=process", NULL },
	{ "ABX_SERVER_ENABLED_GROUPS=dev-tools", "ABX_SERVER_ENABLED_GROUPS: unknown group 'dev-tools'" },
	{ "ABX_SERVER_BASE_DIR=/srv", NULL },
	{ "ABX_SERVER_BASE_DIR=srv", "ABX_SERVER_BASE_DIR: 'srv' is not an absolute path" },
	{ "ABX_RUN_DIR=/a\"b", "ABX_RUN_DIR: a path cannot hold a quote" },
	{ "ABX_MAX_UPLOAD_SIZE=1", NULL },
	{ "ABX_MAX_UPLOAD_SIZE=0", "ABX_MAX_UPLOAD_SIZE: '0' is not" },
	{ "ABX_MAX_UPLOAD_SIZE=1e6", "ABX_MAX_UPLOAD_SIZE: '1e6' is not" },
	{ "ABX_LOG_LEVEL=debug", NULL },
	{ "ABX_LOG_LEVEL=loud", "ABX_LOG_LEVEL: 'loud' is not" },
	{ "ABX_LOG_FORMAT=json", NULL },
	{ "ABX_LOG_FORMAT=xml", "ABX_LOG_FORMAT: 'xml' is not text or json" },
	{ "ABX_ALLOWED_ORIGINS=", NULL },
	{ "ABX_ALLOWED_ORIGINS=*", NULL },
	{ "ABX_ALLOWED_ORIGINS=https://a.example, http://localhost:3000,null,http://[::1]:80,", NULL },
	{ "ABX_ALLOWED_ORIGINS=chrome-extension://abcdef", NULL },
	{ "ABX_ALLOWED_ORIGINS=https://a.example,b.example", "ABX_ALLOWED_ORIGINS: 'b.example' is not an origin" },
	{ "ABX_ALLOWED_ORIGINS=https://a.example/", "ABX_ALLOWED_ORIGINS: 'https://a.example/' is not an origin" },
	{ "ABX_ALLOWED_ORIGINS=https://*.example", "ABX_ALLOWED_ORIGINS: 'https://*.example' is not an origin" },
	{ "ABX_ALLOWED_ORIGINS=https://", "ABX_ALLOWED_ORIGINS: 'https://' is not an origin" },
	{ "ABX_ALLOWED_ORIGINS=https://:80", "ABX_ALLOWED_ORIGINS: 'https://:80' is not an origin" },
	{ "ABX_ALLOWED_ORIGINS=https:/a", "ABX_ALLOWED_ORIGINS: 'https:/a' is not an origin" },
	{ "ABX_ALLOWED_ORIGINS=://a", "ABX_ALLOWED_ORIGINS: '://a' is not an origin" },
	{ "ABX_ALLOWED_ORIGINS=https://u@a", "ABX_ALLOWED_ORIGINS: 'https://u@a' is not an origin" },
	{ "ABX_MOUNT_PREFIX=/sandbox", NULL },
	{ "ABX_MOUNT_PREFIX=sandbox", "ABX_MOUNT_PREFIX: 'sandbox' does not begin" },
	{ "ABX_MOUNT_PREFIX=/a\"b", "ABX_MOUNT_PREFIX: only letters" },
};

static void test_defaults(void)
{
	struct abx_settings s;
	struct abx_err err = ABX_ERR_INIT;

	is_int(load("PATH=/bin", &s, &err), 0, "no setting at all");
	is_str(s.host, "0.0.0.0", "host");
	is_int(s.port, 9000, "port");
	is_int(s.pty_port, 9001, "pty port");
	is_str(s.token, NULL, "token");
	is_str(s.base_dir, "/home/user", "base directory");
	is_int(s.max_upload, 104857600, "upload limit");
	is_str(s.run_dir, NULL, "run directory");
	is_str(s.agents_default, "codex", "runtime");
	is_str(s.mount_prefix, "", "mount prefix");
	is_int(s.log_level, ABX_LOG_INFO, "log level");
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		ok(!s.groups[g], "group %s is not named", abx_groups[g].name);
	abx_settings_release(&s);
}

static void test_environment(void)
{
	char path[] = "PATH=/bin", token[] = "ABX_SERVER_TOKEN=s3cret", other[] = "MY_ABX_=1", prefix[] = "ABX_=x";
	char secret[] = "CI_TOKEN=t0ken", longer[] = "CI_TOKEN_2=1", bad[] = "BAD=a b", empty[] = "EMPTY=";
	char *env[] = { path, token, other, prefix, secret, longer, bad, empty, NULL };
	unsigned char hash[ABX_TOKEN_HASH], again[ABX_TOKEN_HASH];
	struct abx_settings s;
	struct abx_err err = ABX_ERR_INIT;

	load("PATH=/bin", &s, &err);
	is_int(abx_settings_token_of(&s, env, "CI_TOKEN", hash, &err), 0, "the token of a variable");
	is_int(abx_settings_token_of(&s, env, "NONE", again, &err), -1, "one that is not set");
	is_str(err.message, "the variable NONE is not set", "says so");
	is_int(abx_settings_token_of(&s, env, "EMPTY", again, &err), -1, "one that is empty");
	is_int(abx_settings_token_of(&s, env, "BAD", again, &err), -1, "one that holds a blank");
	ok(!strstr(err.message, "a b"), "the message does not show it");
	abx_auto_free char **child = abx_settings_child_env(&s, env);
	is_str(child[0], "PATH=/bin", "a child sees other variables");
	is_str(child[1], "MY_ABX_=1", "also one that only looks like a setting");
	is_str(child[2], "CI_TOKEN_2=1", "or like a secret");
	is_str(child[3], "BAD=a b", "and what is none");
	is_str(child[5], NULL, "and no setting or secret");
	abx_settings_scrub_environment(&s, env);
	is_str(token, "ABX_SERVER_TOKEN=", "a setting's value is wiped");
	is_mem(token + 17, 6, "\0\0\0\0\0\0", 6, "to the last byte");
	is_str(secret, "CI_TOKEN=", "a secret's value, too");
	is_str(longer, "CI_TOKEN_2=1", "other variables stay");
	is_int(abx_settings_token_of(&s, env, "CI_TOKEN", again, &err), 0, "the token is still known");
	is_mem(again, sizeof(again), hash, sizeof(hash), "it is the same");
	abx_settings_release(&s);
}

int main(void)
{
	for (size_t i = 0; i < ABX_N(cases); i++) {
		struct abx_settings settings;
		struct abx_err err = ABX_ERR_INIT;
		int result = load(cases[i].variable, &settings, &err);

		is_int(result, cases[i].message ? -1 : 0, "%s", cases[i].variable);
		if (cases[i].message)
			ok(strncmp(err.message, cases[i].message, strlen(cases[i].message)) == 0, "message: %s",
			   err.message);
		else if (result == 0)
			abx_settings_release(&settings);
		ok(!strstr(err.message, "a,b") && !strstr(err.message, "a b"), "no token in the message");
	}
	test_defaults();
	test_environment();
	return done_testing();
}
