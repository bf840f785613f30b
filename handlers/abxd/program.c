/* The programs that abxd runs: where they are, and how they are started. */
#include "handlers/abxd/server.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *abx_group_program_name(enum abx_group group)
{
	char *name;

	if (asprintf(&name, "abx-%s", abx_groups[group].name) < 0)
		return NULL;
	for (char *c = strchr(name, '_'); c; c = strchr(c, '_'))
		*c = '-';
	return name;
}

/* Where the programs are: beside our own in a build directory, which core tells, else where they are installed. Never from both. */
static const char *program_dir(char self[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", self, PATH_MAX - 1);
	char *slash, *core = NULL;
	bool beside;

	self[len > 0 ? len : 0] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return ABX_LIBEXECDIR;
	*slash = '\0';
	beside = asprintf(&core, "%s/abx-core", self) >= 0 && access(core, F_OK) == 0;
	free(core);
	return beside ? self : ABX_LIBEXECDIR;
}

char *abx_find_program(const char *name)
{
	char self[PATH_MAX], *path;

	if (asprintf(&path, "%s/%s", program_dir(self), name) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

pid_t abx_spawn_program(const struct abx_server *server, const char *program, int listen_fd, int control_fd, int more_fd)
{
	const char *slash = strrchr(program, '/');
	abx_auto_free char *name = strdup(slash ? slash + 1 : program);
	char *argv[] = { name, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t all, none;
	pid_t pid = -1;
	int rc;

	if (!name || posix_spawn_file_actions_init(&files) != 0)
		return -1;
	if (posix_spawnattr_init(&attr) != 0) {
		posix_spawn_file_actions_destroy(&files);
		return -1;
	}
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	/* Our own descriptors are all above these numbers (main.c), so none is overwritten before it is copied. */
	rc = posix_spawn_file_actions_adddup2(&files, listen_fd, ABX_FD_LISTEN);
	rc |= posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	rc |= posix_spawn_file_actions_adddup2(&files, server->policy_fd, ABX_FD_POLICY);
	rc |= posix_spawn_file_actions_adddup2(&files, server->board_fd, ABX_FD_BOARD);
	rc |= posix_spawn_file_actions_adddup2(&files, control_fd, ABX_FD_CONTROL);
	if (more_fd >= 0)
		rc |= posix_spawn_file_actions_adddup2(&files, more_fd, ABX_FD_PTY);
	rc |= posix_spawn_file_actions_addclosefrom_np(&files, more_fd >= 0 ? ABX_FD__END : ABX_FD_PTY);
	if (rc == 0) {
		rc = posix_spawn(&pid, program, &files, &attr, argv, server->env);
		errno = rc;
	}
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return rc == 0 ? pid : -1;
}
