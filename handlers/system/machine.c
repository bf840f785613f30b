#include "handlers/system/machine.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/auto.h"
#include "common/proc_file.h"

/* The number of a line "Name:   1234 kB", or -1. */
static int64_t meminfo_line(const char *meminfo, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = meminfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		long long kb;

		if (strncmp(line, name, len) == 0 && line[len] == ':' && sscanf(line + len + 1, "%lld", &kb) == 1)
			return kb;
	}
	return -1;
}

void system_memory_parse(const char *meminfo, struct system_memory *ret_memory)
{
	static const char *const parts[] = { "MemFree", "Buffers", "Cached" };

	ret_memory->total_kb = meminfo_line(meminfo, "MemTotal");
	ret_memory->available_kb = meminfo_line(meminfo, "MemAvailable");
	if (ret_memory->available_kb >= 0 || meminfo_line(meminfo, parts[0]) < 0)
		return;
	ret_memory->available_kb = 0;
	for (size_t i = 0; i < ABX_N(parts); i++) {
		int64_t kb = meminfo_line(meminfo, parts[i]);

		ret_memory->available_kb += kb > 0 ? kb : 0;
	}
}

void system_memory_read(struct system_memory *ret_memory)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX(1 << 20);

	/* Without the file there is no line, and so nothing is known. */
	if (abx_proc_file_read("/proc/meminfo", &text) < 0)
		abx_strbuf_reset(&text);
	system_memory_parse(text.buf, ret_memory);
}

int system_disk_read(struct system_disk *ret_disk)
{
	struct statvfs st;

	if (statvfs("/", &st) < 0)
		return -1;
	ret_disk->total = (double)st.f_blocks * (double)st.f_frsize;
	ret_disk->free = (double)st.f_bavail * (double)st.f_frsize;
	ret_disk->used = (double)(st.f_blocks - st.f_bfree) * (double)st.f_frsize;
	return 0;
}

/* Undo the octal escapes that mountinfo has for blanks and backslashes, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		unsigned byte;

		if (*from == '\\' && sscanf(from + 1, "%3o", &byte) == 1) {
			*to++ = (char)byte;
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

/* The root and the mount point of the first cgroup2 file system in a line of mountinfo. Both to be freed. */
static bool cgroup_mount(const char *line, char **ret_root, char **ret_mount)
{
	const char *end = line + strcspn(line, "\n"), *type = memmem(line, (size_t)(end - line), " - cgroup2 ", 11);
	char *root = NULL, *mount = NULL;

	if (!type || sscanf(line, "%*s %*s %*s %ms %ms", &root, &mount) != 2) {
		free(root);
		free(mount);
		return false;
	}
	unescape(root);
	unescape(mount);
	*ret_root = root;
	*ret_mount = mount;
	return true;
}

/* The path of our cgroup in the line "0::/path". To be freed. NULL: there is none. */
static char *cgroup_path(const char *cgroup)
{
	for (const char *line = cgroup; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, "0::/", 4) == 0)
			return strndup(line + 3, strcspn(line + 3, "\n"));
	return NULL;
}

int system_cgroup_find(const char *cgroup, const char *mountinfo, char **ret_mount, char **ret_directory)
{
	abx_auto_free char *path = cgroup_path(cgroup), *root = NULL, *mount = NULL;
	const char *below = path;
	size_t len;

	for (const char *line = mountinfo; path && *line && !mount; line += strcspn(line, "\n"), line += *line == '\n')
		cgroup_mount(line, &root, &mount);
	if (!mount)
		return -1;
	/* A mount may show a part of the tree only; a cgroup outside of it cannot be seen. */
	len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(path, root, len) == 0 && (!path[len] || path[len] == '/'))
		below = path + len;
	else
		below = "";
	if (strcmp(below, "/") == 0 || strstr(below, "/.."))
		below = "";
	if (asprintf(ret_directory, "%s%s", mount, below) < 0)
		return -1;
	*ret_mount = ABX_STEAL(mount);
	return 0;
}

/* The text of a file of the cgroup; "" when it has none. */
static void cgroup_text(const char *directory, const char *name, char text[64])
{
	abx_auto_strbuf struct abx_strbuf content = ABX_STRBUF_INIT_MAX(63);
	abx_auto_free char *path = NULL;

	text[0] = '\0';
	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		return;
	}
	if (abx_proc_file_read(path, &content) == 0)
		snprintf(text, 64, "%s", content.buf);
}

static int64_t cgroup_bytes(const char *directory, const char *name)
{
	char text[64];

	cgroup_text(directory, name, text);
	return isdigit((unsigned char)text[0]) ? strtoll(text, NULL, 10) : -1;
}

/* "max 100000" is no limit; "50000 100000" is half a processor. */
static double cgroup_cpus(const char *directory)
{
	char text[64];
	double quota, period;

	cgroup_text(directory, "cpu.max", text);
	return sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 ? quota / period : -1;
}

void system_cgroup_read_at(const char *mount, const char *directory, struct system_cgroup *ret_cgroup)
{
	struct system_cgroup found = { .memory_limit = -1,
				       .memory_current = cgroup_bytes(directory, "memory.current"),
				       .cpu_limit = -1 };
	abx_auto_free char *at = strdup(directory);
	size_t mount_len = strlen(mount);

	while (at && strlen(at) >= mount_len) {
		int64_t limit = cgroup_bytes(at, "memory.max");
		double cpus = cgroup_cpus(at);
		char *slash = strrchr(at, '/');

		if (limit >= 0 && (found.memory_limit < 0 || limit < found.memory_limit)) {
			found.memory_limit = limit;
			found.memory_current = cgroup_bytes(at, "memory.current");
		}
		if (cpus >= 0 && (found.cpu_limit < 0 || cpus < found.cpu_limit))
			found.cpu_limit = cpus;
		if (!slash || slash == at)
			break;
		*slash = '\0';
	}
	*ret_cgroup = found;
}

void system_cgroup_read(struct system_cgroup *ret_cgroup)
{
	abx_auto_strbuf struct abx_strbuf cgroup = ABX_STRBUF_INIT, mountinfo = ABX_STRBUF_INIT;
	abx_auto_free char *mount = NULL, *directory = NULL;

	if (abx_proc_file_read("/proc/self/cgroup", &cgroup) < 0 ||
	    abx_proc_file_read("/proc/self/mountinfo", &mountinfo) < 0 ||
	    system_cgroup_find(cgroup.buf, mountinfo.buf, &mount, &directory) < 0)
		*ret_cgroup = (struct system_cgroup){ -1, -1, -1 };
	else
		system_cgroup_read_at(mount, directory, ret_cgroup);
}
