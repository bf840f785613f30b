/* What rules allow: commands, shell texts, extensions, languages, variables, URLs. */
#include "policy/evaluate.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/shlex.h"
#include "policy/url.h"
#include "t/tap.h"

/* A list of the words between bars: "a|b". NULL stays NULL. */
static char **list_of(const char *text)
{
	abx_auto_free char *copy = text ? strdup(text) : NULL;
	char **list = text ? calloc(1, sizeof(*list)) : NULL, *save = NULL;

	for (char *word = copy ? strtok_r(copy, "|", &save) : NULL; word; word = strtok_r(NULL, "|", &save))
		abx_list_add(&list, word);
	return list;
}

static struct abx_rule rule_of(enum abx_rule_list allow, const char *allowed, enum abx_rule_list deny, const char *denied)
{
	struct abx_rule rule = { .values_rule = strdup("policy:endpoints.x") };

	rule.lists[allow] = list_of(allowed);
	if (deny != ABX_RULE_LIST__COUNT)
		rule.lists[deny] = list_of(denied);
	return rule;
}

struct value_case {
	const char *allow, *deny, *value;
	bool allowed;
};

static void judge(const char *what, const struct value_case *c, size_t i, int result, const struct abx_err *err, enum abx_error kind)
{
	ok((result == 0) == c->allowed, "%s %zu is %s", what, i, c->allowed ? "allowed" : "refused");
	if (c->allowed)
		return;
	is_int(err->kind, kind, "%s %zu: the kind of error", what, i);
	is_str(err->rule, "policy:endpoints.x", "%s %zu: the rule", what, i);
}

static const struct value_case commands[] = {
	{ NULL, NULL, "rm -rf /", true },
	{ "git *", NULL, "git status", true },
	{ "git *", NULL, "git", false },
	{ "git*", NULL, "git", true },
	{ "git *", NULL, "gitk x", false },
	{ "git *", NULL, "  git   'status'  ", true },
	{ "git *", NULL, "g\"i\"t push", true },
	{ "git *", NULL, "/usr/bin/git status", false },
	{ "*/git *", NULL, "/usr/bin/git status", true },
	{ "git *", NULL, "git log a/b", true },
	{ "git *|make*", NULL, "make", true },
	{ "git *|make*", NULL, "make -j2 all", true },
	{ "git *|make*", NULL, "cmake", false },
	{ "git *", "git push*", "git push", false },
	{ "git *", "git push*", "git pull", true },
	{ "*", "rm *", "rm x", false },
	{ "*", "rm *", "rm", true },
	{ NULL, "rm *", "rm x", false },
	{ NULL, "rm *", "r'm' x", false },
	{ NULL, "rm *", "rm\tx", false },
	{ NULL, "rm *", "ls; rm x", true }, /* no shell: three words of ls */
	{ NULL, "rm *", "echo rm x", true },
	{ "", NULL, "anything", false },
	{ "echo [ab]", NULL, "echo b", true },
	{ "echo [ab]", NULL, "echo c", false },
	{ "echo a b", NULL, "echo 'a b'", true }, /* joined by spaces */
};

