#include "handlers/process/words.h"

#include "common/shlex.h"

void words_release(char ***words)
{
	abx_argv_free(*words);
}

char **words_of_command(const struct abx_request *req, enum abx_error unsplit, struct abx_err *err)
{
	auto_words char **words = abx_shlex_split(abx_arg_string(req, "command"), err);

	if (!words) {
		if (err->kind == ABX_E_SHELL_SYNTAX)
			err->kind = unsplit;
		return NULL;
	}
	if (!words[0]) {
		abx_err_set(err, ABX_E_VALUE, "command: must not be blank");
		return NULL;
	}
	return ABX_STEAL(words);
}
