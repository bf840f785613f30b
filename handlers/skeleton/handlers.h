/* The handlers of the skeleton group: copy this folder to begin a group of your own (HACKING.md, "Add a group"). */
#ifndef ABX_HANDLERS_SKELETON_H
#define ABX_HANDLERS_SKELETON_H

#include "handlers/tables.h"

ABX_HANDLER(skeleton_greet);

#endif
