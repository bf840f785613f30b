/* The handlers of the system group. */
#ifndef ABX_HANDLERS_SYSTEM_H
#define ABX_HANDLERS_SYSTEM_H

#include "handlers/tables.h"

ABX_HANDLER(system_info);
ABX_HANDLER(system_metrics);
ABX_HANDLER(env_get);
ABX_HANDLER(env_set);
ABX_HANDLER(ports);
ABX_HANDLER(packages);

#endif
