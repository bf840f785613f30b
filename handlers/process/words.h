/* The argument "command" as words. */
#ifndef PROCESS_WORDS_H
#define PROCESS_WORDS_H

#include "common/request.h"
#include "common/spawn.h"

/*
 * The words of req's command, freed by words_release. NULL: it is blank (ABX_E_VALUE), or cannot be split, which is a failure of the kind `unsplit`: /shell and
 * the others tell it differently (contract, section 5 "process").
 */
char **words_of_command(const struct abx_request *req, enum abx_error unsplit, struct abx_err *err);
void words_release(char ***words);
#define auto_words __attribute__((cleanup(words_release)))

#endif
