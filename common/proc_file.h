/* Small files that the kernel makes up as they are read (/proc, /sys): their size is not known before. */
#ifndef ABX_PROC_FILE_H
#define ABX_PROC_FILE_H

#include "common/strbuf.h"

/*
 * Append the content of `path`, up to the buffer's ceiling. 0, or -1 with errno (EFBIG: there is more). Never for a
 * path that a request names.
 */
int abx_proc_file_read(const char *path, struct abx_strbuf *out);

#endif
