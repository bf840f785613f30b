/*
 * Whether a rule allows a value. Each returns 0, or -1 with the error kind of its sort and the rule "policy:endpoints.<id>"; a rule without lists
 * of that sort allows everything. A deny list beats an allow list.
 */
#ifndef ABX_EVALUATE_H
#define ABX_EVALUATE_H

#include "policy/policy.h"

/* The globs are matched with the argv joined by spaces. */
int abx_rule_allows_command(const struct abx_rule *rule, char *const *argv, struct abx_err *err);

/*
 * What is given to /bin/sh -c. An allow list is satisfied by a match of "/bin/sh -c <text>", or when the text is one plain command, without anything that a
 * shell makes more of than words, that matches. A deny list refuses when that, or any part between the shell's separators, matches: quoted or not, so that
 * what is handed on to another shell is looked at as well.
 */
int abx_rule_allows_shell_text(const struct abx_rule *rule, const char *text, struct abx_err *err);

/* The extension of a file's name (without directories), without regard to case. */
int abx_rule_allows_extension(const struct abx_rule *rule, const char *name, struct abx_err *err);

int abx_rule_allows_language(const struct abx_rule *rule, const char *language, struct abx_err *err);
int abx_rule_allows_variable(const struct abx_rule *rule, const char *name, struct abx_err *err);

/*
 * A URL, as far as it can be told without asking for the host's addresses. One that a browser may read in another way (a user name, a backslash, an
 * encoded host, …) is refused as soon as the rule has lists, or blocks private networks.
 */
int abx_rule_allows_url(const struct abx_rule *rule, const char *url, struct abx_err *err);

#endif
