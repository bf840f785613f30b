/*
 * abx-exec: gives up what a confined command is not to have, and becomes it.
 *
 *   abx-exec [OPTION…] PROGRAM ARGV0 [ARG…]
 *
 * Started by abx_confine_begin, which says what the descriptors are. Exit status 126 when anything could not be given up; the report says what.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cage.h"
#include "common/confine.h"
#include "common/landlock.h"
#include "handlers/exec/exec.h"

/* What a confined program may read, and run programs from. */
static const char *const readable[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys" };

/* The usual devices. /dev/fd and the like are links into /proc. */
static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts" };

static _Noreturn void report(const char *text)
{
	size_t len = strlen(text);

	/* Whoever does not hear of it sees the exit status. */
	if (write(ABX_CONFINE_REPORT, text, len) != (ssize_t)len)
		_exit(127);
	_exit(126);
}

static int read_option(const char *text, struct exec_options *options)
{
	static const struct {
		const char *name;
		size_t offset;
	} names[] = {
		{ "--readable=", offsetof(struct exec_options, readable) },
		{ "--trees=", offsetof(struct exec_options, trees) },
		{ "--filesystem=", offsetof(struct exec_options, filesystem) },
		{ "--no-network=", offsetof(struct exec_options, no_network) },
		{ "--memory=", offsetof(struct exec_options, memory) },
		{ "--processes=", offsetof(struct exec_options, processes) },
		{ "--cpu=", offsetof(struct exec_options, cpu) },
	};

	for (size_t i = 0; i < ABX_N(names); i++) {
		size_t len = strlen(names[i].name);

		if (strncmp(text, names[i].name, len) != 0)
			continue;
		*(uint64_t *)((char *)options + names[i].offset) = strtoull(text + len, NULL, 10);
		return 0;
	}
	return -1;
}

/* The environment that came as a file: an array into its memory. */
static char **read_env(void)
{
	struct stat st;
	size_t n = 0;
	char *text, **vars;

	if (fstat(ABX_CONFINE_ENV, &st) < 0)
		return NULL;
	/* One byte more: an empty file cannot be mapped. */
	text = calloc(1, (size_t)st.st_size + 1);
	if (!text || pread(ABX_CONFINE_ENV, text, (size_t)st.st_size, 0) != st.st_size)
		return NULL;
	for (const char *p = text; p < text + st.st_size; p += strlen(p) + 1)
		n++;
	vars = calloc(n + 1, sizeof(*vars));
	if (!vars)
		return NULL;
	for (n = 0; *text; text += strlen(text) + 1)
		vars[n++] = text;
	return vars;
}

static void add_path(struct abx_landlock_tree *trees, size_t *n, const char *path, bool writes)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	/* What is not there cannot be read. */
	if (fd >= 0)
		trees[(*n)++] = (struct abx_landlock_tree){ .fd = fd, .writes = writes, .runs = !writes };
}

static int restrict_files(const struct exec_options *options, unsigned flags, struct abx_err *err)
{
	size_t n = 0, max = options->trees + ABX_N(readable) + ABX_N(devices);
	abx_auto_free struct abx_landlock_tree *trees = calloc(max, sizeof(*trees));

	if (!trees)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	for (size_t i = 0; i < options->trees; i++)
		trees[n++] = (struct abx_landlock_tree){ .fd = ABX_CONFINE_TREES + (int)i, .writes = i + options->readable < options->trees,
							  .runs = true };
	for (size_t i = 0; options->filesystem && i < ABX_N(readable); i++)
		add_path(trees, &n, readable[i], false);
	for (size_t i = 0; options->filesystem && i < ABX_N(devices); i++)
		add_path(trees, &n, devices[i], true);
	if (!options->filesystem)
		n = 0;
	int result = abx_landlock_enter(flags, trees, n, err);
	if (result > 0 && options->filesystem)
		return abx_err_set(err, ABX_E_INTERNAL, "The kernel has no Landlock");
	return result < 0 ? -1 : 0;
}

static int confine(const struct exec_options *options, struct abx_err *err)
{
	unsigned landlock = ABX_LANDLOCK_SCOPE, filter = ABX_CAGE_NO_IO_URING;
	bool in_namespace = false, needed = options->filesystem || options->no_network;
	bool limited = options->memory || options->processes || options->cpu;

	if (exec_limit(options, err) < 0)
		return -1;
	if (options->no_network && exec_leave_network(&in_namespace, err) < 0)
		return -1;
	if (options->filesystem && exec_own_proc(err) < 0)
		return -1;
	/* With all of its powers root could take back the rest. */
	if ((needed || limited) && exec_drop_capabilities(err) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return abx_err_errno(err, errno, "no_new_privs");
	if (options->filesystem)
		landlock |= ABX_LANDLOCK_FILES;
	if (options->no_network && !in_namespace) {
		landlock |= ABX_LANDLOCK_NO_TCP;
		filter |= ABX_CAGE_NO_NETWORK;
	}
	if (needed && restrict_files(options, landlock, err) < 0)
		return -1;
	if (needed)
		filter |= ABX_CAGE_NO_ADMIN;
	if (options->filesystem && abx_landlock_version() < 3)
		filter |= ABX_CAGE_NO_TRUNCATE;
	return abx_cage_filter(filter, err);
}

int main(int argc, char **argv)
{
	struct exec_options options = { 0 };
	struct abx_err err = ABX_ERR_INIT;
	char **vars, text[32];
	int at = 1;

	while (at < argc && argv[at][0] == '-' && argv[at][1] == '-')
		if (read_option(argv[at++], &options) < 0)
			report("abx-exec is of another version");
	if (argc - at < 2) {
		fputs("abx-exec is started by the server\n", stderr);
		return 64;
	}
	/* Nothing but 0, 1 and 2 is left to the program. */
	for (size_t i = 0; i < options.trees + 2; i++)
		fcntl(ABX_CONFINE_REPORT + (int)i, F_SETFD, FD_CLOEXEC);
	vars = read_env();
	if (!vars)
		report("Cannot read the environment");
	if (confine(&options, &err) < 0)
		report(err.message);
	execve(argv[at], argv + at + 1, vars);
	snprintf(text, sizeof(text), "E%d", errno);
	report(text);
}
