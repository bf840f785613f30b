/* Trees: order, depth, what is never followed, what is deleted and what is left, transfers. */
#include "common/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/strbuf.h"
#include "t/scratch.h"
#include "t/tap.h"

static struct abx_roots roots;

static void must(bool fine, const char *what)
{
	if (!fine) {
		printf("Bail out! %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void dir(const char *path)
{
	must(mkdir(path, 0755) == 0, path);
}

static void put(const char *path, const char *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content), path);
	close(fd);
}

static void link_to(const char *text, const char *path)
{
	must(symlink(text, path) == 0, path);
}

static bool there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static struct abx_path at(const char *path, unsigned flags)
{
	struct abx_path found = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	must(abx_path_resolve(&roots, path, flags, &found, &err) == 0, err.message);
	return found;
}

/* ---- walking */

struct seen {
	struct abx_strbuf names; /* one a line; directories end in a slash */
	size_t n, enough;
	bool checked;
};

static int see(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err)
{
	struct seen *seen = ctx;
	struct stat st, by_path;

	(void)err;
	abx_strbuf_addf(&seen->names, "%s%s\n", entry->relative, entry->is_dir ? "/" : "");
	if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || lstat(entry->path, &by_path) < 0 ||
	    st.st_ino != by_path.st_ino || strlen(entry->relative) < strlen(entry->name))
		seen->checked = false;
	return ++seen->n == seen->enough;
}

static char *walk(const char *path, unsigned max_depth, unsigned flags, size_t enough)
{
	abx_auto_path struct abx_path top = at(path, 0);
	struct seen seen = { .names = ABX_STRBUF_INIT, .enough = enough, .checked = true };
	struct abx_tree tree = { .top = &top, .roots = &roots, .max_depth = max_depth, .flags = flags, .visit = see, .ctx = &seen };
	struct abx_err err = ABX_ERR_INIT;
	int result = abx_tree_walk(&tree, &err);

	is_int(result, enough && seen.n == enough, "the walk of %s ends as the visitor says (%s)", path, err.message);
	ok(seen.checked, "the names lead to the entries");
	return abx_strbuf_detach(&seen.names);
}

static void is_walk(const char *path, unsigned max_depth, unsigned flags, size_t enough, const char *want, const char *name)
{
	abx_auto_free char *got = walk(path, max_depth, flags, enough);

	is_str(got, want, "%s", name);
}

static void test_walk(void)
{
	dir("base/w");
	dir("base/w/a");
	dir("base/w/a/x");
	dir("base/w/a/x/y");
	dir("base/w/a-b");
	dir("base/w/empty");
	put("base/w/a/f", "");
	put("base/w/a/x/y/deep", "");
	put("base/w/a-b/g", "");
	put("base/w/a.c", "");
	put("base/w/b\nc", "");
	put("base/w/\xff", "");
	put("base/w/...", "");
	link_to("/etc", "base/w/out");
	link_to("a", "base/w/in");
	link_to("..", "base/w/up");
	must(mkfifo("base/w/fifo", 0600) == 0, "fifo");
	for (unsigned flags = 0; flags <= ABX_TREE_STAT; flags += ABX_TREE_STAT) {
		is_walk("w", 0, flags, 0,
			"...\na/\na-b/\na-b/g\na.c\na/f\na/x/\na/x/y/\na/x/y/deep\nb\nc\nempty/\nfifo\nin\nout\nup\n\xff\n",
			"everything, in the byte order of the whole names, and no link is followed");
		is_walk("w", 1, flags, 0, "...\na/\na-b/\na.c\nb\nc\nempty/\nfifo\nin\nout\nup\n\xff\n", "one level");
		is_walk("w", 2, flags, 0, "...\na/\na-b/\na-b/g\na.c\na/f\na/x/\nb\nc\nempty/\nfifo\nin\nout\nup\n\xff\n", "two");
		is_walk("w", 0, flags, 5, "...\na/\na-b/\na-b/g\na.c\n", "enough is enough");
	}
	is_walk("w/in", 0, 0, 0, "f\nx/\nx/y/\nx/y/deep\n", "the top itself may be a link");
	is_walk("w/empty", 0, 0, 0, "", "nothing");
	is_walk(".", 1, 0, 0, "w/\n", "the root");
}

/* Deeper than descriptors are kept, and than a path may be long. */
#define DEPTH 1500

