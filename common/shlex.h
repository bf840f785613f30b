/* Shell words. */
#ifndef ABX_SHLEX_H
#define ABX_SHLEX_H

#include "common/err.h"

/*
 * Split a command as POSIX shlex.split does (Python: shlex.split(s), comments off). Returns a NULL-terminated array, freed by
 * abx_argv_free, or NULL with ABX_E_SHELL_SYNTAX whose message is Python's ("No closing quotation", "No escaped character").
 */
char **abx_shlex_split(const char *command, struct abx_err *err);
void abx_argv_free(char **argv);

#endif
