#include "common/fcgi_io.h"

#include <fcgiapp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/auto.h"

/*
 * lighttpd passes on what it reads from us without a detour over a temporary file as long as that is at most 64 KiB at a time, and it reads all
 * that the socket holds. So the socket's buffer is kept smaller than that (the kernel takes twice the figure, and lets the last piece overlap), and records
 * are small enough for one that was read in part to fit as well.
 */
#define SEND_BUFFER 24576
#define RECORD_MAX  16376
#define RECORDS     4 /* that are sent in one go */

/* The same for records that a file's pages go into as they are: whole pages. */
#define FILE_RECORD 32768

/* From here on a write bypasses libfcgi's 8 KiB buffer. */
#define DIRECT_MIN 4096

/* A web server that takes nothing for so long is given up: the thread and the work behind it are freed. */
#define SEND_TIMEOUT_S 60

struct abx_fcgi {
	struct abx_io io;
	FCGX_Request request;
	bool patient; /* SEND_TIMEOUT_S is set: done before the first write that can block */
	bool drained; /* the end of the input was read */
	bool ended;   /* abx_fcgi_end was called */
};

static ssize_t fcgi_read(struct abx_io *io, void *buf, size_t len)
{
	struct abx_fcgi *fcgi = (struct abx_fcgi *)io;
	int n = FCGX_GetStr(buf, len > INT_MAX ? INT_MAX : (int)len, fcgi->request.in);

	if (n == 0 && FCGX_GetError(fcgi->request.in))
		return -1;
	if (n == 0)
		fcgi->drained = true;
	return n;
}

