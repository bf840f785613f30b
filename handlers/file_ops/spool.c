#include "handlers/file_ops/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/ids.h"

static int spool_fd = -1;

int spool_init(const char *dir, struct abx_err *err)
{
	spool_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return spool_fd < 0 ? abx_err_errno(err, errno, "The spool directory %s", dir) : 0;
}

int spool_directory(void)
{
	return spool_fd;
}

/* For a file system without O_TMPFILE. */
static int open_named(void)
{
	char name[32], digits[17];
	int fd;

	abx_id_hex(digits, 16);
	snprintf(name, sizeof(name), "abx-%s.tmp", digits);
	fd = openat(spool_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlinkat(spool_fd, name, 0);
	return fd;
}

int spool_open(struct abx_err *err)
{
	int fd = openat(spool_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		fd = open_named();
	if (fd < 0)
		abx_err_errno(err, errno, "Cannot make a file in the spool directory");
	return fd;
}
