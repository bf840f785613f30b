/* Landlock: what file_ops needs works below its trees, and nothing outside, although every check of our own is out of the way. */
#include "common/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cage.h"
#include "common/tree.h"
#include "t/scratch.h"
#include "t/tap.h"

/* The roots as a broken paths door might have them: everything is inside. */
static struct abx_roots everything;

static void must(bool fine, const char *what)
{
	if (!fine) {
		printf("Bail out! %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void put(const char *path, const char *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content), path);
	close(fd);
}

static const char *at(const char *name)
{
	static char text[4][PATH_MAX + 64];
	static unsigned next;
	char *out = text[next++ % 4];

	snprintf(out, sizeof(text[0]), "%s/%s", scratch, name);
	return out;
}

/* ---- the work of the handlers, done with paths. 0 or the errno of the failure. */

static int do_read(const char *name)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;
	int fd;

	if (abx_path_resolve(&everything, at(name), 0, &path, &err) < 0)
		return err.os_errno ? err.os_errno : -1;
	fd = abx_path_open(&path, O_RDONLY, &err);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? err.os_errno : 0;
}

static int do_write(const char *name)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	abx_auto_replacement struct abx_replacement rep = ABX_REPLACEMENT_INIT;
	struct abx_err err = ABX_ERR_INIT;

	if (abx_path_resolve(&everything, at(name), ABX_PATH_PARENTS, &path, &err) < 0 ||
	    abx_replacement_begin(&path, 0644, &rep, &err) < 0)
		return err.os_errno ? err.os_errno : -1;
	if (write(rep.fd, "new", 3) != 3)
		return errno;
	return abx_replacement_commit(&rep, true, &err) < 0 ? err.os_errno : 0;
}

static int do_delete(const char *name)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	if (abx_path_resolve(&everything, at(name), ABX_PATH_NOFOLLOW, &path, &err) < 0 ||
	    abx_tree_delete(&path, &everything, &err) < 0)
		return err.os_errno ? err.os_errno : -1;
	return 0;
}

static int see(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err)
{
	(void)ctx;
	(void)entry;
	(void)err;
	return 0;
}

static int do_list(const char *name)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_tree tree = { .top = &path, .roots = &everything, .visit = see };
	struct abx_err err = ABX_ERR_INIT;

	if (abx_path_resolve(&everything, at(name), 0, &path, &err) < 0 || abx_tree_walk(&tree, &err) < 0)
		return err.os_errno ? err.os_errno : -1;
	return 0;
}

static int do_transfer(const char *from, const char *to)
{
	abx_auto_path struct abx_path source = ABX_PATH_INIT, destination = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	if (abx_path_resolve(&everything, at(from), ABX_PATH_NOFOLLOW, &source, &err) < 0 ||
	    abx_path_resolve(&everything, at(to), ABX_PATH_MISSING, &destination, &err) < 0 ||
	    abx_tree_transfer(&source, &destination, &everything, &err) < 0)
		return err.os_errno ? err.os_errno : -1;
	return 0;
}

static int result_of(int rc)
{
	return rc < 0 ? errno : 0;
}

/* Between directories there are two ways to say no. */
static bool is_refused(int rc)
{
	return rc < 0 && (errno == EACCES || errno == EXDEV);
}

static void check_inside(void)
{
	is_int(do_read("base/file"), 0, "inside: a file is read");
	is_int(do_write("base/file"), 0, "one is replaced");
	is_int(do_write("base/a/b/new"), 0, "one is made, with its parents (O_TMPFILE and a link, where there is one)");
	is_int(do_list("base"), 0, "a directory is listed");
	is_int(result_of(renameat2(AT_FDCWD, at("base/a/b/new"), AT_FDCWD, at("base/a/moved"), RENAME_NOREPLACE)), 0,
	       "a file goes to another directory");
	is_int(result_of(rename(at("base/a/b"), at("base/b"))), 0, "and a directory");
	is_int(result_of(symlink("file", at("base/link"))), 0, "a link is made");
	is_int(result_of(mkfifo(at("base/fifo"), 0600)), 0, "and a FIFO");
	is_int(do_transfer("base/a", "other/a"), 0, "a tree is copied to another allowed one");
	is_int(result_of(rename(at("other/a"), at("base/a"))), 0, "or renamed, where that is possible");
	is_int(do_delete("base/a"), 0, "a tree is deleted");
	is_int(result_of(truncate(at("base/file"), 1)), 0, "a file is cut");
}

