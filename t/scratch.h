/* A directory of a test's own, removed when the test ends. */
#ifndef T_SCRATCH_H
#define T_SCRATCH_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[PATH_MAX];
static pid_t scratch_owner;

static int scratch_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)at;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static void scratch_remove(void)
{
	/* A forked child that exits leaves it to its parent. */
	if (getpid() == scratch_owner)
		nftw(scratch, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Make it, and go there. Its path, without links, is in `scratch`. */
static inline void scratch_enter(void)
{
	const char *tmp = getenv("TMPDIR");
	char *made;

	snprintf(scratch, sizeof(scratch), "%s/abx-test-XXXXXX", tmp ? tmp : "/tmp");
	made = mkdtemp(scratch);
	if (!made || chdir(made) < 0 || !getcwd(scratch, sizeof(scratch))) {
		puts("Bail out! no temporary directory");
		exit(1);
	}
	scratch_owner = getpid();
	atexit(scratch_remove);
}

#endif
