#include "policy/evaluate.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/glob.h"
#include "common/shlex.h"
#include "policy/url.h"

static int refuse(const struct abx_rule *rule, enum abx_error kind, struct abx_err *err, const char *what)
{
	return abx_err_rule(err, kind, rule->values_rule, "%s", what);
}

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

static bool any_glob(char *const *globs, const char *text)
{
	for (; globs && *globs; globs++)
		if (abx_glob_match(*globs, text))
			return true;
	return false;
}

/* ---- commands */

static void join(char *const *argv, struct abx_strbuf *out)
{
	for (size_t i = 0; argv[i]; i++) {
		abx_strbuf_adds(out, i ? " " : "");
		abx_strbuf_adds(out, argv[i]);
	}
}

static int refuse_command(const struct abx_rule *rule, struct abx_err *err)
{
	return refuse(rule, ABX_E_COMMAND, err, "The policy does not allow this command");
}

int abx_rule_allows_command(const struct abx_rule *rule, char *const *argv, struct abx_err *err)
{
	char *const *allow = rule->lists[ABX_ALLOW_COMMANDS], *const *deny = rule->lists[ABX_DENY_COMMANDS];
	abx_auto_strbuf struct abx_strbuf joined = ABX_STRBUF_INIT_MAX((size_t)64 << 20);

	if (!allow && !deny)
		return 0;
	join(argv, &joined);
	if (joined.failed)
		return out_of_memory(err);
	if (any_glob(deny, joined.buf) || (allow && !any_glob(allow, joined.buf)))
		return refuse_command(rule, err);
	return 0;
}

static void free_argv(char ***argv)
{
	abx_argv_free(*argv);
}

/* The words of `text` as a shell splits them, joined again. -1: it cannot be split. */
static int normalize(const char *text, struct abx_strbuf *out)
{
	struct abx_err unused = ABX_ERR_INIT;
	char **argv __attribute__((cleanup(free_argv))) = abx_shlex_split(text, &unused);

	if (!argv)
		return -1;
	join(argv, out);
	return 0;
}

/* Whether a shell makes nothing of it but one command and its words. */
static bool is_plain(const char *text)
{
	const char *word = text + strspn(text, " \t");
	size_t len = strcspn(word, " \t");

	return !strpbrk(text, "|&;<>()$`\\*?[]#~{}!\n\r") && !memchr(word, '=', len);
}

/* Words after which a command begins, as it does after a separator. */
static bool begins_command(const char *word, size_t len)
{
	static const char *const words[] = { "if", "then", "elif", "else", "while", "until", "do", "time", "exec", "command",
					     "builtin", "nohup", "eval" };

	for (size_t i = 0; i < ABX_N(words); i++)
		if (strlen(words[i]) == len && memcmp(words[i], word, len) == 0)
			return true;
	return len > 0 && memchr(word, '=', len);
}

/* So many words before a command are nobody's habit; looking behind each of them would take its time. */
#define PREFIXES_MAX 32

/* The kernel takes no longer argument (MAX_ARG_STRLEN). */
#define TEXT_MAX ((size_t)128 << 10)

/* Whether a deny list covers one part of a command line, whose quotes may be torn. */
static bool denies_part(char *const *deny, const char *text)
{
	for (int i = 0; i < PREFIXES_MAX; i++) {
		abx_auto_strbuf struct abx_strbuf words = ABX_STRBUF_INIT, bare = ABX_STRBUF_INIT;
		size_t len;

		text += strspn(text, " \t");
		if (normalize(text, &words) == 0 && any_glob(deny, words.buf))
			return true;
		for (const char *p = text; *p; p++)
			if (!strchr("'\"\\", *p))
				abx_strbuf_addc(&bare, *p);
		abx_strbuf_reset(&words);
		if (normalize(bare.buf, &words) == 0 && any_glob(deny, words.buf))
			return true;
		len = strcspn(text, " \t");
		if (!begins_command(text, len))
			return false;
		text += len;
	}
	return true;
}

static int denies_text(char *const *deny, const char *text, struct abx_err *err)
{
	abx_auto_free char *copy = strdup(text);
	char *part, *save = NULL;

	if (!copy)
		return out_of_memory(err);
	for (part = strtok_r(copy, ";&|\n\r()`{}<>!", &save); part; part = strtok_r(NULL, ";&|\n\r()`{}<>!", &save))
		if (denies_part(deny, part))
			return 1;
	return 0;
}

