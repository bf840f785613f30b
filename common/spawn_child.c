#include "common/spawn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/auto.h"

/* The ends of the pipes that the child gets. Ours are in struct abx_child. */
struct child_ends {
	int in, out, err;
};

static void child_ends_release(struct child_ends *ends)
{
	abx_cleanup_fd(&ends->in);
	abx_cleanup_fd(&ends->out);
	abx_cleanup_fd(&ends->err);
}

static void child_discard(struct abx_child *child)
{
	abx_cleanup_fd(&child->pidfd);
	abx_cleanup_fd(&child->input_fd);
	abx_cleanup_fd(&child->out_fd);
	abx_cleanup_fd(&child->err_fd);
	if (child->slot)
		abx_board_child_end(child->slot);
}

/* Append `text` as Python's repr() shows a string. */
static void add_repr(struct abx_strbuf *sb, const char *text)
{
	char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';

	abx_strbuf_addc(sb, quote);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n')
			abx_strbuf_adds(sb, "\\n");
		else if (c == '\t')
			abx_strbuf_adds(sb, "\\t");
		else if (c == '\r')
			abx_strbuf_adds(sb, "\\r");
		else if (c < 0x20 || c == 0x7f)
			abx_strbuf_addf(sb, "\\x%02x", c);
		else if (*text == quote || c == '\\')
			abx_strbuf_addf(sb, "\\%c", c);
		else
			abx_strbuf_addc(sb, *text);
	}
	abx_strbuf_addc(sb, quote);
}

/* The message that Python's OSError has: a client may look at it. */
static int fail_program(struct abx_err *err, int os_errno, const char *program)
{
	abx_auto_strbuf struct abx_strbuf shown = ABX_STRBUF_INIT_MAX(1024);
	char reason[128];

	add_repr(&shown, program);
	abx_err_set(err, ABX_E_ERRNO, "[Errno %d] %s: %s", os_errno, strerror_r(os_errno, reason, sizeof(reason)), shown.buf);
	err->os_errno = os_errno;
	return -1;
}

static int pipe_make(int *ret_ours, int *ret_theirs, bool child_reads)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	*ret_ours = fds[child_reads ? 1 : 0];
	*ret_theirs = fds[child_reads ? 0 : 1];
	/* Only our end: the child expects a blocking one. */
	return fcntl(*ret_ours, F_SETFL, O_NONBLOCK);
}

static int pipes_make(const struct abx_start *start, struct abx_child *child, struct child_ends *ends, struct abx_err *err)
{
	if ((start->output && (pipe_make(&child->out_fd, &ends->out, false) < 0 || pipe_make(&child->err_fd, &ends->err, false) < 0)) ||
	    (start->input && pipe_make(&child->input_fd, &ends->in, true) < 0))
		return abx_err_errno(err, errno, "Cannot make a pipe");
	return 0;
}

static void actions_release(posix_spawn_file_actions_t *actions)
{
	posix_spawn_file_actions_destroy(actions);
}

static void attributes_release(posix_spawnattr_t *attributes)
{
	posix_spawnattr_destroy(attributes);
}

/* A child that is about to be started. */
struct launch {
	const struct abx_start *start;
	struct child_ends ends;
	char *const *vars; /* its environment, the marker last */
	struct abx_confined confined;
};

static void launch_release(struct launch *launch)
{
	child_ends_release(&launch->ends);
	abx_confined_release(&launch->confined);
}

/* What stands where in the child. Returns 0 or an errno. */
static int child_actions(const struct launch *launch, posix_spawn_file_actions_t *actions)
{
	const struct child_ends *ends = &launch->ends;
	int null_fd = abx_spawn_door.null_fd;
	int rc = posix_spawn_file_actions_addfchdir_np(actions, launch->start->cwd_fd);

	if (!rc)
		rc = posix_spawn_file_actions_adddup2(actions, ends->in >= 0 ? ends->in : null_fd, 0);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(actions, ends->out >= 0 ? ends->out : null_fd, 1);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(actions, ends->err >= 0 ? ends->err : null_fd, 2);
	if (rc)
		return rc;
	return launch->start->confine ? abx_confine_actions(&launch->confined, actions) : posix_spawn_file_actions_addclosefrom_np(actions, 3);
}

/* posix_spawn with the habits of the door. Returns 0 or an errno. */
static int child_exec(const struct launch *launch, const char *program, char *const *argv, char *const *vars, pid_t *ret_pid)
{
	__attribute__((cleanup(actions_release))) posix_spawn_file_actions_t actions;
	__attribute__((cleanup(attributes_release))) posix_spawnattr_t attributes;
	sigset_t all, none;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	rc = child_actions(launch, &actions);
	return rc ? rc : posix_spawn(ret_pid, program, &actions, &attributes, argv, vars);
}

