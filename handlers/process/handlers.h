/* The handlers of the process group. */
#ifndef ABX_HANDLERS_PROCESS_H
#define ABX_HANDLERS_PROCESS_H

#include "handlers/tables.h"

ABX_HANDLER(shell);
ABX_HANDLER(shell_stream);
ABX_HANDLER(process_start);
ABX_HANDLER(process_list);
ABX_HANDLER(process_get);
ABX_HANDLER(process_signal);
ABX_HANDLER(process_stdin);
ABX_HANDLER(process_output);

#endif
