/* Snapshots of a watch: differences, their order, the limit. */
#include "handlers/file_ops/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/auto.h"
#include "t/scratch.h"
#include "t/tap.h"

static struct abx_roots roots;
static struct abx_path top = ABX_PATH_INIT;
static struct snapshot snapshot = SNAPSHOT_INIT;
static struct abx_strbuf told = ABX_STRBUF_INIT;
static int opened, stop_after;

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

static int tell(void *ctx, enum snapshot_change change, const char *name, const struct figures *figures)
{
	static const char marks[] = { [SNAPSHOT_CREATED] = '+', [SNAPSHOT_MODIFIED] = '~', [SNAPSHOT_DELETED] = '-' };

	(void)ctx;
	abx_strbuf_addf(&told, "%c%s", marks[change], name);
	if (figures->is_dir)
		abx_strbuf_addc(&told, '/');
	else
		abx_strbuf_addf(&told, ":%lld", (long long)figures->size);
	abx_strbuf_addc(&told, ' ');
	return stop_after && --stop_after == 0 ? -1 : 0;
}

static void note_opened(void *ctx, int dir_fd)
{
	(void)ctx;
	opened += dir_fd >= 0;
}

/* Scan, and compare what is told: "+new:size ~changed:size -gone:size dir/". */
static void is_scan(const char *want, size_t limit, bool gone, bool want_overflow, const char *name)
{
	const struct scan scan = {
		.top = gone ? NULL : &top, .roots = &roots, .recursive = true, .limit = limit, .opened = note_opened, .report = tell,
	};
	struct abx_err err = ABX_ERR_INIT;
	bool overflow = false;

	abx_strbuf_reset(&told);
	is_int(snapshot_scan(&snapshot, &scan, &overflow, &err), 0, "%s: the scan (%s)", name, err.message);
	is_str(told.buf, want, "%s", name);
	is_int(overflow, want_overflow, "%s: overflow", name);
}

static void test_changes(void)
{
	const struct timespec later[2] = { { 5000, 0 }, { 5000, 1 } };

	put("base/f", "1");
	must(mkdir("base/d", 0755) == 0, "mkdir");
	put("base/d/x", "22");
	put("base/d-e", "");
	is_scan("+d/ +d-e:0 +d/x:2 +f:1 ", 100, false, false, "everything is new, in order");
	is_int(opened, 2, "each directory was told of before it was read");
	is_scan("", 100, false, false, "nothing has changed");
	put("base/d/x", "333");
	is_scan("~d/x:3 ", 100, false, false, "a size; the time of its directory is no event");
	must(utimensat(AT_FDCWD, "base/d/x", later, 0) == 0, "utimensat");
	is_scan("~d/x:3 ", 100, false, false, "a time");
	must(chmod("base/d/x", 0600) == 0, "chmod");
	is_scan("", 100, false, false, "a mode is no event");
	put("base/other", "333");
	must(utimensat(AT_FDCWD, "base/other", later, 0) == 0 && rename("base/other", "base/d/x") == 0, "rename");
	is_scan("~d/x:3 ", 100, false, false, "another file under the same name, with the same figures");
	must(rename("base/d", "base/moved") == 0, "rename");
	is_scan("-d/ -d/x:3 +moved/ +moved/x:3 ", 100, false, false, "a rename is a deletion and a creation");
	must(unlink("base/f") == 0 && mkdir("base/f", 0755) == 0, "swap");
	put("base/f/y", "");
	is_scan("-f:1 +f/ +f/y:0 ", 100, false, false, "a directory in a file's place");
	must(unlink("base/f/y") == 0 && rmdir("base/f") == 0 && unlink("base/d-e") == 0, "delete");
	is_scan("-d-e:0 -f/ -f/y:0 ", 100, false, false, "deletions, with the last figures");
	is_scan("-moved/ -moved/x:3 ", 100, true, false, "when the top is gone, so is everything");
	is_int((long long)snapshot.n, 0, "and nothing is tracked");
	snapshot_release(&snapshot);
	must(unlink("base/moved/x") == 0 && rmdir("base/moved") == 0, "delete");
}

static void test_limit(void)
{
	put("base/b", "");
	put("base/d", "");
	put("base/f", "");
	put("base/h", "");
	is_scan("+b:0 +d:0 +f:0 ", 3, false, true, "three of four");
	is_scan("", 3, false, true, "the fourth still has no room");
	put("base/a", "");
	put("base/c", "");
	is_scan("", 3, false, true, "what comes before does not push out what is tracked");
	put("base/d", "x");
	is_scan("~d:1 ", 3, false, true, "which is still followed");
	must(unlink("base/f") == 0, "unlink");
	is_scan("+a:0 -f:0 ", 3, false, true, "the place of one that is gone goes to the first that waits");
	must(unlink("base/b") == 0 && unlink("base/d") == 0, "unlink");
	is_scan("-b:0 +c:0 -d:1 +h:0 ", 3, false, false, "now all have room");
	stop_after = 2;
	must(unlink("base/a") == 0 && unlink("base/c") == 0 && unlink("base/h") == 0, "unlink");
	const struct scan scan = { .top = &top, .roots = &roots, .limit = 3, .report = tell };
	struct abx_err err = ABX_ERR_INIT;
	bool overflow;

	is_int(snapshot_scan(&snapshot, &scan, &overflow, &err), 1, "whoever is told can stop it");
	snapshot_release(&snapshot);
}

int main(void)
{
	struct abx_err err = ABX_ERR_INIT;

	scratch_enter();
	must(abx_roots_open("base", &roots, &err) == 0 && abx_path_resolve(&roots, ".", 0, &top, &err) == 0, err.message);
	test_changes();
	test_limit();
	abx_path_release(&top);
	abx_strbuf_release(&told);
	abx_roots_release(&roots);
	return done_testing();
}