/* Tell the failure of a start: the fault may be the directory's, the program's, or the system's. */
static int fail_start(const struct abx_start *start, int os_errno, struct abx_err *err)
{
	if (os_errno == EAGAIN || os_errno == ENOMEM)
		return abx_err_errno(err, os_errno, "Cannot start a process");
	if (faccessat(start->cwd_fd, ".", X_OK, AT_EACCESS) < 0)
		return abx_err_errno(err, errno, "Cannot enter the working directory");
	return fail_program(err, os_errno, start->argv[0]);
}

void abx_child_raise_oom_score(pid_t pid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	abx_auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		dprintf(fd, "%d", abx_spawn_door.oom_score_adj);
}

/* From here on the child runs. */
static int child_adopt(struct abx_child *child, struct abx_err *err)
{
	atomic_store(&child->slot->pid, child->pid);
	child->pidfd = pidfd_open(child->pid, 0);
	if (child->pidfd < 0) {
		int why = errno;

		/* Without a pidfd it cannot be watched. It is not reaped yet, so its pid is still its own. */
		kill(-child->pid, SIGKILL);
		kill(child->pid, SIGKILL);
		atomic_store(&child->slot->pid, 0);
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
		return abx_err_errno(err, why, "Cannot watch the child");
	}
	abx_child_raise_oom_score(child->pid);
	return 0;
}

/* Start `program`, by way of abx-exec where it is to be confined. Whatever a caller chose is kept from abx-exec: its environment is the marker alone. */
static int launch_start(struct launch *launch, const char *program, const char *marker, struct abx_child *child, struct abx_err *err)
{
	const struct abx_start *start = launch->start;
	char *const *vars = launch->vars;
	char reason[128];
	int rc;

	if (!start->confine) {
		rc = child_exec(launch, program, start->argv, vars, &child->pid);
		return rc ? fail_start(start, rc, err) : 0;
	}
	while (*vars != marker)
		vars++;
	if (abx_confine_begin(start->confine, program, start->argv, launch->vars, &launch->confined, err) < 0)
		return -1;
	rc = child_exec(launch, launch->confined.program, launch->confined.argv, vars, &child->pid);
	if (!rc)
		return 0;
	/* It is the server's own program that is missing, and no file of the caller's. */
	return abx_err_set(err, ABX_E_INTERNAL, "Cannot confine the command: abx-exec: %s", strerror_r(rc, reason, sizeof(reason)));
}

/* The child has become what was wanted; or it has ended, and is gone. */
static int launch_finish(struct launch *launch, struct abx_child *child, struct abx_err *err)
{
	int why = launch->start->confine ? abx_confine_finish(&launch->confined, err) : 0;

	if (!why)
		return 0;
	abx_child_reap(child->pidfd, child->slot);
	child->slot = NULL;
	return why < 0 ? -1 : fail_start(launch->start, why, err);
}

int abx_child_start(const struct abx_start *start, struct abx_child *ret_child, struct abx_err *err)
{
	__attribute__((cleanup(child_discard))) struct abx_child child = ABX_CHILD_INIT;
	__attribute__((cleanup(launch_release))) struct launch launch = {
		.start = start, .ends = { -1, -1, -1 }, .confined = ABX_CONFINED_INIT,
	};
	char marker[sizeof(ABX_INVOCATION) + sizeof(child.slot->invocation)];
	abx_auto_free char *program = NULL;
	abx_auto_free char **vars = NULL;
	int rc;

	if (abx_spawn_is_stopping())
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The server is stopping");
	child.slot = abx_board_child_begin(abx_spawn_door.board);
	if (!child.slot)
		return abx_err_set(err, ABX_E_TABLE_FULL, "Too many running processes (%d)", ABX_BOARD_CHILDREN);
	if (pipes_make(start, &child, &launch.ends, err) < 0)
		return -1;
	snprintf(marker, sizeof(marker), ABX_INVOCATION "%s", child.slot->invocation);
	launch.vars = vars = abx_env_finish(start->env, marker);
	if (!vars)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	rc = abx_env_find_program(start->env, start->cwd_fd, start->argv[0], &program);
	if (rc)
		return fail_start(start, rc, err);
	if (launch_start(&launch, program, marker, &child, err) < 0 || child_adopt(&child, err) < 0 || launch_finish(&launch, &child, err) < 0)
		return -1;
	*ret_child = child;
	child = (struct abx_child)ABX_CHILD_INIT;
	return 0;
}

bool abx_child_has_ended(const struct abx_child *child)
{
	struct pollfd pfd = { .fd = child->pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}
