/* Commands that are programs: what a manifest describes. */
#ifndef ABX_COMMANDS_PROGRAM_H
#define ABX_COMMANDS_PROGRAM_H

#include "handlers/commands/custom.h"

struct program {
	char **argv; /* NULL-terminated */
	int dir_fd;  /* the directory of the manifest */
};

/* command->data is a struct program. */
extern const struct command_kind program_kind;

#endif
