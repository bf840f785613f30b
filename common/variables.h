/* Names of environment variables that have a rule of their own, whatever a policy says. */
#ifndef ABX_VARIABLES_H
#define ABX_VARIABLES_H

#include <stdbool.h>

#include "common/err.h"

/* Whether the variable is one of the server's own, which no request may set for a child. */
bool abx_variable_is_own(const char *name);

/* Whether POST /env may set it. ABX_E_VARIABLE, or ABX_E_VALUE where it is no name at all. */
int abx_variable_check_set(const char *name, struct abx_err *err);

/* Whether the name tells that the value is somebody's secret: GET /env does not show it. */
bool abx_variable_is_secret(const char *name);

#endif