static void make_deep(const char *path, const char *name)
{
	int fd;

	dir(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < DEPTH; i++) {
		int next;

		must(mkdirat(fd, name, 0755) == 0, "deep");
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(openat(fd, "z", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
		close(fd);
		fd = next;
		must(fd >= 0, "deep");
	}
	close(fd);
}

static int count(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err)
{
	(void)entry;
	(void)err;
	++*(int *)ctx;
	return 0;
}

static int count_fds(void)
{
	DIR *fds = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(fds))
		n++;
	closedir(fds);
	return n;
}

static void test_deep(void)
{
	struct abx_err err = ABX_ERR_INIT;
	int n = 0, before = count_fds();

	make_deep("base/deep", "a-long-name");
	{
		abx_auto_path struct abx_path top = at("deep", ABX_PATH_NOFOLLOW);
		struct abx_tree tree = { .top = &top, .roots = &roots, .flags = ABX_TREE_STRICT, .visit = count, .ctx = &n };

		is_int(abx_tree_walk(&tree, &err), 0, "a walk far down (%s)", err.message);
		is_int(n, 2 * DEPTH, "sees everything");
		is_int(abx_tree_delete(&top, &roots, &err), 0, "and it is deleted (%s)", err.message);
	}
	ok(!there("base/deep"), "all of it");
	is_int(count_fds(), before, "no descriptor is left");
}

/* ---- deleting */

static int delete(const char *path, struct abx_err *err)
{
	abx_auto_path struct abx_path found = at(path, ABX_PATH_NOFOLLOW);

	return abx_tree_delete(&found, &roots, err);
}

static void test_delete(void)
{
	struct abx_err err = ABX_ERR_INIT;
	char name[64];

	dir("outside");
	put("outside/keep", "kept");
	dir("base/d");
	dir("base/d/sub");
	put("base/d/sub/f", "");
	link_to("../../outside", "base/d/out");
	link_to("../../outside/keep", "base/d/sub/out");
	must(mkfifo("base/d/fifo", 0600) == 0, "fifo");
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "base/d/sub/%c-%d", i % 3 ? 'f' : 'd', i);
		if (i % 3)
			put(name, "");
		else
			dir(name);
	}
	is_int(delete("d", &err), 0, "a tree is deleted (%s)", err.message);
	ok(!there("base/d"), "all of it");
	ok(there("outside/keep"), "and nothing that its links led to");
	link_to("../outside", "base/link");
	is_int(delete("link", &err), 0, "a link is deleted");
	ok(!there("base/link") && there("outside/keep"), "itself alone");
	put("base/f", "");
	is_int(delete("f", &err), 0, "a file is deleted");
	ok(!there("base/f"), "it is gone");
}

/* One thread keeps exchanging a directory inside the tree for a link that leads out, while the tree is deleted. */
static atomic_bool swapping;

static void *swap(void *arg)
{
	(void)arg;
	while (swapping)
		renameat2(AT_FDCWD, "base/s/x", AT_FDCWD, "base/swap", RENAME_EXCHANGE);
	return NULL;
}

/* A tree with a directory or link "x" (base/swap is the other of the two) behind many others, so that there is time to swap. */
static void make_swapped(const char *outside)
{
	struct stat st;
	char name[64];

	mkdir("base/s", 0755);
	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "base/s/%d", i);
		mkdir(name, 0755);
	}
	must(lstat("base/swap", &st) == 0, "swap");
	if (S_ISDIR(st.st_mode))
		link_to(outside, "base/s/x");
	else
		dir("base/s/x");
}

static void test_swap(void)
{
	struct abx_err err = ABX_ERR_INIT;
	char outside[PATH_MAX + 16];
	pthread_t thread;

	snprintf(outside, sizeof(outside), "%s/outside", scratch);
	link_to(outside, "base/swap");
	swapping = true;
	must(pthread_create(&thread, NULL, swap, NULL) == 0, "thread");
	for (int i = 0; i < 25 && there("outside/keep"); i++) {
		make_swapped(outside);
		while (there("base/s"))
			delete("s", &err);
	}
	swapping = false;
	pthread_join(thread, NULL);
	ok(there("outside/keep"), "a link that appears in the middle is never followed");
	is_int(delete("swap", &err), 0, "the rest goes");
}

/* Two delete the same tree: what the other one has removed already is no failure. */
static void *delete_resolved(void *arg)
{
	struct abx_err err = ABX_ERR_INIT;
	int result = abx_tree_delete(arg, &roots, &err);

	if (result < 0)
		printf("# %s\n", err.message);
	return result < 0 ? arg : NULL;
}

static void make_twice(void)
{
	char name[64];

	dir("base/twice");
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "base/twice/%d", i);
		dir(name);
		snprintf(name, sizeof(name), "base/twice/%d/sub", i);
		dir(name);
	}
}

static void test_twice(void)
{
	unsigned failures = 0;

	for (int i = 0; i < 100 && !failures; i++) {
		pthread_t thread;
		void *theirs;

		make_twice();
		abx_auto_path struct abx_path one = at("twice", ABX_PATH_NOFOLLOW);
		abx_auto_path struct abx_path two = at("twice", ABX_PATH_NOFOLLOW);
		must(pthread_create(&thread, NULL, delete_resolved, &one) == 0, "thread");
		failures += delete_resolved(&two) != NULL;
		pthread_join(thread, &theirs);
		failures += theirs != NULL;
	}
	is_int(failures, 0, "two that delete the same tree");
	ok(!there("base/twice"), "which is gone");
}

