/* The policy without a document: built, published, loaded; scopes; who is calling. */
#include "policy/policy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/strbuf.h"
#include "t/tap.h"

static struct abx_policy *build(const char *first, const char *second)
{
	abx_auto_free char *a = strdup(first), *b = strdup(second);
	char *env[] = { a, b, NULL };
	struct abx_settings settings;
	struct abx_err err = ABX_ERR_INIT;
	struct abx_policy *policy = NULL;

	if (abx_settings_load(env, &settings, &err) == 0) {
		policy = abx_policy_build(&settings, NULL, &err);
		abx_settings_release(&settings);
	}
	if (!policy)
		note("%s", err.message);
	return policy;
}

/* Each rule that needs no document, by endpoint. */
static void test_rules(void)
{
	static const struct {
		const char *id;
		bool enabled, enabled_by_env;
		const char *rule, *rule_by_env;
	} cases[] = {
		{ "health", true, true, "core:always-on", "core:always-on" },
		{ "capabilities_check", true, true, "core:always-on", "core:always-on" },
		{ "commands_run", true, true, "default:on:commands", "default:on:commands" },
		{ "upload", true, true, "default:on:file_ops", "default:on:file_ops" },
		{ "shell", true, true, "default:on:process", "default:on:process" },
		{ "pty_connect", true, true, "default:on:terminal", "default:on:terminal" },
		{ "env_set", true, true, "default:on:system", "default:on:system" },
		{ "code_run", false, true, "default:opt-in:dev_tools", "env:ABX_SERVER_ENABLED_GROUPS" },
		{ "git_diff", false, true, "default:opt-in:dev_tools", "env:ABX_SERVER_ENABLED_GROUPS" },
		{ "browser_close", false, false, "default:opt-in:browser", "default:opt-in:browser" },
		{ "agents_list", false, true, "default:opt-in:agents", "env:ABX_SERVER_ENABLED_GROUPS" },
	};
	struct abx_policy *plain = build("A=1", "B=2");
	struct abx_policy *env = build("ABX_SERVER_ENABLED_GROUPS=dev_tools,agents,process", "B=2");

	for (size_t i = 0; i < ABX_N(cases); i++) {
		const struct abx_endpoint *row = abx_endpoint_find(cases[i].id);

		is_int(abx_policy_rule(plain, row)->enabled, cases[i].enabled, "%s: enabled", cases[i].id);
		is_str(abx_policy_rule(plain, row)->rule, cases[i].rule, "%s: rule", cases[i].id);
		is_int(abx_policy_rule(env, row)->enabled, cases[i].enabled_by_env, "%s: enabled by env", cases[i].id);
		is_str(abx_policy_rule(env, row)->rule, cases[i].rule_by_env, "%s: rule by env", cases[i].id);
	}
	is_str(plain->preset, "default", "the preset");
	/* sha256("{}") begins so. */
	is_str(plain->revision, "44136fa355b3678a", "the revision of no document");
	ok(!plain->configured, "no document is configured");
	is_int(abx_policy_rule(plain, abx_endpoint_find("upload"))->limits.max_bytes, 104857600, "the upload limit");
	abx_policy_free(plain);
	abx_policy_free(env);
}

static void test_publish(void)
{
	struct abx_policy *built = build("ABX_SERVER_TOKEN=s3cret", "ABX_MAX_UPLOAD_SIZE=12345"), *loaded;
	struct abx_err err = ABX_ERR_INIT;
	int fd = abx_policy_publish(built, &err);
	char text[65536];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	ok(fd >= 0, "published");
	ok(n > 0 && !memmem(text, (size_t)n, "s3cret", 6), "the token is not in it");
	is_int(pwrite(fd, "x", 1, 0), -1, "it cannot be written");
	is_int(ftruncate(fd, 0), -1, "nor cut");
	ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "nor inherited by accident");
	for (int i = 0; i < 2; i++) {
		loaded = abx_policy_load(fd, &err);
		ok(loaded != NULL, "loaded, time %d", i);
		is_int(loaded->max_upload, 12345, "with the settings");
		is_int(abx_policy_rule(loaded, abx_endpoint_find("download"))->limits.max_bytes, 12345, "the limits");
		is_str(abx_policy_rule(loaded, abx_endpoint_find("code_run"))->rule, "default:opt-in:dev_tools", "the rules");
		is_str(abx_policy_rule(loaded, abx_endpoint_find("agents_list"))->scopes[0], "agents:use", "the scopes");
		ok(!loaded->local, "and the mode");
		is_mem(loaded->identities[0].token_hash, ABX_TOKEN_HASH, built->identities[0].token_hash, ABX_TOKEN_HASH,
		       "the token's hash");
		abx_policy_free(loaded);
	}
	close(fd);
	abx_policy_free(built);
	fd = memfd_create("other", MFD_CLOEXEC);
	ok(abx_policy_load(fd, &err) == NULL, "an empty file is not a policy");
	ok(write(fd, "{\"rules\": 1}", 12) == 12 && abx_policy_load(fd, &err) == NULL, "nor is another document");
	close(fd);
}

static void test_scopes(void)
{
	static const struct {
		const char *held, *needed;
		bool allowed;
	} cases[] = {
		{ "*", "shell:run", true },	    { "shell:run", "shell:run", true },	  { "shell:*", "shell:run", true },
		{ "shell:*", "shell:", true },	    { "shell:*", "shell", false },	  { "shell:*", "shells:run", false },
		{ "shell", "shell:run", false },    { "shell:run", "shell:*", false },	  { ":*", ":x", true },
		{ "shell:r*", "shell:run", false }, { "SHELL:run", "shell:run", false },
	};
	char files[] = "files:*", shell[] = "shell:run", read[] = "files:read", agents[] = "agents:use";
	char *held[] = { files, shell, NULL }, *both[] = { read, shell, NULL }, *one_missing[] = { read, agents, NULL };
	char *nothing[] = { NULL };

	for (size_t i = 0; i < ABX_N(cases); i++) {
		abx_auto_free char *h = strdup(cases[i].held), *n = strdup(cases[i].needed);
		char *have[] = { h, NULL }, *need[] = { n, NULL };

		is_int(abx_policy_scopes_allow(have, need), cases[i].allowed, "'%s' for '%s'", cases[i].held, cases[i].needed);
	}
	ok(abx_policy_scopes_allow(nothing, nothing), "nothing is needed, nothing held");
	ok(abx_policy_scopes_allow(held, both), "both are held");
	ok(!abx_policy_scopes_allow(held, one_missing), "one of two is missing");
	ok(!abx_policy_scopes_allow(nothing, both), "none is held");
}

int main(void)
{
	test_rules();
	test_publish();
	test_scopes();
	return done_testing();
}
