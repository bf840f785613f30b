/* Large answers that must be whole before their first byte goes out lie in a file without a name. */
#ifndef ABX_FILE_OPS_SPOOL_H
#define ABX_FILE_OPS_SPOOL_H

#include "common/err.h"

/* Once, before the first thread: remember the spool directory. */
int spool_init(const char *dir, struct abx_err *err);

/* The directory's descriptor, for the cage. */
int spool_directory(void);

/* A new empty file, gone when it is closed. Its descriptor, or -1. */
int spool_open(struct abx_err *err);

#endif
