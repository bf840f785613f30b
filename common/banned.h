/*
 * Functions that code outside the doors must not call: files are opened by paths.c, children started by spawn.c, and the rest is replaced by
 * something that cannot overflow, race or leak. Included by handlers/ on the command line, after the system's own headers.
 */
#ifndef ABX_BANNED_H
#define ABX_BANNED_H

#endif