/* Short answers fit the socket's buffer; whoever writes more may meet a reader that has stopped. */
static void limit_patience(struct abx_fcgi *fcgi)
{
	struct timeval patience = { .tv_sec = SEND_TIMEOUT_S };
	int buffer = SEND_BUFFER;

	if (fcgi->patient)
		return;
	setsockopt(fcgi->request.ipcFd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fcgi->request.ipcFd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	fcgi->patient = true;
}

static int fcgi_flush(struct abx_io *io)
{
	struct abx_fcgi *fcgi = (struct abx_fcgi *)io;

	limit_patience(fcgi);
	return FCGX_FFlush(fcgi->request.out) < 0 ? -1 : 0;
}

static int writev_all(int fd, struct iovec *iov, int n)
{
	while (n > 0) {
		ssize_t done = writev(fd, iov, n);

		if (done < 0)
			return -1;
		while (n > 0 && (size_t)done >= iov->iov_len) {
			done -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
	return 0;
}

/* The header of a STDOUT record (FastCGI specification, section 3.3). */
static void fill_header(const FCGX_Request *request, size_t len, unsigned char header[8])
{
	const unsigned char bytes[8] = {
		1, 6, (unsigned char)(request->requestId >> 8), (unsigned char)request->requestId,
		(unsigned char)(len >> 8), (unsigned char)len, (unsigned char)(-len & 7), 0,
	};

	memcpy(header, bytes, sizeof(bytes));
}

/* Records straight from the caller's memory, as many as go at once. Returns the bytes that they hold, or 0. */
static size_t write_records(const FCGX_Request *request, const char *data, size_t len)
{
	static const char padding[8];
	unsigned char headers[RECORDS][8];
	struct iovec iov[3 * RECORDS];
	size_t done = 0;
	int n = 0;

	for (size_t i = 0; i < RECORDS && done < len; i++) {
		size_t size = len - done < RECORD_MAX ? len - done : RECORD_MAX;
		union {
			const void *given;
			void *wanted; /* writev does not write to what it sends, but its type says so */
		} base = { .given = data + done }, zeros = { .given = padding };

		fill_header(request, size, headers[i]);
		iov[n++] = (struct iovec){ headers[i], sizeof(headers[i]) };
		iov[n++] = (struct iovec){ base.wanted, size };
		if (headers[i][6])
			iov[n++] = (struct iovec){ zeros.wanted, headers[i][6] };
		done += size;
	}
	return writev_all(request->ipcFd, iov, n) < 0 ? 0 : done;
}

static int fcgi_write(struct abx_io *io, const void *data, size_t len)
{
	struct abx_fcgi *fcgi = (struct abx_fcgi *)io;
	const char *p = data;

	if (len < DIRECT_MIN)
		return FCGX_PutStr(p, (int)len, fcgi->request.out) == (int)len ? 0 : -1;
	if (fcgi_flush(io) < 0)
		return -1;
	while (len > 0) {
		size_t done = write_records(&fcgi->request, p, len);

		if (done == 0)
			return -1;
		p += done;
		len -= done;
	}
	return 0;
}

/* Exactly `len` bytes of the file. */
static int send_pages(int socket, int fd, off_t *offset, size_t len)
{
	while (len > 0) {
		ssize_t n = sendfile(socket, fd, offset, len);

		if (n <= 0)
			return -1;
		len -= (size_t)n;
	}
	return 0;
}

static int send_all(int socket, const void *data, size_t len)
{
	return send(socket, data, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

static int fcgi_send_file(struct abx_io *io, int fd, int64_t offset, int64_t length)
{
	static const char padding[8];
	struct abx_fcgi *fcgi = (struct abx_fcgi *)io;
	int socket = fcgi->request.ipcFd;
	off_t at = offset;

	if (fcgi_flush(io) < 0)
		return -1;
	while (length > 0) {
		size_t size = length < FILE_RECORD ? (size_t)length : FILE_RECORD;
		unsigned char header[8];

		fill_header(&fcgi->request, size, header);
		if (send_all(socket, header, sizeof(header)) < 0 || send_pages(socket, fd, &at, size) < 0 ||
		    (header[6] && send_all(socket, padding, header[6]) < 0))
			return -1;
		length -= (int64_t)size;
	}
	return 0;
}

static void fcgi_abort(struct abx_io *io)
{
	struct abx_fcgi *fcgi = (struct abx_fcgi *)io;

	if (fcgi->request.ipcFd >= 0)
		shutdown(fcgi->request.ipcFd, SHUT_RDWR);
}

static void fcgi_end(struct abx_io *io)
{
	abx_fcgi_end((struct abx_fcgi *)io);
}

int abx_fcgi_init(void)
{
	return FCGX_Init() == 0 ? 0 : -1;
}

struct abx_fcgi *abx_fcgi_new(void)
{
	static const struct abx_io_ops ops = { fcgi_read, fcgi_write, fcgi_send_file, fcgi_flush, fcgi_abort, fcgi_end };
	struct abx_fcgi *fcgi = calloc(1, sizeof(*fcgi));

	if (!fcgi)
		return NULL;
	fcgi->io.ops = &ops;
	/* No listening socket: libfcgi never accepts by itself, see abx_fcgi_begin. */
	if (FCGX_InitRequest(&fcgi->request, -1, 0) != 0) {
		free(fcgi);
		return NULL;
	}
	return fcgi;
}

void abx_fcgi_free(struct abx_fcgi *fcgi)
{
	free(fcgi);
}

struct abx_io *abx_fcgi_begin(struct abx_fcgi *fcgi, int fd)
{
	/*
	 * libfcgi takes a connection that is there as one that was kept alive, and reads the next request from it. So the
	 * accept is ours: close-on-exec at birth, the peer known before a byte is read, and a drain that loses no connection.
	 */
	fcgi->request.ipcFd = fd;
	fcgi->request.keepConnection = 1;
	if (FCGX_Accept_r(&fcgi->request) != 0)
		return NULL;
	fcgi->patient = fcgi->drained = fcgi->ended = false;
	fcgi->io.params = fcgi->request.envp;
	fcgi->io.client_fd = fcgi->request.ipcFd;
	return &fcgi->io;
}

void abx_fcgi_end(struct abx_fcgi *fcgi)
{
	const char *length;
	char byte;

	if (fcgi->ended)
		return;
	fcgi->ended = true;
	length = FCGX_GetParam("CONTENT_LENGTH", fcgi->request.envp);
	/* Without a body the end of the input came with the variables. */
	if (!fcgi->drained && (!length || strcmp(length, "0") == 0))
		fcgi_read(&fcgi->io, &byte, 1);
	/*
	 * A "detached" connection is closed at once. Otherwise libfcgi shuts it down, and waits for the web server to close its
	 * end, lest unread input makes the kernel throw away the answer; with all input read there is nothing to wait for.
	 */
	fcgi->request.detached = fcgi->drained;
	FCGX_Finish_r(&fcgi->request);
}