static const struct value_case shell_texts[] = {
	{ NULL, NULL, "rm -rf / | cat", true },
	/* allow: the whole, or one plain command */
	{ "git *", NULL, "git status", true },
	{ "git *", NULL, "  git   status  ", true },
	{ "git *", NULL, "git commit -m 'a message'", true },
	{ "git *", NULL, "git status; rm x", false },
	{ "git *", NULL, "git status && ls", false },
	{ "git *", NULL, "git status | cat", false },
	{ "git *", NULL, "git status & ls", false },
	{ "git *", NULL, "git status\nls", false },
	{ "git *", NULL, "git $(ls)", false },
	{ "git *", NULL, "git `ls`", false },
	{ "git *", NULL, "git $HOME", false },
	{ "git *", NULL, "git status > x", false },
	{ "git *", NULL, "git < x", false },
	{ "git *", NULL, "git add *", false },
	{ "git *", NULL, "git add ?", false },
	{ "git *", NULL, "git add [a]", false },
	{ "git *", NULL, "git \\x", false },
	{ "git *", NULL, "git ~", false },
	{ "git *", NULL, "git {a,b}", false },
	{ "git *", NULL, "git 'a;b'", false }, /* not plain for us, though it is for a shell */
	{ "git *", NULL, "git \"x", false },
	{ "git *", NULL, "git # x", false },
	{ "*git status*", NULL, "PATH=/x git status", true }, /* by the whole text */
	{ "?=1 git *", NULL, "A=1 git x", false },
	{ "/bin/sh -c *", NULL, "anything | at all", true },
	{ "/bin/sh -c ls ? wc", NULL, "ls | wc", true },
	{ "/bin/sh -c ls ? wc", NULL, "ls | wc -l", false },
	{ "*", NULL, "a; b", true },
	{ "", NULL, "ls", false },
	/* deny: the whole, or any part between separators */
	{ NULL, "rm *", "rm x", false },
	{ NULL, "rm *", "ls; rm x", false },
	{ NULL, "rm *", "ls;rm x", false },
	{ NULL, "rm *", "ls && rm x", false },
	{ NULL, "rm *", "ls || rm x", false },
	{ NULL, "rm *", "ls | rm x", false },
	{ NULL, "rm *", "ls & rm x", false },
	{ NULL, "rm *", "ls\nrm x", false },
	{ NULL, "rm *", "(rm x)", false },
	{ NULL, "rm *", "{ rm x; }", false },
	{ NULL, "rm *", "echo $(rm x)", false },
	{ NULL, "rm *", "echo `rm x`", false },
	{ NULL, "rm *", "echo \"$(rm x)\"", false },
	{ NULL, "rm *", "if true; then rm x; fi", false },
	{ NULL, "rm *", "for i in a; do rm x; done", false },
	{ NULL, "rm *", "while rm x; do :; done", false },
	{ NULL, "rm *", "! rm x", false },
	{ NULL, "rm *", "A=1 rm x", false },
	{ NULL, "rm *", "A=1 B=2 exec rm x", false },
	{ NULL, "rm *", "ls;  'rm'  x", false },
	{ NULL, "rm *", "ls; r\\m x", false },
	{ NULL, "rm *", "ls; r\"\"m x", false },
	{ NULL, "rm *", "sh -c 'ls; rm x'", false },
	{ NULL, "rm *", "echo 'x; rm y'", false }, /* rather one too many than one too few */
	{ NULL, "rm *", "cat <(rm x)", false },
	{ NULL, "rm *", "ls rm x", true },
	{ NULL, "rm *", "echo rm x", true },
	{ NULL, "rm *", "xrm x; ls", true },
	{ NULL, "rm *", "rm", true },
	{ NULL, "/bin/sh -c *curl*", "ls | curl x", false },
	{ NULL, "/bin/sh -c *curl*", "ls | wget x", true },
	{ "*", "rm *", "ls; rm x", false },
	{ "git *", "git push*", "git push", false },
	{ "git *", "git push*", "git pull", true },
};

static const struct value_case extensions[] = {
	{ NULL, NULL, "a.so", true },
	{ ".py|.txt", NULL, "a.py", true },
	{ ".py|.txt", NULL, "a.PY", true },
	{ ".PY", NULL, "a.py", true },
	{ ".py|.txt", NULL, "a.pyc", false },
	{ ".py|.txt", NULL, "a", false },
	{ ".py|.txt", NULL, ".py", false },
	{ ".py|.txt", NULL, "py", false },
	{ ".py", NULL, "a.so.py", true },
	{ ".py", NULL, "a.py.so", false },
	{ ".gz", NULL, "a.tar.gz", true },
	{ ".tar.gz", NULL, "a.tar.gz", true },
	{ ".tar.gz", NULL, "a.gz", false },
	{ NULL, ".so", "a.so", false },
	{ NULL, ".so", "a.SO", false },
	{ NULL, ".so", ".so", false },
	{ NULL, ".so", "a.so.1", true },
	{ NULL, ".so", "aso", true },
	{ ".so|.py", ".so", "a.so", false },
	{ ".so|.py", ".so", "a.py", true },
	{ "", NULL, "a.py", false },
};

static const struct value_case variables[] = {
	{ NULL, NULL, "PATH", true },
	{ "LANG|LC_*", NULL, "LANG", true },
	{ "LANG|LC_*", NULL, "LC_ALL", true },
	{ "LANG|LC_*", NULL, "LANGUAGE", false },
	{ "LANG|LC_*", NULL, "lang", false },
	{ NULL, "AWS_*", "AWS_REGION", false },
	{ NULL, "AWS_*", "HOME", true },
	{ "*", "AWS_*", "AWS_X", false },
	{ "AWS_X", "AWS_*", "AWS_X", false },
	{ "", NULL, "LANG", false },
};

static const struct value_case languages[] = {
	{ NULL, NULL, "node", true },
	{ "python", NULL, "python", true },
	{ "python", NULL, "node", false },
	{ "python|bash", NULL, "bash", true },
	{ "", NULL, "python", false },
};

