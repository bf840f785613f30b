/*
 * Globs with the meaning of Python's fnmatch.fnmatchcase, on characters (UTF-8; a byte that is not part of a valid character is a character of its own): `*`, `?`,
 * `[seq]`, `[!seq]`; no escape by backslash, `[^` is literal, a leading dot is nothing special. Time is linear in pattern × text.
 */
#ifndef ABX_GLOB_H
#define ABX_GLOB_H

#include <stdbool.h>

/* Names, commands, variables: `*` matches everything, '/' too. */
bool abx_glob_match(const char *pattern, const char *text);

/* As abx_glob_match, but for the case of ASCII letters. */
bool abx_glob_match_nocase(const char *pattern, const char *text);

/*
 * Absolute paths: `*`, `?` and sets do not match '/'; `**` as a whole component matches any number of components, none too, so that
 * a pattern that ends in slash and two stars covers the directory itself and all below it. A pattern without any of `*?[` is a tree: it covers the path itself and all below.
 */
bool abx_glob_path(const char *pattern, const char *path);

#endif
