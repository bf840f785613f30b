#include "common/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/auto.h"

#define OPTIONS_MAX 8

struct abx_confinement abx_confinement_of(unsigned wanted, const struct abx_confine_limits *limits)
{
	return (struct abx_confinement){
		.filesystem = wanted & ABX_CONFINE_FILESYSTEM,
		.no_network = wanted & ABX_CONFINE_NETWORK,
		.no_new_privs = wanted & ABX_CONFINE_NO_NEW_PRIVS,
		.memory_bytes = (uint64_t)limits->max_memory_bytes,
		.processes = (uint64_t)limits->max_processes,
		.cpu_seconds = (uint64_t)limits->max_cpu_seconds,
	};
}

static int fail(int os_errno, struct abx_err *err)
{
	char reason[128];

	return abx_err_set(err, ABX_E_INTERNAL, "Cannot confine the command: %s", strerror_r(os_errno, reason, sizeof(reason)));
}

/* Beside our own program, never where others are installed: a half of each would be no server. NULL: out of memory. */
static char *find_abx_exec(void)
{
	char self[PATH_MAX], *path;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	while (len > 0 && self[len - 1] != '/')
		len--;
	return asprintf(&path, "%.*sabx-exec", (int)(len > 0 ? len : 0), self) < 0 ? NULL : path;
}

static bool write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* The environment as a file. Returns a descriptor, or -1. */
static int env_file(char *const *vars)
{
	abx_auto_fd int fd = memfd_create("abx-env", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	for (; *vars; vars++)
		if (!write_all(fd, *vars, strlen(*vars) + 1))
			return -1;
	return abx_steal_fd(&fd);
}

static bool add_option(struct abx_confined *confined, size_t *n, const char *name, uint64_t value)
{
	if (asprintf(&confined->texts[*n], "--%s=%" PRIu64, name, value) < 0) {
		confined->texts[*n] = NULL;
		return false;
	}
	++*n;
	return true;
}

/* abx-exec's options, then the program, then its arguments from the zeroth on. */
static bool make_argv(struct abx_confined *confined, const struct abx_confinement *confinement, const char *program, char *const *argv)
{
	const struct {
		const char *name;
		uint64_t value;
	} options[OPTIONS_MAX] = {
		{ "readable", confinement->n_readable },
		{ "trees", confinement->n_trees },         { "filesystem", confinement->filesystem },
		{ "no-network", confinement->no_network }, { "memory", confinement->memory_bytes },
		{ "processes", confinement->processes },   { "cpu", confinement->cpu_seconds },
	};
	size_t n = 0, n_argv = 0, at = 0;

	while (argv[n_argv])
		n_argv++;
	confined->texts = calloc(OPTIONS_MAX + 2, sizeof(*confined->texts));
	confined->argv = calloc(OPTIONS_MAX + n_argv + 3, sizeof(*confined->argv));
	if (!confined->texts || !confined->argv)
		return false;
	for (size_t i = 0; i < OPTIONS_MAX && options[i].name; i++)
		if (options[i].value && !add_option(confined, &n, options[i].name, options[i].value))
			return false;
	confined->texts[n] = strdup(program);
	if (!confined->texts[n])
		return false;
	confined->argv[at++] = confined->program;
	for (size_t i = 0; i <= n; i++)
		confined->argv[at++] = confined->texts[i];
	memcpy(confined->argv + at, argv, (n_argv + 1) * sizeof(*argv));
	return true;
}

/* Copies whose numbers are out of the way of those that they become in the child. Returns 0 or an errno. */
static int gather_fds(struct abx_confined *confined, const struct abx_confinement *confinement, int report_fd, int env_fd)
{
	size_t n = 2 + confinement->n_trees;

	confined->fds = malloc(n * sizeof(*confined->fds));
	if (!confined->fds)
		return ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int fd = i == 0 ? report_fd : i == 1 ? env_fd : confinement->trees[i - 2];

		confined->fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, ABX_CONFINE_REPORT + (int)n);
		if (confined->fds[i] < 0)
			return errno;
		confined->n_fds++;
	}
	return 0;
}

int abx_confine_begin(const struct abx_confinement *confinement, const char *program, char *const *argv, char *const *vars,
		      struct abx_confined *ret_confined, struct abx_err *err)
{
	__attribute__((cleanup(abx_confined_release))) struct abx_confined confined = ABX_CONFINED_INIT;
	abx_auto_fd int env_fd = env_file(vars), report_fd = -1;
	int ends[2], rc;

	if (env_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return fail(errno, err);
	confined.report_fd = ends[0];
	report_fd = ends[1];
	rc = gather_fds(&confined, confinement, report_fd, env_fd);
	if (rc)
		return fail(rc, err);
	confined.program = find_abx_exec();
	if (!confined.program || !make_argv(&confined, confinement, program, argv))
		return fail(ENOMEM, err);
	*ret_confined = confined;
	confined = (struct abx_confined)ABX_CONFINED_INIT;
	return 0;
}

int abx_confine_actions(const struct abx_confined *confined, posix_spawn_file_actions_t *actions)
{
	int rc = 0, next = ABX_CONFINE_REPORT;

	for (size_t i = 0; !rc && i < confined->n_fds; i++)
		rc = posix_spawn_file_actions_adddup2(actions, confined->fds[i], next++);
	return rc ? rc : posix_spawn_file_actions_addclosefrom_np(actions, next);
}

int abx_confine_finish(struct abx_confined *confined, struct abx_err *err)
{
	char text[sizeof(err->message)];
	size_t len = 0;
	ssize_t n;

	/* Ours is the last copy but for the child's. */
	for (size_t i = 0; i < confined->n_fds; i++)
		close(confined->fds[i]);
	confined->n_fds = 0;
	while ((n = read(confined->report_fd, text + len, sizeof(text) - 1 - len)) > 0 || (n < 0 && errno == EINTR))
		len += n > 0 ? (size_t)n : 0;
	text[len] = '\0';
	if (len == 0)
		return 0;
	if (*text == 'E' && atoi(text + 1) > 0)
		return atoi(text + 1);
	return abx_err_set(err, ABX_E_INTERNAL, "Cannot confine the command: %s", text);
}

void abx_confined_release(struct abx_confined *confined)
{
	for (size_t i = 0; i < confined->n_fds; i++)
		close(confined->fds[i]);
	for (size_t i = 0; confined->texts && confined->texts[i]; i++)
		free(confined->texts[i]);
	free(confined->texts);
	free(confined->argv);
	free(confined->fds);
	free(confined->program);
	abx_cleanup_fd(&confined->report_fd);
}