/* ---- transfers */

static int transfer(const char *from, const char *to, struct abx_err *err)
{
	abx_auto_path struct abx_path source = at(from, ABX_PATH_NOFOLLOW);
	abx_auto_path struct abx_path destination = at(to, ABX_PATH_MISSING);

	return abx_tree_transfer(&source, &destination, &roots, err);
}

static bool same_times(const char *path, time_t seconds)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_mtime == seconds;
}

static void test_transfer(void)
{
	const struct timespec times[2] = { { 1000, 0 }, { 2000, 0 } };
	struct abx_err err = ABX_ERR_INIT;
	char text[64] = "";
	struct stat st;

	dir("base/t");
	dir("base/t/sub");
	put("base/t/sub/f", "content");
	must(chmod("base/t/sub/f", 0751) == 0 && chmod("base/t/sub", 0700) == 0, "chmod");
	link_to("/etc/passwd", "base/t/link");
	must(mkfifo("base/t/fifo", 0600) == 0, "fifo");
	must(utimensat(AT_FDCWD, "base/t/sub/f", times, 0) == 0 && utimensat(AT_FDCWD, "base/t/sub", times, 0) == 0 &&
		     utimensat(AT_FDCWD, "base/t/link", times, AT_SYMLINK_NOFOLLOW) == 0,
	     "utimensat");
	is_int(transfer("t", "moved", &err), 0, "a tree is transferred (%s)", err.message);
	ok(!there("base/t"), "the source is gone");
	ok(same_times("base/moved/sub/f", 2000) && same_times("base/moved/sub", 2000) && same_times("base/moved/link", 2000),
	   "times are kept");
	ok(stat("base/moved/sub/f", &st) == 0 && (st.st_mode & 07777) == 0751 && st.st_size == 7, "and modes");
	ok(stat("base/moved/sub", &st) == 0 && (st.st_mode & 07777) == 0700, "of directories, too");
	ok(readlink("base/moved/link", text, sizeof(text) - 1) == 11 && strcmp(text, "/etc/passwd") == 0, "a link is kept");
	ok(lstat("base/moved/fifo", &st) == 0 && S_ISFIFO(st.st_mode), "a FIFO as well");
	put("base/one", "new");
	put("base/two", "old");
	is_int(transfer("one", "two", &err), 0, "a file replaces a file");
	ok(!there("base/one") && stat("base/two", &st) == 0 && st.st_size == 3, "it is there");
	dir("base/full");
	put("base/full/x", "");
	is_int(transfer("moved", "full", &err), -1, "a directory does not go onto one");
	ok(there("base/moved/sub/f") && there("base/full/x"), "and both are as before");
	is_walk(".", 1, 0, 0, "full/\nmoved/\ntwo\nw/\n", "nothing else is left behind");
}

/* A file system of 64 KiB: what does not fit leaves it empty, and the source whole. */
static void test_no_space(void)
{
	struct abx_err err = ABX_ERR_INIT;
	char content[1000];

	memset(content, 'x', sizeof(content) - 1);
	content[sizeof(content) - 1] = '\0';
	dir("base/small");
	if (mount("none", "base/small", "tmpfs", 0, "size=64k") < 0) {
		skip("no tmpfs: %s", strerror(errno));
		return;
	}
	dir("base/big");
	for (int i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "base/big/%d", i);
		put(name, content);
	}
	is_int(transfer("big", "small/big", &err), -1, "too much");
	is_int(err.os_errno, ENOSPC, "no space: %s", err.message);
	ok(there("base/big/0") && there("base/big/99"), "the source is whole");
	is_walk("small", 0, 0, 0, "", "and nothing is left of the copy");
	for (int i = 2; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "base/big/%d", i);
		unlink(name);
	}
	is_int(transfer("big", "small/big", &err), 0, "what fits goes to another file system (%s)", err.message);
	is_walk("small", 0, 0, 0, "big/\nbig/0\nbig/1\n", "all of it");
	ok(!there("base/big"), "and is gone from the first");
	must(umount("base/small") == 0, "umount");
	must(rmdir("base/small") == 0, "rmdir");
}

int main(void)
{
	struct abx_err err = ABX_ERR_INIT;

	scratch_enter();
	must(abx_roots_open("base", &roots, &err) == 0, err.message);
	test_walk();
	test_deep();
	test_delete();
	test_swap();
	test_twice();
	test_transfer();
	test_no_space();
	abx_roots_release(&roots);
	return done_testing();
}
