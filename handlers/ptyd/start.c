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

#include "common/spawn_internal.h"

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

/* What a login would have set, and then what the caller wants. */
static int make_env(const struct pty_plan *plan, const char *home, struct abx_env *env)
{
	int failed = abx_env_init(env);
	bool has_locale = abx_env_get(env, "LANG") || abx_env_get(env, "LC_ALL") || abx_env_get(env, "LC_CTYPE");
	const char *name;
	const json_t *value;

	failed |= abx_env_set(env, "TERM", "xterm-256color") | abx_env_set(env, "SHELL", plan->shell) | set_default(env, "HOME", home);
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

/*
 * The child begins a session of its own and opens the terminal, which so becomes its controlling one, as standard input: no step of ours has to run in
 * the child. Returns 0 or an errno.
 */
static int spawn_shell(const struct pty_plan *plan, const char *terminal, char *const *vars, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	abx_auto_free char *name = strdup(plan->shell);
	char *argv[] = { name, NULL };
	sigset_t all, none;
	int rc;

	if (!name || posix_spawn_file_actions_init(&actions) != 0)
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
	rc = posix_spawn_file_actions_addfchdir_np(&actions, plan->cwd_fd);
	rc = rc ? rc : posix_spawn_file_actions_addopen(&actions, 0, terminal, O_RDWR, 0);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, 0, 1);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, 0, 2);
	rc = rc ? rc : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	rc = rc ? rc : posix_spawn(ret_pid, plan->shell, &actions, &attributes, argv, vars);
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

int pty_session_start(struct pty_session *session, const struct pty_plan *plan, struct abx_err *err)
{
	abx_auto_env struct abx_env env = { 0 };
	abx_auto_free char **vars = NULL;
	struct abx_child child = ABX_CHILD_INIT;
	char terminal[64], home[PATH_MAX] = "", link[32], marker[sizeof(ABX_INVOCATION) + sizeof(child.slot->invocation)];
	int rc;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", plan->cwd_fd);
	if (readlink(link, home, sizeof(home) - 1) < 0 || make_env(plan, home, &env) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Cannot make the shell's environment");
	session->tty.fd = open_terminal(plan, terminal);
	if (session->tty.fd < 0)
		return abx_err_errno(err, errno, "Cannot open a terminal");
	child.slot = abx_board_child_begin(abx_spawn_door.board);
	if (!child.slot)
		return abx_err_set(err, ABX_E_TABLE_FULL, "Too many running processes (%d)", ABX_BOARD_CHILDREN);
	snprintf(marker, sizeof(marker), ABX_INVOCATION "%s", child.slot->invocation);
	vars = abx_env_finish(&env, marker);
	rc = vars ? spawn_shell(plan, terminal, vars, &child.pid) : ENOMEM;
	if (rc)
		abx_err_errno(err, rc, "Cannot start %s", plan->shell);
	if (rc || adopt(&child, err) < 0) {
		abx_board_child_end(child.slot);
		return -1;
	}
	session->child = child;
	return 0;
}
