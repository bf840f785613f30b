/* The tree in which the paths door is tested, and what its tests share. */
#ifndef T_UNIT_PATHS_TREE_H
#define T_UNIT_PATHS_TREE_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/paths.h"
#include "t/scratch.h"
#include "t/tap.h"

#define NOFOLLOW ABX_PATH_NOFOLLOW
#define MISSING  ABX_PATH_MISSING
#define PARENTS  ABX_PATH_PARENTS

/* The allowed tree is <scratch>/base; <scratch>/outside is beside it. */
static struct abx_roots roots;
static char base[PATH_MAX + 16];

/* A path of the tests: "%" stands for the base directory. Four can be in use at a time. */
static inline const char *at(const char *path)
{
	static _Thread_local char text[4][3 * PATH_MAX];
	static _Thread_local unsigned next;
	char *out = text[next++ % 4];
	size_t len = 0;

	for (; *path; path++) {
		if (*path == '%')
			len += (size_t)sprintf(out + len, "%s", base);
		else
			out[len++] = *path;
	}
	out[len] = '\0';
	return out;
}

static inline void put(const char *path, const char *content)
{
	int fd = open(at(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, content, strlen(content)) < 0) {
		perror(path);
		exit(1);
	}
	close(fd);
}

/* The content of a file, or NULL. */
static inline const char *get(const char *path)
{
	static char content[4096];
	int fd = open(at(path), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, content, sizeof(content) - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return NULL;
	content[n] = '\0';
	return content;
}

static inline void make_dir(const char *path)
{
	if (mkdir(at(path), 0755) < 0) {
		perror(path);
		exit(1);
	}
}

static inline void make_link(const char *text, const char *path)
{
	if (symlink(at(text), at(path)) < 0) {
		perror(path);
		exit(1);
	}
}

static inline int count_entries(const char *path)
{
	DIR *dir = opendir(at(path));
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n - 2;
}

static inline void make_tree(void)
{
	char name[32], text[32];

	snprintf(base, sizeof(base), "%s/base", scratch);
	make_dir("%");
	make_dir("%/dir");
	make_dir("%/dir/deep");
	put("%/dir/deep/file", "deep");
	put("%/file", "file");
	put("%/..file", "dots");
	make_dir("outside");
	make_dir("outside/dir");
	put("outside/secret", "secret");
	make_link("dir/deep", "%/rel");
	make_link("%/dir/deep", "%/abs");
	make_link("%", "%/self");
	make_link("/", "%/slash");
	make_link("../outside", "%/out_rel");
	make_link("../outside/secret", "%/out_file");
	make_link("/etc", "%/out_abs");
	make_link("/nosuch/x", "%/out_missing");
	make_link("dir/new", "%/dangling");
	make_link("%/dir/newabs", "%/dangling_abs");
	make_link("dir/", "%/with_slash");
	make_link("file/", "%/file_slash");
	make_link("loop", "%/loop");
	make_link("loop", "outside/loop");
	make_link("../outside/loop", "%/out_loop");
	make_link("two", "%/one");
	make_link("one", "%/two");
	make_link("../base/dir", "%/out_and_in");
	make_link("../outside/back", "%/there_and_back");
	make_link("../base/dir", "outside/back");
	make_link("/proc/self/root", "%/magic_root");
	make_link("/proc/self/cwd", "%/magic_cwd");
	make_link("/proc/self/fd/0", "%/magic_fd");
	make_link("file", "%/link0");
	for (int i = 1; i < 42; i++) {
		snprintf(name, sizeof(name), "%%/link%d", i);
		snprintf(text, sizeof(text), "link%d", i - 1);
		make_link(text, name);
	}
	make_link("%", "alias");
}

static inline int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Run all again where the kernel lacks openat2. The output is indented, so that TAP leaves it alone. */
static inline void test_without_openat2(void)
{
	char self[PATH_MAX] = "", helper[2 * PATH_MAX + 64], line[8192];
	int status = -1;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return;
	snprintf(helper, sizeof(helper), "%.*s/../helper/no_openat2 %s again", (int)(strrchr(self, '/') - self), self, self);
	fflush(stdout);
	FILE *out = popen(helper, "r");
	while (out && fgets(line, sizeof(line), out))
		printf("    %s", line);
	if (out)
		status = pclose(out);
	is_int(status, 0, "all of it without openat2");
}

/* Make the tree and open it. */
static inline void tree_open(void)
{
	struct abx_err err = ABX_ERR_INIT;

	/* A race that does not end is not waited for. */
	alarm(300);
	scratch_enter();
	chmod(scratch, 0755);
	make_tree();
	if (abx_roots_open(base, &roots, &err) < 0) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
}

#endif