int abx_rule_allows_shell_text(const struct abx_rule *rule, const char *text, struct abx_err *err)
{
	char *const *allow = rule->lists[ABX_ALLOW_COMMANDS], *const *deny = rule->lists[ABX_DENY_COMMANDS];
	abx_auto_strbuf struct abx_strbuf whole = ABX_STRBUF_INIT_MAX((size_t)64 << 20), plain = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	int denied = 0;

	if (!allow && !deny)
		return 0;
	abx_strbuf_addf(&whole, "/bin/sh -c %s", text);
	if (whole.failed)
		return out_of_memory(err);
	if (strlen(text) >= TEXT_MAX)
		return refuse_command(rule, err);
	if (deny)
		denied = any_glob(deny, whole.buf) ? 1 : denies_text(deny, text, err);
	if (denied < 0)
		return -1;
	if (denied)
		return refuse_command(rule, err);
	if (!allow || any_glob(allow, whole.buf))
		return 0;
	if (is_plain(text) && normalize(text, &plain) == 0 && !plain.failed && any_glob(allow, plain.buf))
		return 0;
	return refuse_command(rule, err);
}

/* ---- names */

/* Whether the name ends in one of the extensions. A name that is all extension (".py") has none, as far as it is to be allowed. */
static bool has_extension(char *const *extensions, const char *name, bool whole_name_counts)
{
	size_t len = strlen(name), visible = strspn(name, ".");
	bool any = strchr(name + visible, '.') != NULL;

	for (; extensions && *extensions; extensions++) {
		size_t wanted = strlen(*extensions);

		if (wanted == 0 ? !any
				: (len > wanted || (whole_name_counts && len == wanted)) && strcasecmp(name + len - wanted, *extensions) == 0)
			return true;
	}
	return false;
}

int abx_rule_allows_extension(const struct abx_rule *rule, const char *name, struct abx_err *err)
{
	char *const *allow = rule->lists[ABX_ALLOW_EXTENSIONS];

	if (has_extension(rule->lists[ABX_DENY_EXTENSIONS], name, true) || (allow && !has_extension(allow, name, false)))
		return refuse(rule, ABX_E_EXTENSION, err, "The policy does not allow files of this extension");
	return 0;
}

int abx_rule_allows_language(const struct abx_rule *rule, const char *language, struct abx_err *err)
{
	char *const *allow = rule->lists[ABX_ALLOW_LANGUAGES];

	if (!allow)
		return 0;
	for (; *allow; allow++)
		if (strcmp(*allow, language) == 0)
			return 0;
	return refuse(rule, ABX_E_LANGUAGE, err, "The policy does not allow this language");
}

int abx_rule_allows_variable(const struct abx_rule *rule, const char *name, struct abx_err *err)
{
	char *const *allow = rule->lists[ABX_ALLOW_VARIABLES];

	if (any_glob(rule->lists[ABX_DENY_VARIABLES], name) || (allow && !any_glob(allow, name)))
		return refuse(rule, ABX_E_VARIABLE, err, "The policy does not allow this variable");
	return 0;
}

/* ---- URLs */

static bool url_denied(const struct abx_rule *rule, const struct abx_url *url)
{
	char *const *allow = rule->lists[ABX_ALLOW_URLS], *const *deny = rule->lists[ABX_DENY_URLS];

	for (; deny && *deny; deny++)
		if (abx_url_glob_denies(*deny, url))
			return true;
	for (; allow && *allow; allow++)
		if (abx_url_glob_allows(*allow, url))
			return false;
	return rule->lists[ABX_ALLOW_URLS] != NULL;
}

int abx_rule_allows_url(const struct abx_rule *rule, const char *text, struct abx_err *err)
{
	struct abx_url url;
	const char *wrong;
	bool denied, is_private;

	if (!rule->lists[ABX_ALLOW_URLS] && !rule->lists[ABX_DENY_URLS] && !rule->block_private_networks)
		return 0;
	wrong = abx_url_parse(text, &url);
	if (wrong)
		return abx_err_rule(err, ABX_E_URL, rule->values_rule, "The URL %s", wrong);
	denied = url_denied(rule, &url);
	is_private = rule->block_private_networks && abx_url_is_private(&url);
	abx_url_release(&url);
	if (is_private)
		return refuse(rule, ABX_E_URL, err, "The policy does not allow URLs of private networks");
	return denied ? refuse(rule, ABX_E_URL, err, "The policy does not allow this URL") : 0;
}
