#include "common/shlex.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/auto.h"

struct words {
	char **argv;   /* NULL-terminated at all times */
	size_t n, alloc;
	char *word;    /* the word under construction, NUL-terminated when it is taken */
	size_t len;
	bool begun;    /* a word has begun, be it an empty quoted one */
};

static void words_release(struct words *w)
{
	abx_argv_free(w->argv);
	free(w->word);
}

void abx_argv_free(char **argv)
{
	if (!argv)
		return;
	for (char **arg = argv; *arg; arg++)
		free(*arg);
	free(argv);
}

/* Move the word under construction, if any, to the list. */
static int words_take(struct words *w)
{
	char *copy;

	if (!w->begun)
		return 0;
	if (w->n + 2 > w->alloc) {
		size_t alloc = w->alloc * 2;
		char **grown = realloc(w->argv, alloc * sizeof(*grown));

		if (!grown)
			return -1;
		w->argv = grown;
		w->alloc = alloc;
	}
	copy = strndup(w->word, w->len);
	if (!copy)
		return -1;
	w->argv[w->n++] = copy;
	w->argv[w->n] = NULL;
	w->len = 0;
	w->begun = false;
	return 0;
}

static void words_put(struct words *w, char c)
{
	w->word[w->len++] = c;
	w->begun = true;
}

/*
 * Take the rest of a quotation that `quote` began. Returns where it ended (behind the closing quote), or NULL with *ret_what
 * saying what is missing. Inside double quotes a backslash is special before itself and the quote only.
 */
static const char *words_quoted(struct words *w, const char *p, char quote, const char **ret_what)
{
	w->begun = true;
	for (; *p && *p != quote; p++) {
		if (*p != '\\' || quote != '"') {
			words_put(w, *p);
			continue;
		}
		p++;
		if (!*p) {
			*ret_what = "No escaped character";
			return NULL;
		}
		if (*p != '"' && *p != '\\')
			words_put(w, '\\');
		words_put(w, *p);
	}
	if (!*p) {
		*ret_what = "No closing quotation";
		return NULL;
	}
	return p + 1;
}

/* Returns 0, or -1 with *ret_what: NULL stands for out of memory. */
static int words_split(struct words *w, const char *p, const char **ret_what)
{
	while (*p) {
		char c = *p++;

		if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
			if (words_take(w) < 0)
				return -1;
		} else if (c == '\'' || c == '"') {
			p = words_quoted(w, p, c, ret_what);
			if (!p)
				return -1;
		} else if (c == '\\') {
			if (!*p) {
				*ret_what = "No escaped character";
				return -1;
			}
			words_put(w, *p++);
		} else {
			words_put(w, c);
		}
	}
	return words_take(w);
}

char **abx_shlex_split(const char *command, struct abx_err *err)
{
	__attribute__((cleanup(words_release))) struct words w = { 0 };
	const char *what = NULL;

	w.alloc = 16;
	w.argv = calloc(w.alloc, sizeof(*w.argv));
	w.word = malloc(strlen(command) + 1); /* no word is longer than the command */
	if (!w.argv || !w.word || words_split(&w, command, &what) < 0) {
		abx_err_set(err, what ? ABX_E_SHELL_SYNTAX : ABX_E_INTERNAL, "%s", what ? what : "Out of memory");
		return NULL;
	}
	return ABX_STEAL(w.argv);
}
