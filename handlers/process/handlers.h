/* The handlers of the process group. */
#ifndef ABX_HANDLERS_PROCESS_H
#define ABX_HANDLERS_PROCESS_H

#include "handlers/tables.h"

ABX_HANDLER(shell);
ABX_HANDLER(shell_stream);

#endif
