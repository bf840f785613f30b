#include "handlers/system/machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/auto.h"
#include "t/scratch.h"
#include "t/tap.h"

static void test_memory(void)
{
	struct system_memory memory;

	system_memory_parse("MemTotal:       24683624 kB\nMemFree:        22321500 kB\nMemAvailable:   23071276 kB\n",
			    &memory);
	is_int(memory.total_kb, 24683624, "all memory");
	is_int(memory.available_kb, 23071276, "what is available");
	system_memory_parse("MemTotal: 100 kB\nMemFree: 10 kB\nBuffers: 3 kB\nCached: 20 kB\nSwapCached: 99 kB",
			    &memory);
	is_int(memory.available_kb, 33, "an old kernel does not say what is available");
	system_memory_parse("MemTotal:\nXMemTotal: 5 kB\nMemTotalX: 6 kB\n", &memory);
	is_int(memory.total_kb, -1, "no number, no figure");
	system_memory_parse("", &memory);
	is_int(memory.total_kb, -1, "nothing at all");
	is_int(memory.available_kb, -1, "is nothing known");
	system_memory_read(&memory);
	ok(memory.total_kb > 0 && memory.available_kb > 0 && memory.available_kb <= memory.total_kb,
	   "this machine has memory");
}

static void test_disk(void)
{
	struct system_disk disk;

	is_int(system_disk_read(&disk), 0, "the disk");
	ok(disk.total >= disk.used && disk.used >= 0 && disk.free >= 0 && disk.used + disk.free <= disk.total,
	   "its figures go together");
}

static void found(const char *cgroup, const char *mountinfo, const char *want_mount, const char *want_directory,
		  const char *what)
{
	abx_auto_free char *mount = NULL, *directory = NULL;
	int result = system_cgroup_find(cgroup, mountinfo, &mount, &directory);

	is_int(result, want_mount ? 0 : -1, "%s", what);
	is_str(mount, want_mount, "%s: mount", what);
	is_str(directory, want_directory, "%s: directory", what);
}

#define V1 "31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
#define V2 "40 30 0:37 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n"

static void test_find(void)
{
	found("0::/a/b\n", V2, "/sys/fs/cgroup", "/sys/fs/cgroup/a/b", "cgroup v2");
	found("0::/\n", V2, "/sys/fs/cgroup", "/sys/fs/cgroup", "the root of a namespace");
	found("9:memory:/x\n0::/a\n", V1 V2, "/sys/fs/cgroup", "/sys/fs/cgroup/a", "both versions");
	found("9:memory:/x\n", V1 V2, NULL, NULL, "no cgroup of ours");
	found("0::/a\n", V1, NULL, NULL, "not mounted");
	found("", "", NULL, NULL, "nothing at all");
	found("0::/docker/id/sub\n", "1 2 0:3 /docker/id /cg rw - cgroup2 c rw\n", "/cg", "/cg/sub",
	      "a mount of a part");
	found("0::/other\n", "1 2 0:3 /docker/id /cg rw - cgroup2 c rw\n", "/cg", "/cg", "outside of what is mounted");
	found("0::/docker/idea\n", "1 2 0:3 /docker/id /cg rw - cgroup2 c rw\n", "/cg", "/cg",
	      "a name that begins alike");
	found("0::/../x\n", V2, "/sys/fs/cgroup", "/sys/fs/cgroup", "above the namespace");
	found("0::/a\n", "1 2 0:3 / /a\\040b rw - cgroup2 c rw\n", "/a b", "/a b/a", "an escaped mount point");
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		printf("Bail out! %s\n", path);
}

static void limits(const char *what, const char *directory, int64_t limit, int64_t current, double cpus)
{
	struct system_cgroup cgroup;

	system_cgroup_read_at("cg", directory, &cgroup);
	is_int(cgroup.memory_limit, limit, "%s: memory limit", what);
	is_int(cgroup.memory_current, current, "%s: memory in use", what);
	ok(cgroup.cpu_limit == cpus, "%s: processors (%g)", what, cgroup.cpu_limit);
}

static void test_limits(void)
{
	mkdir("cg", 0700);
	mkdir("cg/a", 0700);
	mkdir("cg/a/b", 0700);
	limits("no files", "cg/a/b", -1, -1, -1);
	put("cg/a/b/memory.max", "max\n");
	put("cg/a/b/memory.current", "1000\n");
	put("cg/a/b/cpu.max", "max 100000\n");
	limits("no limits", "cg/a/b", -1, 1000, -1);
	put("cg/a/memory.max", "5000\n");
	put("cg/a/memory.current", "3000\n");
	put("cg/a/cpu.max", "150000 100000\n");
	limits("a limit of the parent", "cg/a/b", 5000, 3000, 1.5);
	put("cg/a/b/memory.max", "4000\n");
	put("cg/a/b/cpu.max", "200000 100000\n");
	limits("the tighter one holds", "cg/a/b", 4000, 1000, 1.5);
	put("cg/memory.max", "1\n");
	limits("up to the mount point", "cg/a/b", 1, -1, 1.5);
	put("memory.max", "0\n");
	limits("and not beyond", "cg/a/b", 1, -1, 1.5);
	limits("the mount point itself", "cg", 1, -1, -1);
}

int main(void)
{
	scratch_enter();
	test_memory();
	test_disk();
	test_find();
	test_limits();
	return done_testing();
}
