#include "handlers/ptyd/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "common/confine.h"
#include "common/spawn_internal.h"
#include "policy/policy.h"

/* Variables of the caller that are left out: they would have the shell load code before it is one. */
static const char *const refused[] = { "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES" };

static bool is_refused(const char *name)
{
	for (size_t i = 0; i < ABX_N(refused); i++)
		if (strcmp(refused[i], name) == 0)
			return true;
	return false;
}

/* Set a variable unless the base has it. */
static int set_default(struct abx_env *env, const char *name, const char *value)
{
	return abx_env_get(env, name) ? 0 : abx_env_set(env, name, value);
}

/* What a login would have set, and then what the caller wants. `temp`: the directory that is the shell's own, or NULL. */
static int make_env(const struct pty_plan *plan, const char *home, const char *temp, struct abx_env *env)
{
	int failed = abx_env_init(env);
	bool has_locale = abx_env_get(env, "LANG") || abx_env_get(env, "LC_ALL") || abx_env_get(env, "LC_CTYPE");
	const char *name;
	const json_t *value;

	failed |= abx_env_set(env, "TERM", "xterm-256color") | abx_env_set(env, "SHELL", plan->shell) | set_default(env, "HOME", home);
	if (temp)
		failed |= abx_env_set(env, "TMPDIR", temp);
	/* The terminal speaks UTF-8. */
	if (!has_locale)
		failed |= abx_env_set(env, "LANG", "C.UTF-8");
	for (void *i = json_object_iter((json_t *)(uintptr_t)plan->env); i; i = json_object_iter_next((json_t *)(uintptr_t)plan->env, i)) {
		name = json_object_iter_key(i);
		value = json_object_iter_value(i);
		if (!is_refused(name))
			failed |= abx_env_set(env, name, json_string_value(value));
	}
	return failed ? -1 : 0;
}

/* The master side, of the right size before anything runs. *ret_name is the other side's. */
static int open_terminal(const struct pty_plan *plan, char ret_name[64])
{
	struct winsize size = { .ws_col = (unsigned short)plan->cols, .ws_row = (unsigned short)plan->rows };
	abx_auto_fd int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	struct termios mode;

	if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0 || ptsname_r(fd, ret_name, 64) != 0 || ioctl(fd, TIOCSWINSZ, &size) < 0)
		return -1;
	/* Erasing takes back a whole character. */
	if (tcgetattr(fd, &mode) < 0)
		return -1;
	mode.c_iflag |= IUTF8;
	if (tcsetattr(fd, TCSANOW, &mode) < 0)
		return -1;
	return abx_steal_fd(&fd);
}

/* What is started: the shell itself, or abx-exec, which becomes the shell. */
struct launch {
	const struct pty_plan *plan;
	const char *terminal, *program;
	char *const *argv, *const *vars;
	struct abx_confined confined; /* of abx-exec */
};

/*
 * The child begins a session of its own and opens the terminal, which so becomes its controlling one, as standard input: no step of ours has to run in
 * the child. Returns 0 or an errno.
 */
static int spawn_shell(const struct launch *launch, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int rc;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return ENOMEM;
	}
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	rc = posix_spawn_file_actions_addfchdir_np(&actions, launch->plan->cwd_fd);
	rc = rc ? rc : posix_spawn_file_actions_addopen(&actions, 0, launch->terminal, O_RDWR, 0);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, 0, 1);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, 0, 2);
	if (!rc)
		rc = launch->plan->confine ? abx_confine_actions(&launch->confined, &actions) : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	rc = rc ? rc : posix_spawn(ret_pid, launch->program, &actions, &attributes, launch->argv, launch->vars);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

