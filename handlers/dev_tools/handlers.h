/* The handlers of the dev_tools group. */
#ifndef ABX_HANDLERS_DEV_TOOLS_H
#define ABX_HANDLERS_DEV_TOOLS_H

#include "handlers/tables.h"

ABX_HANDLER(code_run);
ABX_HANDLER(git_status);
ABX_HANDLER(git_diff);

#endif
