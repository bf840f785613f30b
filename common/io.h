/*
 * The wall between requests and the transport: FastCGI in a responder (fcgi_io.h), memory in unit tests (memory_io.h).
 */
#ifndef ABX_IO_H
#define ABX_IO_H

#include <sys/types.h>

struct abx_io;

struct abx_io_ops {
	/* Read body bytes: the number read, 0 at the end, -1 on failure. */
	ssize_t (*read)(struct abx_io *io, void *buf, size_t len);
	/* Write response bytes (header block first). 0, or -1 when the web server has gone or does not read. */
	int (*write)(struct abx_io *io, const void *data, size_t len);
	/* Write bytes of a file. As write, and -1 as well when the file has fewer or cannot be read: the response is broken then. */
	int (*send_file)(struct abx_io *io, int fd, int64_t offset, int64_t length);
	/* Send what is buffered now. */
	int (*flush)(struct abx_io *io);
	/* Break the connection, so that the client sees a response that was cut short, never one that looks whole. */
	void (*abort)(struct abx_io *io);
	/* Send the end of the request and close; `params` and `client_fd` are gone then. Done by whoever serves, unless it was done before. */
	void (*end)(struct abx_io *io);
};

struct abx_io {
	const struct abx_io_ops *ops;
	char *const *params; /* CGI variables, "NAME=value", NULL-terminated; valid until the request ends */
	int client_fd;       /* polled for POLLRDHUP while a child runs; -1: none */
};

#endif
