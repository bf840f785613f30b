/* A transport in memory, for unit tests: a request is an array of CGI variables and a body; the response is collected. */
#ifndef ABX_MEMORY_IO_H
#define ABX_MEMORY_IO_H

#include <stdbool.h>

#include "common/io.h"
#include "common/strbuf.h"

struct abx_memory_io {
	struct abx_io io;
	const char *body;
	size_t body_len, body_pos;
	size_t chunk;           /* read and write at most so many bytes at once; 0: no limit */
	size_t fail_after;      /* writes fail once so many bytes were taken; 0: never */
	struct abx_strbuf out;  /* released by the test */
	bool aborted;
};

/* `params` and `body` are borrowed. */
void abx_memory_io_init(struct abx_memory_io *mem, char *const *params, const char *body, size_t body_len);

#endif
