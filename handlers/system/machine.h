/*
 * Facts about the machine: memory, disk, and what the cgroup allows. The parsers take the text of the kernel's files.
 */
#ifndef ABX_SYSTEM_MACHINE_H
#define ABX_SYSTEM_MACHINE_H

#include <stdint.h>

/* -1: not known. */
struct system_memory {
	int64_t total_kb, available_kb;
};

/*
 * Read the text of /proc/meminfo. A kernel that does not tell MemAvailable is asked for what is free, in buffers and
 * in the page cache.
 */
void system_memory_parse(const char *meminfo, struct system_memory *ret_memory);
void system_memory_read(struct system_memory *ret_memory);

struct system_disk {
	double total, free, used; /* bytes; what is neither free nor used is kept for root */
};

/* The file system of "/". 0 or -1 with errno. */
int system_disk_read(struct system_disk *ret_disk);

/* What cgroup v2 allows this process; -1: no limit, or no cgroup v2 with that controller. */
struct system_cgroup {
	int64_t memory_limit, memory_current; /* bytes */
	double cpu_limit;                     /* processors */
};

/*
 * The directory of our own cgroup below `mount point` of cgroup v2 and that mount point, from the texts of
 * /proc/self/cgroup and /proc/self/mountinfo; both to be freed. 0, or -1 when there is none. /
 */
int system_cgroup_find(const char *cgroup, const char *mountinfo, char **ret_mount, char **ret_directory);

/*
 * Read the limits from `directory` up to `mount`: the tightest one holds. memory_current is that of the cgroup whose
 * limit holds, or our own.
 */
void system_cgroup_read_at(const char *mount, const char *directory, struct system_cgroup *ret_cgroup);
void system_cgroup_read(struct system_cgroup *ret_cgroup);

#endif