#define EXAMPLE "https://*.example.org/*"

static const struct value_case urls[] = {
	{ NULL, NULL, "not a url", true }, /* a rule that says nothing has no opinion */
	{ EXAMPLE, NULL, "https://a.example.org/", true },
	{ EXAMPLE, NULL, "https://a.example.org", true },
	{ EXAMPLE, NULL, "https://a.b.example.org/x/y?z=1#f", true },
	{ EXAMPLE, NULL, "HTTPS://A.EXAMPLE.ORG/x", true },
	{ EXAMPLE, NULL, "https://a.example.org./x", true },
	{ EXAMPLE, NULL, "https://a.example.org:443/x", true },
	{ EXAMPLE, NULL, "https://a.example.org:8443/x", false },
	{ EXAMPLE, NULL, "http://a.example.org/x", false },
	{ EXAMPLE, NULL, "https://example.org/x", false },
	{ EXAMPLE, NULL, "https://example.org.evil.com/x", false },
	{ EXAMPLE, NULL, "https://evil.com/a.example.org/", false },
	{ EXAMPLE, NULL, "https://evil.com/?.example.org/", false },
	{ EXAMPLE, NULL, "https://evil.com?a.example.org/", false },
	{ EXAMPLE, NULL, "https://evil.com#a.example.org/", false },
	{ EXAMPLE, NULL, "https://evil.com:80.example.org/", false },
	{ EXAMPLE, NULL, "https://a.example.org@evil.com/", false },
	{ EXAMPLE, NULL, "https://user:pw@a.example.org/", false },
	{ EXAMPLE, NULL, "https://evil.com\\.example.org/", false },
	{ EXAMPLE, NULL, "https:\\\\a.example.org/", false },
	{ EXAMPLE, NULL, "https:/a.example.org/", false },
	{ EXAMPLE, NULL, "https:a.example.org/", false },
	{ EXAMPLE, NULL, " https://a.example.org/", false },
	{ EXAMPLE, NULL, "https://a.exam\tple.org/", false },
	{ EXAMPLE, NULL, "https://a.example.org/a b", false },
	{ EXAMPLE, NULL, "https://a%2eexample.org/", false },
	{ EXAMPLE, NULL, "https://\303\251.example.org/", false },
	{ EXAMPLE, NULL, "https://xn--9ca.example.org/", true },
	{ EXAMPLE, NULL, "https://.example.org/", false },
	{ EXAMPLE, NULL, "https://a..example.org/", false },
	{ EXAMPLE, NULL, "javascript:alert(1)", false },
	{ EXAMPLE, NULL, "file:///etc/passwd", false },
	{ EXAMPLE, NULL, "", false },
	{ "https://example.org", NULL, "https://example.org/any/path", true },
	{ "https://example.org", NULL, "https://example.org:444/", false },
	{ "https://example.org:444", NULL, "https://example.org:444/", true },
	{ "https://example.org:444", NULL, "https://example.org/", false },
	{ "https://example.org:*", NULL, "https://example.org:1/", true },
	{ "http*://example.org/", NULL, "http://example.org/", true },
	{ "http*://example.org/", NULL, "https://example.org/", true },
	{ "*://example.org/docs/*", NULL, "https://example.org/docs/a", true },
	{ "*://example.org/docs/*", NULL, "https://example.org/docs", false },
	{ "*://example.org/docs/*", NULL, "https://example.org/docs/../admin", false },
	{ "*://example.org/docs/*", NULL, "https://example.org/docs/%2e%2e/admin", false },
	{ "*://example.org/docs/*", NULL, "https://example.org/docs/..%2fadmin", false },
	{ "*://example.org/docs/*", NULL, "https://example.org/docs/./a", true },
	{ "*://example.org/docs", NULL, "https://example.org/docs?x=1", true },
	{ "*://example.org/s?q=*", NULL, "https://example.org/s?q=1", true },
	{ "*://example.org/s?q=*", NULL, "https://example.org/s?r=1", false },
	{ "*://*", NULL, "https://anything.example/x", true },
	{ "https://[::1]/*", NULL, "https://[::1]/x", true },
	{ "https://[::1]/*", NULL, "https://[0:0:0:0:0:0:0:1]/x", true },
	{ "https://[::1]/*", NULL, "https://[::2]/x", false },
	{ "https://[::1]:8/*", NULL, "https://[::1]:8/x", true },
	{ "https://*/*", NULL, "https://[::2]/x", true },
	{ "https://10.*/*", NULL, "https://10.1.2.3/x", true },
	{ "https://10.*/*", NULL, "https://10.1.2.3.evil.com/x", true }, /* a name like any other */
	{ "*://*", NULL, "https://0x7f.1/", false },
	{ "*://*", NULL, "https://2130706433/", false },
	{ "*://*", NULL, "https://127.1/", false },
	{ "*://*", NULL, "https://127.0.0.01/", false },
	{ "*://*", NULL, "https://[::1/", false },
	{ "*://*", NULL, "https://[v1.x]/", false },
	{ "*://*", NULL, "https://[fe80::1%25eth0]/", false },
	{ "*://*", NULL, "https://a:99999/", false },
	{ "*://*", NULL, "https://a:8a/", false },
	{ "*://*", NULL, "https://a:/", true },
	{ "*://*", NULL, "https:///x", false },
	{ NULL, "*://*.evil.com/*", "https://a.evil.com/x", false },
	{ NULL, "*://*.evil.com/*", "https://a.evil.com:8443/x", false },
	{ NULL, "*://*.evil.com:443/*", "https://a.evil.com:8443/x", true },
	{ NULL, "*://*.evil.com/*", "https://good.com/x", true },
	{ NULL, "*://a.com/admin", "https://a.com/admin", false },
	{ NULL, "*://a.com/admin", "https://a.com/admin?x", false },
	{ NULL, "*://a.com/admin", "https://a.com/%61dmin", false },
	{ NULL, "*://a.com/admin", "https://a.com/x/../admin", false },
	{ NULL, "*://a.com/admin", "https://a.com/other", true },
	{ "*://*.example.org/*", "*://b.example.org/*", "https://b.example.org/", false },
	{ "*://*.example.org/*", "*://b.example.org/*", "https://a.example.org/", true },
	{ "", NULL, "https://a.example.org/", false },
};

