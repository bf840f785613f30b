#include "common/paths.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "t/unit/paths_tree.h"

static int begin(const char *given, mode_t mode, struct abx_path *path, struct abx_replacement *rep, struct abx_err *err)
{
	return abx_path_resolve(&roots, at(given), PARENTS, path, err) < 0 ? -1 : abx_replacement_begin(path, mode, rep, err);
}

/* Write a file as a handler does. Returns 0 or the kind of the error. */
static int replace(const char *given, const char *content, bool overwrite)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	abx_auto_replacement struct abx_replacement rep = ABX_REPLACEMENT_INIT;
	struct abx_err err = ABX_ERR_INIT;

	if (begin(given, 0666, &path, &rep, &err) < 0)
		return (int)err.kind;
	if (abx_write_all(rep.fd, content, strlen(content)) < 0)
		return -1;
	return abx_replacement_commit(&rep, overwrite, &err) < 0 ? (int)err.kind : 0;
}

static void test_replace(void)
{
	mode_t mask = umask(026);
	struct stat st;

	make_dir("%/r");
	is_int(replace("r/new", "new", false), 0, "a new file is made");
	umask(mask);
	is_str(get("%/r/new"), "new", "with its content");
	ok(stat(at("%/r/new"), &st) == 0 && (st.st_mode & 07777) == 0640, "and the mode less the umask");
	chmod(at("%/r/new"), 04751);
	if (geteuid() == 0 && chown(at("%/r/new"), 1234, 4321) == 0)
		chmod(at("%/r/new"), 04751);
	is_int(replace("r/new", "second", true), 0, "it is replaced");
	is_str(get("%/r/new"), "second", "with its content");
	ok(stat(at("%/r/new"), &st) == 0 && (st.st_mode & 07777) == 0751, "the mode is kept, but for set-user-id");
	ok(geteuid() != 0 || (st.st_uid == 1234 && st.st_gid == 4321), "and the owner");
	is_int(replace("r/new", "third", false), ABX_E_FILE_EXISTS, "not replaced when that is not wanted");
	is_str(get("%/r/new"), "second", "the old content stays");
	is_int(replace("r", "x", true), ABX_E_VALUE, "a directory is not replaced");
	is_int(replace("r/", "x", true), ABX_E_VALUE, "with a slash, either");
	is_int(replace(".", "x", true), ABX_E_VALUE, "nor is the root");
	is_int(replace("r/new/x", "x", true), ABX_E_VALUE, "nothing is put below a file");
	is_int(replace("r/a/b/c", "deep", true), 0, "parents are made");
	is_str(get("%/r/a/b/c"), "deep", "for the file");
	make_link("../file", "%/r/in");
	make_link("../dir/made", "%/r/dangling");
	make_link("../../outside/secret", "%/r/out");
	is_int(replace("r/in", "through", true), 0, "a link is followed");
	is_str(get("%/file"), "through", "to what it points to");
	ok(lstat(at("%/r/in"), &st) == 0 && S_ISLNK(st.st_mode), "and stays a link");
	is_int(replace("r/dangling", "made", true), 0, "so is one that points to nothing yet");
	is_str(get("%/dir/made"), "made", "which is made there");
	is_int(replace("r/out", "x", true), ABX_E_PATH, "one that leads out is refused");
	is_str(get("outside/secret"), "secret", "and nothing happens there");
	is_int(count_entries("%/r"), 5, "nothing is left behind");
	unlink(at("%/dir/made"));
	put("%/file", "file");
}

static void test_replace_given_up(void)
{
	make_dir("%/g");
	put("%/g/old", "old");
	for (int i = 0; i < 2; i++) {
		abx_auto_path struct abx_path path = ABX_PATH_INIT;
		struct abx_replacement rep = ABX_REPLACEMENT_INIT;
		struct abx_err err = ABX_ERR_INIT;

		is_int(begin(i ? "g/old" : "g/new", 0644, &path, &rep, &err), 0, "begun");
		ok(abx_write_all(rep.fd, "xxx", 3) == 0, "written");
		abx_replacement_release(&rep);
		is_int(rep.fd, -1, "released");
		abx_replacement_release(&rep);
	}
	is_int(count_entries("%/g"), 1, "what is given up leaves nothing behind");
	is_str(get("%/g/old"), "old", "and the old file as it was");
}

