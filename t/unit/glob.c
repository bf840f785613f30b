#include "common/glob.h"

#include <string.h>

#include "t/tap.h"

struct glob_case {
	const char *pattern, *text;
	bool match;
};

static const struct glob_case python_cases[] = {
#include "t/unit/glob_cases.h"
};

/* Bytes that are no UTF-8 are characters of their own. */
static const struct glob_case byte_cases[] = {
	{ "?", "\377", true },
	{ "??", "\377\376", true },
	{ "?", "\303", true },
	{ "?", "\303\050", false },
	{ "??", "\303\050", true },
	{ "\377", "\377", true },
	{ "\377", "\376", false },
	{ "[\377]", "\377", true },
	{ "[\377]", "\376", false },
	{ "[!\377]", "\376", true },
	{ "a*\200", "abc\200", true },
	{ "?", "\355\240\200", false }, /* a surrogate is three bytes */
	{ "???", "\355\240\200", true },
};

static const struct glob_case nocase_cases[] = {
	{ ".PY", ".py", true },	    { ".py", ".PY", true },    { "*.TxT", "a.tXt", true },  { "[a-c]", "B", true },
	{ "[A-C]", "b", true },	    { "[!a-c]", "B", false },  { "[!a-c]", "D", true },	    { "[b-a!c]", "C", false },
	{ "[!A]", "a", false },	    { "a", "b", false },       { "\303\211", "\303\251", false }, { "[_]", "\177", false },
	{ "@", "`", false },	    { "[\\[]", "{", false },
};

static const struct glob_case path_cases[] = {
	/* without a special character: a tree */
	{ "/home/user", "/home/user", true },
	{ "/home/user", "/home/user/a/b", true },
	{ "/home/user", "/home/users", false },
	{ "/home/user", "/home", false },
	{ "/home/user/", "/home/user", true },
	{ "/home//user", "/home/user/x", true },
	{ "/", "/anything/at/all", true },
	{ "/", "/", true },
	/* `*`, `?` and sets stay within a component */
	{ "/home/*", "/home/user", true },
	{ "/home/*", "/home", false },
	{ "/home/*", "/home/user/x", false },
	{ "/home/*/x", "/home/user/x", true },
	{ "/home/*/x", "/home/a/b/x", false },
	{ "/home/?", "/home/a", true },
	{ "/home?a", "/home/a", false },
	{ "/home[/]a", "/home/a", false },
	{ "/a[b/c]d", "/a[b/c]d", true },
	{ "/home/*.py", "/home/.py", true },
	{ "/home/.*", "/home/.ssh", true },
	{ "/home/a**b", "/home/a/b", false },
	{ "/home/a**b", "/home/axb", true },
	{ "/home/***", "/home/a/b", false },
	{ "/home/***", "/home/a", true },
	/* `**` is any number of components */
	{ "/**", "/", true },
	{ "/**", "/a/b/c", true },
	{ "**", "/", true },
	{ "**", "/a/b", true },
	{ "/home/**", "/home", true },
	{ "/home/**", "/home/a/b", true },
	{ "/home/**", "/homes", false },
	{ "/home/**", "/", false },
	{ "**/.ssh/**", "/home/user/.ssh", true },
	{ "**/.ssh/**", "/home/user/.ssh/id_rsa", true },
	{ "**/.ssh/**", "/.ssh/a/b", true },
	{ "**/.ssh/**", "/home/user/.sshx", false },
	{ "**/.ssh/**", "/home/user", false },
	{ "**/.ssh", "/home/user/.ssh", true },
	{ "**/.ssh", "/home/user/.ssh/id", false },
	{ "/a/**/b", "/a/b", true },
	{ "/a/**/b", "/a/x/b", true },
	{ "/a/**/b", "/a/x/y/b", true },
	{ "/a/**/b", "/a/x/y/c", false },
	{ "/a/**/b", "/a/b/c", false },
	{ "/a/**/b", "/a/b/c/b", true },
	{ "/a/**/b/*/c", "/a/b/b/x/c", true },
	{ "/a/**/b/*/c", "/a/b/b/c", true },
	{ "/a/**/b/*/c", "/a/b/x/c/c", false },
	{ "/a/**/b/*/c", "/a/b/c", false },
	{ "/**/a/**/b/**", "/x/a/y/b", true },
	{ "/**/a/**/b/**", "/a/b/z", true },
	{ "/**/a/**/b/**", "/b/a", false },
	{ "**/**", "/", true },
	{ "**/**/x", "/x", true },
	{ "**/*", "/", false },
	{ "**/*", "/x", true },
	{ "**/*.pem", "/a/b/c.pem", true },
	{ "**/*.pem", "/a/b/c.pem/d", false },
	{ "*.pem", "/c.pem", true },
	{ "*.pem", "/a/c.pem", false },
	{ "/home/\303\251*", "/home/\303\251t\303\251", true },
	{ "/home/?", "/home/\303\251", true },
};

static void run(const char *name, bool (*fn)(const char *, const char *), const struct glob_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ok(fn(cases[i].pattern, cases[i].text) == cases[i].match, "%s case %zu: '%s' %s", name, i, cases[i].pattern,
		   cases[i].match ? "matches" : "does not match");
}

/* Patterns that are exponential for a matcher that goes back to every star. The test is that it ends at all. */
static void is_quick(void)
{
	enum { STARS = 2000, LENGTH = 20000 };
	static char pattern[2 * STARS + 2], text[LENGTH + 1], brackets[LENGTH + 1], deep[LENGTH + 1];

	for (size_t i = 0; i < STARS; i++)
		memcpy(pattern + 2 * i, "*a", 2);
	pattern[sizeof(pattern) - 2] = 'b';
	memset(text, 'a', LENGTH);
	ok(!abx_glob_match(pattern, text), "two thousand stars");
	memset(brackets, '[', LENGTH);
	ok(abx_glob_match(brackets, brackets), "twenty thousand brackets that nothing closes");
	for (size_t i = 0; i + 2 <= LENGTH; i += 2)
		memcpy(deep + i, "/a", 2);
	ok(!abx_glob_path("/**/a/**/a/**/a/**/a/**/a/**/a/**/b", deep), "ten thousand components");
}

int main(void)
{
	run("fnmatch", abx_glob_match, python_cases, sizeof(python_cases) / sizeof(*python_cases));
	run("bytes", abx_glob_match, byte_cases, sizeof(byte_cases) / sizeof(*byte_cases));
	run("nocase", abx_glob_match_nocase, nocase_cases, sizeof(nocase_cases) / sizeof(*nocase_cases));
	run("path", abx_glob_path, path_cases, sizeof(path_cases) / sizeof(*path_cases));
	is_quick();
	return done_testing();
}