static void test_values(void)
{
	static const struct {
		const char *name;
		const struct value_case *cases;
		size_t n;
		enum abx_rule_list allow, deny;
		int (*fn)(const struct abx_rule *rule, const char *value, struct abx_err *err);
		enum abx_error kind;
	} kinds[] = {
		{ "shell text", shell_texts, ABX_N(shell_texts), ABX_ALLOW_COMMANDS, ABX_DENY_COMMANDS, abx_rule_allows_shell_text, ABX_E_COMMAND },
		{ "extension", extensions, ABX_N(extensions), ABX_ALLOW_EXTENSIONS, ABX_DENY_EXTENSIONS, abx_rule_allows_extension,
		  ABX_E_EXTENSION },
		{ "variable", variables, ABX_N(variables), ABX_ALLOW_VARIABLES, ABX_DENY_VARIABLES, abx_rule_allows_variable, ABX_E_VARIABLE },
		{ "language", languages, ABX_N(languages), ABX_ALLOW_LANGUAGES, ABX_RULE_LIST__COUNT, abx_rule_allows_language, ABX_E_LANGUAGE },
		{ "URL", urls, ABX_N(urls), ABX_ALLOW_URLS, ABX_DENY_URLS, abx_rule_allows_url, ABX_E_URL },
	};

	for (size_t k = 0; k < ABX_N(kinds); k++)
		for (size_t i = 0; i < kinds[k].n; i++) {
			const struct value_case *c = &kinds[k].cases[i];
			struct abx_rule rule = rule_of(kinds[k].allow, c->allow, kinds[k].deny, c->deny);
			struct abx_err err = ABX_ERR_INIT;

			judge(kinds[k].name, c, i, kinds[k].fn(&rule, c->value, &err), &err, kinds[k].kind);
			abx_rule_release(&rule);
		}
}

static void test_commands(void)
{
	for (size_t i = 0; i < ABX_N(commands); i++) {
		struct abx_rule rule = rule_of(ABX_ALLOW_COMMANDS, commands[i].allow, ABX_DENY_COMMANDS, commands[i].deny);
		struct abx_err err = ABX_ERR_INIT;
		char **argv = abx_shlex_split(commands[i].value, &err);

		judge("command", &commands[i], i, abx_rule_allows_command(&rule, argv, &err), &err, ABX_E_COMMAND);
		abx_argv_free(argv);
		abx_rule_release(&rule);
	}
}