/* What appears between begin and commit. */
static void test_replace_races(void)
{
	make_dir("%/c");
	for (int i = 0; i < 4; i++) {
		abx_auto_path struct abx_path path = ABX_PATH_INIT;
		abx_auto_replacement struct abx_replacement rep = ABX_REPLACEMENT_INIT;
		struct abx_err err = ABX_ERR_INIT;
		bool overwrite = i & 1, dir = i & 2;

		is_int(begin("c/x", 0644, &path, &rep, &err), 0, "begun where nothing is");
		abx_write_all(rep.fd, "mine", 4);
		if (dir)
			make_dir("%/c/x");
		else
			put("%/c/x", "other");
		int rc = abx_replacement_commit(&rep, overwrite, &err);
		if (!overwrite)
			is_int(rc < 0 ? err.kind : 0, ABX_E_FILE_EXISTS, "what appeared meanwhile is not overwritten");
		else
			is_int(rc < 0 ? err.kind : 0, dir ? ABX_E_VALUE : 0, dir ? "a directory is never" : "or it is, if wanted");
		if (!dir)
			is_str(get("%/c/x"), overwrite ? "mine" : "other", "the content is of the one that won");
		abx_replacement_release(&rep);
		is_int(count_entries("%/c"), 1, "nothing is left behind");
		if (dir)
			rmdir(at("%/c/x"));
		else
			unlink(at("%/c/x"));
	}

	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	abx_auto_replacement struct abx_replacement rep = ABX_REPLACEMENT_INIT;
	struct abx_err err = ABX_ERR_INIT;
	put("%/c/x", "old");
	is_int(begin("c/x", 0644, &path, &rep, &err), 0, "begun where something is");
	unlink(at("%/c/x"));
	is_int(abx_replacement_commit(&rep, false, &err), 0, "which goes: then there is nothing to overwrite");
	abx_replacement_release(&rep);
	abx_path_release(&path);
	unlink(at("%/c/x"));
	is_int(begin("c/x", 0644, &path, &rep, &err), 0, "begun in a directory");
	rmdir(at("%/c"));
	is_int(abx_replacement_commit(&rep, true, &err), -1, "which goes: that is an error");
	is_int(err.kind, ABX_E_NO_FILE, "of a missing directory");
}

static atomic_int winners, losers;

static void *compete(void *arg)
{
	(void)arg;
	int kind = replace("solo/winner", "w", false);

	atomic_fetch_add(kind == 0 ? &winners : kind == ABX_E_FILE_EXISTS ? &losers : &winners, kind == 0 || kind == ABX_E_FILE_EXISTS ? 1 : 100);
	return NULL;
}

static void test_one_winner(void)
{
	pthread_t threads[8];
	bool one = true;

	make_dir("%/solo");
	for (int round = 0; round < 50; round++) {
		atomic_store(&winners, 0);
		atomic_store(&losers, 0);
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, compete, NULL);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		one = one && atomic_load(&winners) == 1 && atomic_load(&losers) == 7 && count_entries("%/solo") == 1;
		unlink(at("%/solo/winner"));
	}
	ok(one, "of several who may not overwrite exactly one makes the file");
}

static void test_killed(void)
{
	int nameless = open(at("%"), O_TMPFILE | O_WRONLY, 0600), status;

	if (nameless < 0) {
		skip("no nameless files here: %s", strerror(errno));
		return;
	}
	close(nameless);
	make_dir("%/k");
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct abx_path path = ABX_PATH_INIT;
		struct abx_replacement rep = ABX_REPLACEMENT_INIT;
		struct abx_err err;

		if (begin("k/new", 0644, &path, &rep, &err) == 0 && abx_write_all(rep.fd, "x", 1) == 0)
			raise(SIGKILL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && count_entries("%/k") == 0, "a program that is killed leaves nothing behind of a new file");
}

/* The doors go through /proc/self, which belongs to root when a process may not be dumped. Returns an exit status. */
static int not_dumpable(void)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 77;
	prctl(PR_SET_DUMPABLE, 0);
	if (replace("user/a/new", "1", false) || replace("user/a/new", "2", true))
		return 1;
	if (abx_path_resolve(&roots, "self/user/a/new", 0, &path, &err) < 0)
		return 2;
	abx_auto_fd int fd = abx_path_open(&path, O_RDWR, &err);
	return fd < 0 ? 3 : strcmp(get("%/user/a/new"), "2") != 0 ? 4 : 0;
}

static void test_ordinary_user(void)
{
	int status;

	make_dir("%/user");
	chmod(at("%/user"), 0777);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(not_dumpable());
	waitpid(pid, &status, 0);
	is_int(status, 0, "all of it works for an ordinary user in a process that may not be dumped");
}

/* In a file system of 64 KiB. Returns an exit status: 77 when there can be none. */
static int fill_disk(void)
{
	static char data[100 << 10];
	struct abx_roots small = { 0 };
	struct abx_err err = ABX_ERR_INIT;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mkdir("small", 0755) < 0 ||
	    mount("none", "small", "tmpfs", 0, "size=64k") < 0)
		return 77;
	put("small/old", "old");
	if (abx_roots_open("small", &small, &err) < 0)
		return 1;
	for (int i = 0; i < 2; i++) {
		abx_auto_path struct abx_path path = ABX_PATH_INIT;
		abx_auto_replacement struct abx_replacement rep = ABX_REPLACEMENT_INIT;

		if (abx_path_resolve(&small, i ? "old" : "new", MISSING, &path, &err) < 0 ||
		    abx_replacement_begin(&path, 0644, &rep, &err) < 0)
			return 2;
		if (abx_write_all(rep.fd, data, sizeof(data)) == 0 || errno != ENOSPC)
			return 3;
	}
	const char *old = get("small/old");
	abx_roots_release(&small);
	return !old || strcmp(old, "old") ? 4 : count_entries("small") != 1 ? 5 : 0;
}

