/* Weak stand-ins for what the policy module defines. Where its own definitions are linked, these are not used. */
#include <string.h>

#include "common/glob.h"
#include "common/paths.h"

__attribute__((weak)) bool abx_roots_deny(const struct abx_roots *roots ABX_UNUSED, const char *path ABX_UNUSED)
{
	return false;
}

/* Stars and question marks alone. */
__attribute__((weak)) bool abx_glob_match(const char *pattern, const char *text)
{
	for (; *pattern; pattern++, text++) {
		if (*pattern == '*') {
			for (; *text; text++)
				if (abx_glob_match(pattern + 1, text))
					return true;
			return abx_glob_match(pattern + 1, text);
		}
		if (!*text || (*pattern != '?' && *pattern != *text))
			return false;
	}
	return !*text;
}