/* "" in a list of extensions is a name without one. */
static void test_no_extension(void)
{
	static const struct {
		const char *name;
		bool none;
	} names[] = { { "Makefile", true }, { ".bashrc", true }, { "a.py", false }, { "a.", false }, { ".a.py", false } };

	for (size_t i = 0; i < ABX_N(names); i++) {
		struct abx_rule rule = rule_of(ABX_ALLOW_EXTENSIONS, "", ABX_RULE_LIST__COUNT, NULL);
		struct abx_err err = ABX_ERR_INIT;

		abx_list_add(&rule.lists[ABX_ALLOW_EXTENSIONS], "");
		is_int(abx_rule_allows_extension(&rule, names[i].name, &err), names[i].none ? 0 : -1, "no extension: '%s'", names[i].name);
		abx_rule_release(&rule);
	}
}

/* Texts that would take for ever if each word were looked behind. The test is that it ends. */
static void test_long_texts(void)
{
	static char text[120 << 10], longer[200 << 10];
	struct abx_rule rule = rule_of(ABX_ALLOW_COMMANDS, NULL, ABX_DENY_COMMANDS, "rm *");
	struct abx_err err = ABX_ERR_INIT;

	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "a= ", 3);
	is_int(abx_rule_allows_shell_text(&rule, text, &err), -1, "forty thousand assignments");
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "a;", 2);
	is_int(abx_rule_allows_shell_text(&rule, text, &err), 0, "sixty thousand commands");
	memset(longer, 'a', sizeof(longer) - 1);
	is_int(abx_rule_allows_shell_text(&rule, longer, &err), -1, "longer than the kernel takes");
	abx_rule_release(&rule);
}

static const struct {
	const char *host;
	bool is_private;
} addresses[] = {
	{ "127.0.0.1", true },	       { "127.255.255.255", true }, { "10.0.0.1", true },	   { "172.16.0.1", true },
	{ "172.31.255.255", true },    { "172.32.0.1", false },	    { "172.15.0.1", false },	   { "192.168.1.1", true },
	{ "192.169.0.1", false },      { "169.254.169.254", true }, { "100.64.0.1", true },	   { "100.128.0.1", false },
	{ "0.0.0.0", true },	       { "224.0.0.1", true },	    { "255.255.255.255", true },   { "198.18.0.1", true },
	{ "8.8.8.8", false },	       { "1.1.1.1", false },	    { "11.0.0.1", false },	   { "[::1]", true },
	{ "[::]", true },	       { "[fe80::1]", true },	    { "[fc00::1]", true },	   { "[fd12::1]", true },
	{ "[ff02::1]", true },	       { "[::ffff:127.0.0.1]", true }, { "[::ffff:8.8.8.8]", false }, { "[64:ff9b::10.0.0.1]", true },
	{ "[64:ff9b::8.8.8.8]", false }, { "[2002:7f00:1::]", true }, { "[2002:808:808::]", false }, { "[2001:db8::1]", true },
	{ "[2001::1]", true },	       { "[2606:4700::1111]", false }, { "[::127.0.0.1]", true }, { "localhost", true },
	{ "LOCALHOST.", true },	       { "a.localhost", true },	    { "localhost.example.org", false }, { "example.org", false },
};

static void test_private(void)
{
	for (size_t i = 0; i < ABX_N(addresses); i++) {
		abx_auto_free char *text = NULL;
		struct abx_rule rule = { .values_rule = strdup("policy:endpoints.x"), .block_private_networks = true };
		struct abx_err err = ABX_ERR_INIT;

		if (asprintf(&text, "http://%s:8080/x", addresses[i].host) < 0)
			text = NULL;
		is_int(abx_rule_allows_url(&rule, text, &err), addresses[i].is_private ? -1 : 0, "%s", addresses[i].host);
		abx_rule_release(&rule);
	}
}

static void test_url_globs(void)
{
	static const struct {
		const char *glob;
		bool valid;
	} globs[] = {
		{ "https://*.example.org/*", true }, { "*://*", true },	      { "http?://a", true },	{ "https://a:8*/x", true },
		{ "https://[::1]/", true },	     { "https://[::1]:80", true }, { "example.org", false }, { "https://", false },
		{ "https:///x", false },	     { "ftp://a/", false },   { "https://a@b/", false }, { "https://a:x/", false },
		{ "https://a:/", false },	     { "https://[a-z].org/", false }, { "https://[::1", false }, { "https://a\\b/", false },
	};

	for (size_t i = 0; i < ABX_N(globs); i++)
		ok((abx_url_glob_check(globs[i].glob) == NULL) == globs[i].valid, "the URL glob '%s' is %s", globs[i].glob,
		   globs[i].valid ? "valid" : "not valid");
}

int main(void)
{
	test_commands();
	test_values();
	test_no_extension();
	test_long_texts();
	test_private();
	test_url_globs();
	return done_testing();
}