/* From here on it runs. Without a pidfd it could not be watched. */
static int adopt(struct abx_child *child, struct abx_err *err)
{
	atomic_store(&child->slot->pid, child->pid);
	child->pidfd = pidfd_open(child->pid, 0);
	if (child->pidfd >= 0) {
		abx_child_raise_oom_score(child->pid);
		return 0;
	}
	abx_err_errno(err, errno, "Cannot watch the shell");
	kill(-child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	return -1;
}

/* By way of abx-exec. Nothing of the caller's is in that program's environment: the marker alone is. */
static int confine(struct launch *launch, const struct abx_workdir *temp, const char *marker, struct abx_err *err)
{
	const struct pty_plan *plan = launch->plan;
	abx_auto_free int *trees = calloc(plan->n_trees + 1, sizeof(*trees));
	struct abx_confinement confinement = abx_confinement_of(plan->confine, &plan->confine_limits);

	if (!trees)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	confinement.trees = trees;
	if (temp->fd >= 0) {
		memcpy(trees, plan->trees, plan->n_trees * sizeof(*trees));
		trees[plan->n_trees] = temp->fd;
		confinement.n_trees = plan->n_trees + 1;
	}
	if (abx_confine_begin(&confinement, plan->shell, launch->argv, launch->vars, &launch->confined, err) < 0)
		return -1;
	launch->program = launch->confined.program;
	launch->argv = launch->confined.argv;
	while (*launch->vars != marker)
		launch->vars++;
	return 0;
}

/* Start it. On failure nothing runs, and the slot on the board is free again. */
static int launch_shell(struct launch *launch, struct abx_child *child, struct abx_err *err)
{
	int rc = spawn_shell(launch, &child->pid);

	if (rc)
		abx_err_errno(err, rc, "Cannot start %s", launch->program);
	if (rc || adopt(child, err) < 0) {
		abx_board_child_end(child->slot);
		return -1;
	}
	rc = launch->plan->confine ? abx_confine_finish(&launch->confined, err) : 0;
	if (!rc)
		return 0;
	if (rc > 0)
		abx_err_errno(err, rc, "Cannot start %s", launch->plan->shell);
	abx_child_reap(child->pidfd, child->slot);
	return -1;
}

static int start(struct pty_session *session, struct launch *launch, struct abx_env *env, struct abx_err *err)
{
	struct abx_child child = ABX_CHILD_INIT;
	char marker[sizeof(ABX_INVOCATION) + sizeof(child.slot->invocation)];
	abx_auto_free char **vars = NULL;

	child.slot = abx_board_child_begin(abx_spawn_door.board);
	if (!child.slot)
		return abx_err_set(err, ABX_E_TABLE_FULL, "Too many running processes (%d)", ABX_BOARD_CHILDREN);
	snprintf(marker, sizeof(marker), ABX_INVOCATION "%s", child.slot->invocation);
	launch->vars = vars = abx_env_finish(env, marker);
	if (!vars)
		abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (!vars || (launch->plan->confine && confine(launch, &session->temp, marker, err) < 0)) {
		abx_board_child_end(child.slot);
		return -1;
	}
	if (launch_shell(launch, &child, err) < 0)
		return -1;
	session->child = child;
	return 0;
}

int pty_session_start(struct pty_session *session, const struct pty_plan *plan, struct abx_err *err)
{
	abx_auto_env struct abx_env env = { 0 };
	abx_auto_free char *name = strdup(plan->shell);
	char *argv[] = { name, NULL };
	char terminal[64], home[PATH_MAX] = "", link[32];
	struct launch launch = { .plan = plan, .terminal = terminal, .program = plan->shell, .argv = argv, .confined = ABX_CONFINED_INIT };
	int result;

	if ((plan->confine & ABX_CONFINE_FILESYSTEM) && abx_workdir_make(plan->spool_dir, &session->temp, err) < 0)
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", plan->cwd_fd);
	if (!name || readlink(link, home, sizeof(home) - 1) < 0 || make_env(plan, home, session->temp.path, &env) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Cannot make the shell's environment");
	session->tty.fd = open_terminal(plan, terminal);
	if (session->tty.fd < 0)
		return abx_err_errno(err, errno, "Cannot open a terminal");
	result = start(session, &launch, &env, err);
	abx_confined_release(&launch.confined);
	return result;
}
