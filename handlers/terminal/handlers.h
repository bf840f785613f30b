/* The handlers of the terminal group. */
#ifndef ABX_HANDLERS_TERMINAL_H
#define ABX_HANDLERS_TERMINAL_H

#include "handlers/tables.h"

ABX_HANDLER(pty_create);
ABX_HANDLER(pty_list);
ABX_HANDLER(pty_get);
ABX_HANDLER(pty_resize);
ABX_HANDLER(pty_delete);

#endif
