#include "common/variables.h"

#include <string.h>
#include <strings.h>

#include "common/spawn.h"

bool abx_variable_is_own(const char *name)
{
	return strncasecmp(name, "ABX_", 4) == 0 || abx_env_is_private(name);
}

int abx_variable_check_set(const char *name, struct abx_err *err)
{
	static const char *const fixed[] = { "PATH", "HOME", "USER", "SHELL" };

	if (!*name || strchr(name, '='))
		return abx_err_set(err, ABX_E_VALUE, "a name cannot be empty or hold '='");
	for (size_t i = 0; i < ABX_N(fixed); i++)
		if (strcasecmp(name, fixed[i]) == 0)
			return abx_err_set(err, ABX_E_VARIABLE, "'%s' cannot be set", name);
	if (abx_variable_is_own(name))
		return abx_err_set(err, ABX_E_VARIABLE, "'%s' cannot be set: it is one of the server's own", name);
	return 0;
}

bool abx_variable_is_secret(const char *name)
{
	static const char *const words[] = { "TOKEN", "SECRET", "KEY", "PASSWORD", "CREDENTIAL" };

	for (size_t i = 0; i < ABX_N(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}