static void test_full_disk(void)
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(fill_disk());
	waitpid(pid, &status, 0);
	rmdir("small");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip("no file system can be mounted here");
	else
		is_int(status, 0, "a full disk is an error, the old file stays, nothing is left behind");
}

/* ---- races with somebody who moves things under us */

static atomic_bool race_over;

static atomic_int swaps;

/* Swap a directory and a link that leads out. */
static void *swap_link(void *arg)
{
	(void)arg;
	while (!atomic_load(&race_over)) {
		if (renameat2(AT_FDCWD, "base/race/there", AT_FDCWD, "base/race/link", RENAME_EXCHANGE) == 0)
			atomic_fetch_add(&swaps, 1);
	}
	return NULL;
}

/* Move a directory out and in again. */
static void *swap_place(void *arg)
{
	(void)arg;
	while (!atomic_load(&race_over)) {
		if (rename("base/race/a", "outside/a") == 0 && rename("outside/a", "base/race/a") == 0)
			atomic_fetch_add(&swaps, 1);
	}
	return NULL;
}

static int inner_reads, outer_reads, odd_errors;

static void race_read(const char *given)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;
	char content[16] = "";

	if (abx_path_resolve(&roots, given, 0, &path, &err) < 0) {
		if (err.kind != ABX_E_PATH && err.kind != ABX_E_NO_FILE && err.os_errno != EAGAIN) {
			note("%s: %s", given, err.message);
			odd_errors++;
		}
		return;
	}
	abx_auto_fd int fd = abx_path_open(&path, O_RDONLY, &err);
	if (fd < 0 || read(fd, content, sizeof(content) - 1) < 0)
		return;
	if (strcmp(content, "inner") == 0)
		inner_reads++;
	else
		outer_reads++;
}

static void race(void *(*other)(void *), const char *const *given, size_t n, int ms)
{
	int64_t end = abx_clock_ms() + ms;
	pthread_t thread;
	int i = 0;

	inner_reads = outer_reads = odd_errors = 0;
	atomic_store(&race_over, false);
	atomic_store(&swaps, 0);
	pthread_create(&thread, NULL, other, NULL);
	/* A round on each path, then some writing where the link may be. */
	while (abx_clock_ms() < end) {
		for (size_t j = 0; j < n; j++)
			race_read(given[j]);
		replace("race/there/written", "w", i & 1);
		replace("race/there/p/q/written", "w", i & 1);
		i++;
	}
	atomic_store(&race_over, true);
	pthread_join(thread, NULL);
	ok(inner_reads > 0 && atomic_load(&swaps) > 0, "the files inside were read %d times, with %d swaps", inner_reads, atomic_load(&swaps));
	is_int(outer_reads, 0, "none outside was");
	is_int(odd_errors, 0, "and every refusal was one that can be told");
}

static void test_races(void)
{
	static const char *const links[] = { "race/there/secret", "race/there/../there/secret", "abs/../../race/there/secret", "self/race/there/secret" };
	static const char *const places[] = { "race/a/b/../../secret", "self/race/a/b/c/../../../secret", "race/a/b/../b/c/../../../secret" };

	make_dir("%/race");
	make_dir("%/race/there");
	make_dir("%/race/a");
	make_dir("%/race/a/b");
	make_dir("%/race/a/b/c");
	put("%/race/there/secret", "inner");
	put("%/race/secret", "inner");
	make_link("../../outside", "%/race/link");
	race(swap_link, links, ABX_N(links), 2000);
	race(swap_place, places, ABX_N(places), 1000);
	is_str(get("outside/secret"), "secret", "nothing outside was written to");
	is_int(count_entries("outside"), 4, "and nothing was made there");
}

static void *read_slowly(void *arg)
{
	int fd = *(int *)arg;
	static char buf[1000];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		total += (size_t)n;
	*(int *)arg = (int)total;
	return NULL;
}

static void test_write_all(void)
{
	static char data[1 << 20];
	int fds[2], arg;
	pthread_t thread;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	arg = fds[0];
	pthread_create(&thread, NULL, read_slowly, &arg);
	is_int(abx_write_all(fds[1], data, sizeof(data)), 0, "more than a pipe holds is written");
	close(fds[1]);
	pthread_join(thread, NULL);
	is_int(arg, sizeof(data), "to the last byte");
	close(fds[0]);
	is_int(abx_write_all(-1, data, 0), 0, "nothing is always written");
	ok(abx_write_all(-1, data, 1) < 0 && errno == EBADF, "a failure is told");
}

int main(int argc, char **argv)
{
	int fds;

	(void)argv;
	tree_open();
	fds = count_fds();
	test_replace();
	test_replace_given_up();
	test_replace_races();
	test_one_winner();
	test_killed();
	test_ordinary_user();
	test_full_disk();
	test_races();
	test_write_all();
	is_int(count_fds(), fds, "no descriptor is left open");
	abx_roots_release(&roots);
	if (argc < 2)
		test_without_openat2();
	return done_testing();
}
