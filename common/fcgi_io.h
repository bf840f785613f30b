/* FastCGI: the only module that knows libfcgi. */
#ifndef ABX_FCGI_IO_H
#define ABX_FCGI_IO_H

#include "common/io.h"

struct abx_fcgi;

/* Once per process, before the first thread. 0 or -1. */
int abx_fcgi_init(void);

/* One connection slot: each thread has its own. NULL when out of memory. */
struct abx_fcgi *abx_fcgi_new(void);
void abx_fcgi_free(struct abx_fcgi *fcgi);

/*
 * Take over the accepted connection `fd` and read the request's variables. Returns the transport of the request, valid until
 * abx_fcgi_end, or NULL when the peer spoke no FastCGI or left (`fd` is closed then).
 */
struct abx_io *abx_fcgi_begin(struct abx_fcgi *fcgi, int fd);

/* Send the end of the request, and close. A second call does nothing. */
void abx_fcgi_end(struct abx_fcgi *fcgi);

#endif
