#include "common/memory_io.h"

#include <string.h>
#include <unistd.h>

static ssize_t memory_read(struct abx_io *io, void *buf, size_t len)
{
	struct abx_memory_io *mem = (struct abx_memory_io *)io;
	size_t n = mem->body_len - mem->body_pos;

	if (n > len)
		n = len;
	if (mem->chunk && n > mem->chunk)
		n = mem->chunk;
	if (n)
		memcpy(buf, mem->body + mem->body_pos, n);
	mem->body_pos += n;
	return (ssize_t)n;
}

static int memory_write(struct abx_io *io, const void *data, size_t len)
{
	struct abx_memory_io *mem = (struct abx_memory_io *)io;

	if (mem->aborted || (mem->fail_after && mem->out.len + len > mem->fail_after))
		return -1;
	abx_strbuf_add(&mem->out, data, len);
	return mem->out.failed ? -1 : 0;
}

static int memory_send_file(struct abx_io *io, int fd, int64_t offset, int64_t length)
{
	char piece[4096];

	while (length > 0) {
		ssize_t n = pread(fd, piece, length < (int64_t)sizeof(piece) ? (size_t)length : sizeof(piece), offset);

		if (n <= 0 || memory_write(io, piece, (size_t)n) < 0)
			return -1;
		offset += n;
		length -= n;
	}
	return 0;
}

static int memory_flush(struct abx_io *io)
{
	return ((struct abx_memory_io *)io)->aborted ? -1 : 0;
}

static void memory_abort(struct abx_io *io)
{
	((struct abx_memory_io *)io)->aborted = true;
}

static void memory_end(struct abx_io *io)
{
	io->client_fd = -1;
}

void abx_memory_io_init(struct abx_memory_io *mem, char *const *params, const char *body, size_t body_len)
{
	static const struct abx_io_ops ops = { memory_read, memory_write, memory_send_file, memory_flush, memory_abort, memory_end };

	*mem = (struct abx_memory_io){
		.io = { .ops = &ops, .params = params, .client_fd = -1 },
		.body = body,
		.body_len = body_len,
		.out = ABX_STRBUF_INIT_MAX((size_t)64 << 20),
	};
}
