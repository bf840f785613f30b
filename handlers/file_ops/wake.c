#include "handlers/file_ops/wake.h"

#include <linux/magic.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/auto.h"

#define CHANGES                                                                                                         \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* File systems that change by nobody but this kernel. */
static bool tells_all(int fd)
{
	static const unsigned local[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
					  TMPFS_MAGIC,	    OVERLAYFS_SUPER_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ABX_N(local); i++)
		if ((unsigned)fs.f_type == local[i])
			return true;
	return false;
}

void wake_release(struct wake *wake)
{
	if (wake->fd >= 0)
		close(wake->fd);
	*wake = (struct wake)WAKE_INIT;
}

void wake_reset(struct wake *wake)
{
	wake_release(wake);
	wake->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	wake->complete = wake->fd >= 0;
}

void wake_add(struct wake *wake, int dir_fd)
{
	char link[32];

	if (wake->fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	if (inotify_add_watch(wake->fd, link, CHANGES | IN_ONLYDIR | IN_EXCL_UNLINK) < 0 || !tells_all(dir_fd))
		wake->complete = false;
}

void wake_drain(struct wake *wake)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	while (wake->fd >= 0 && read(wake->fd, events, sizeof(events)) > 0)
		;
}
