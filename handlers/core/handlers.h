/* The handlers of the core group. */
#ifndef ABX_HANDLERS_CORE_H
#define ABX_HANDLERS_CORE_H

#include "handlers/tables.h"

ABX_HANDLER(health);
ABX_HANDLER(capabilities);
ABX_HANDLER(capabilities_check);

#endif
