#include "handlers/abxctl/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/auto.h"

static mode_t default_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* Where the bytes go first: beside `path`, so that a rename puts them in its place. */
static int make_temporary(const char *path, mode_t mode, char **ret_name)
{
	const char *slash = strrchr(path, '/');
	int dir_len = slash ? (int)(slash + 1 - path) : 0, fd;
	abx_auto_free char *name = NULL;

	if (asprintf(&name, "%.*s.abxctl-XXXXXX", dir_len, path) < 0) {
		name = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0 && fchmod(fd, mode) < 0) {
		close(fd);
		unlink(name);
		return -1;
	}
	if (fd >= 0)
		*ret_name = ABX_STEAL(name);
	return fd;
}

/* Takes `path`, allocated. */
static int open_new(char *path, mode_t mode, struct store *ret_store)
{
	ret_store->path = path;
	int fd = path ? make_temporary(path, mode, &ret_store->temporary) : -1;

	if (fd < 0)
		return -1;
	ret_store->file = fdopen(fd, "w");
	if (!ret_store->file)
		close(fd);
	return ret_store->file ? 0 : -1;
}

int store_open(const char *path, struct store *ret_store)
{
	abx_auto_free char *real = realpath(path, NULL); /* a link stays one */
	struct stat st;

	if (!real)
		return errno == ENOENT ? open_new(strdup(path), default_mode(), ret_store) : -1;
	if (stat(real, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return open_new(ABX_STEAL(real), st.st_mode & 07777, ret_store);
	/* A pipe or a device; a directory is refused here. */
	ret_store->file = fopen(real, "we");
	return ret_store->file ? 0 : -1;
}

int store_commit(struct store *store)
{
	FILE *file = ABX_STEAL(store->file);

	if (fclose(file) != 0)
		return -1;
	if (!store->temporary)
		return 0;
	if (rename(store->temporary, store->path) < 0)
		return -1;
	free(ABX_STEAL(store->temporary));
	return 0;
}

void store_release(struct store *store)
{
	if (store->file)
		fclose(store->file);
	if (store->temporary)
		unlink(store->temporary);
	free(store->temporary);
	free(store->path);
}