static void check_outside(void)
{
	is_int(do_read("outside/secret"), EACCES, "outside: no file is read");
	is_int(do_read("base/out"), EACCES, "nor by way of a link");
	is_int(do_list("outside"), EACCES, "no directory is listed");
	is_int(do_write("outside/secret"), EACCES, "no file is replaced");
	is_int(do_write("outside/new"), EACCES, "none is made");
	is_int(do_write("outside/x/y"), EACCES, "and no parents");
	is_int(do_delete("outside/secret"), EACCES, "nothing is deleted");
	is_int(do_delete("outside"), EACCES, "no tree either");
	is_int(do_transfer("base/link", "outside/link"), EACCES, "nothing is put there");
	is_int(do_transfer("outside/secret", "base/secret"), EACCES, "nothing is taken from there");
	ok(is_refused(rename(at("base/link"), at("outside/link"))), "nor by renaming");
	ok(is_refused(rename(at("outside/secret"), at("base/secret"))), "in either direction");
	ok(is_refused(link(at("outside/secret"), at("base/secret"))), "and no second name is given");
	is_int(result_of(truncate(at("outside/secret"), 0)), EACCES, "no file is cut");
	ok(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES, "/etc/passwd is as far away as anything");
	ok(open("/proc/self/root/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES, "by a magic link, too");
	ok(open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) < 0 && errno == EACCES, "no nameless file is made");
}

static int enter(void)
{
	const int fds[] = { open(at("base"), O_PATH | O_CLOEXEC), open(at("other"), O_PATH | O_CLOEXEC) };
	struct abx_err err = ABX_ERR_INIT;
	int result = abx_cage_trees(fds, ABX_N(fds), &err);

	is_int(result, 0, "the cage is entered (%s)", err.message);
	return abx_cage_report() ? 1 : 0;
}

static void check_readable(void)
{
	const struct abx_landlock_tree tree = { .fd = open(at("base"), O_PATH | O_CLOEXEC), .writes = false };
	struct abx_err err = ABX_ERR_INIT;

	is_int(abx_landlock_enter(ABX_LANDLOCK_FILES, &tree, 1, &err), 0, "a tree to read from (%s)", err.message);
	is_int(do_read("base/file"), 0, "is read");
	is_int(do_list("base"), 0, "and listed");
	is_int(do_write("base/file"), EACCES, "and not written to");
	is_int(do_delete("base/file"), EACCES, "nor deleted from");
}

/* Landlock is for ever: each test of it is a process of its own. Checks it made count here. */
static void in_child(void (*test)(void))
{
	int ends[2], status;
	pid_t pid;

	must(pipe(ends) == 0, "pipe");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		test();
		must(write(ends[1], &tap, sizeof(tap)) == sizeof(tap), "write");
		_exit(0);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
	/* Else a child that died would be waited for without end. */
	close(ends[1]);
	must(read(ends[0], &tap, sizeof(tap)) == sizeof(tap), "read");
	close(ends[0]);
}

static void test_trees(void)
{
	if (enter()) {
		skip("the kernel has no Landlock");
		return;
	}
	check_inside();
	check_outside();
}

int main(void)
{
	struct abx_err err = ABX_ERR_INIT;

	scratch_enter();
	must(mkdir("base", 0755) == 0 && mkdir("other", 0755) == 0 && mkdir("outside", 0755) == 0, "mkdir");
	put("base/file", "content");
	put("outside/secret", "secret");
	must(symlink("../outside/secret", "base/out") == 0, "symlink");
	must(abx_roots_open("/", &everything, &err) == 0, err.message);
	in_child(test_trees);
	in_child(check_readable);
	is_int(do_read("outside/secret"), 0, "without it all of that would have worked");
	abx_roots_release(&everything);
	return done_testing();
}
