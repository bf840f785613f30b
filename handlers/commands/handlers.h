/* The handlers of the commands group. */
#ifndef ABX_HANDLERS_COMMANDS_H
#define ABX_HANDLERS_COMMANDS_H

#include "handlers/tables.h"

ABX_HANDLER(commands_list);
ABX_HANDLER(commands_run);
ABX_HANDLER(custom_route);

#endif
