#include "common/workdir.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/scratch.h"
#include "t/tap.h"

static int entries(const char *path)
{
	abx_auto_dir DIR *dir = opendir(path);
	int n = -2;

	while (dir && readdir(dir))
		n++;
	return n;
}

static void test_use(void)
{
	struct abx_err err = ABX_ERR_INIT;
	char name[PATH_MAX + 64], target[64] = "";
	struct stat st;

	mkdir("run", 0700);
	{
		abx_auto_workdir struct abx_workdir dir = ABX_WORKDIR_INIT, other = ABX_WORKDIR_INIT;

		is_int(abx_workdir_make("run", &dir, &err), 0, "made");
		is_int(abx_workdir_make("run", &other, &err), 0, "and another one");
		is_int(entries("run"), 2, "are two");
		ok(stat(dir.path, &st) == 0 && S_ISDIR(st.st_mode), "is a directory");
		is_int(st.st_mode & 0777, 0700, "of its owner alone");
		is_int(abx_workdir_write(&dir, "file", "a\0b", 3, &err), 0, "a file");
		is_int(abx_workdir_link(&dir, "link", "/nowhere at all", &err), 0, "a link");
		snprintf(name, sizeof(name), "%s/file", dir.path);
		ok(stat(name, &st) == 0 && st.st_size == 3, "the file has its bytes");
		snprintf(name, sizeof(name), "%s/link", dir.path);
		ok(readlink(name, target, sizeof(target) - 1) > 0, "the link is there");
		is_str(target, "/nowhere at all", "with its target");
		ok(mkdirat(dir.fd, "tree", 0700) == 0 && mkdirat(dir.fd, "tree/deep", 0500) == 0 && mkfifoat(dir.fd, "tree/fifo", 0600) == 0,
		   "and what others put there");
		is_int(abx_workdir_write(&dir, "link", "x", 1, &err), -1, "a link is not written through");
		is_int(abx_workdir_write(&dir, "file", "x", 1, &err), -1, "nor a file twice");
	}
	is_int(entries("run"), 0, "nothing is left");
	abx_auto_workdir struct abx_workdir none = ABX_WORKDIR_INIT;
	is_int(abx_workdir_make("missing", &none, &err), -1, "a run directory that is gone");
	is_int(err.os_errno, ENOENT, "is told");
}

static void test_sweep(void)
{
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_workdir struct abx_workdir ours = ABX_WORKDIR_INIT;
	pid_t pid;

	is_int(abx_workdir_make("run", &ours, &err), 0, "one of ours");
	mkdir("run/work-x", 0700);
	mkdir("run/other", 0700);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct abx_workdir dir = ABX_WORKDIR_INIT;

		/* It dies and leaves all. */
		_exit(abx_workdir_make("run", &dir, &err) || abx_workdir_write(&dir, "file", "", 0, &err) ||
		      abx_workdir_link(&dir, "link", "other", &err) || mkdirat(dir.fd, "tree", 0700));
	}
	waitpid(pid, NULL, 0);
	is_int(entries("run"), 4, "a dead process has left one");
	abx_workdir_sweep("run");
	is_int(entries("run"), 3, "which is swept away");
	ok(access(ours.path, F_OK) == 0, "ours is still there");
	ok(access("run/work-x", F_OK) == 0 && access("run/other", F_OK) == 0, "and so is what is nobody's");
	abx_workdir_sweep("missing");
}

int main(void)
{
	scratch_enter();
	test_use();
	test_sweep();
	return done_testing();
}
