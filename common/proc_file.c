#include "common/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/auto.h"

#define CHUNK 4096

int abx_proc_file_read(const char *path, struct abx_strbuf *out)
{
	abx_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char chunk[CHUNK];
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0)
			abx_strbuf_add(out, chunk, (size_t)n);
	}
	if (!out->failed)
		return 0;
	errno = EFBIG;
	return -1;
}
