/* What the tests of the spawn door share. */
#ifndef T_UNIT_SPAWN_RUN_H
#define T_UNIT_SPAWN_RUN_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/spawn.h"
#include "t/scratch.h"
#include "t/tap.h"

#define MIB ((size_t)1 << 20)

static struct abx_board *board;
static struct abx_env env;
static char self[PATH_MAX]; /* this program */

/* The latest call: what it was, and what came of it. Options go back to their defaults after each. */
static struct abx_spawn opt;
static struct abx_spawn_result result;
static struct abx_err err;

static inline void defaults(void)
{
	int cwd_fd = opt.cwd_fd;

	opt = (struct abx_spawn){ .env = &env, .cwd_fd = cwd_fd, .max_output = MIB, .client_fd = -1, .timeout = 120 };
}

static inline int run(const char *const *argv)
{
	char *copy[16] = { NULL };

	for (size_t i = 0; argv[i]; i++)
		copy[i] = strdup(argv[i]);
	abx_spawn_result_release(&result);
	err = (struct abx_err)ABX_ERR_INIT;
	result = (struct abx_spawn_result){ .out = ABX_STRBUF_INIT, .err = ABX_STRBUF_INIT, .exit_code = 4711 };
	opt.argv = copy;
	int rc = abx_spawn_run(&opt, &result, &err);
	for (size_t i = 0; copy[i]; i++)
		free(copy[i]);
	defaults();
	return rc;
}

/* Run argv, which ends with NULL. */
#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

static inline int sh(const char *script)
{
	return RUN("/bin/sh", "-c", script);
}

static inline void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* Whether a process is dead: gone, or a zombie that its new parent has not reaped. Waits for it. */
static inline bool is_dead(pid_t pid)
{
	for (int i = 0; i < 5000; i++, nap()) {
		char path[32], text[512];
		ssize_t n = -1;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		abx_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			n = read(fd, text, sizeof(text) - 1);
		if (n <= 0)
			return true;
		text[n] = '\0';
		const char *state = strrchr(text, ')');
		if (state && (state[2] == 'Z' || state[2] == 'X'))
			return true;
	}
	return false;
}

/* Whether every pid that is printed in `text`, one a line, is dead. At least `n` of them. */
static inline bool are_dead(const char *text, int n)
{
	bool dead = true;

	for (; *text; n--) {
		char *end;
		long pid = strtol(text, &end, 10);

		if (end == text || pid <= 1)
			break;
		dead = dead && is_dead((pid_t)pid);
		text = *end ? end + 1 : end;
	}
	return dead && n <= 0;
}

/* Take one line from a FIFO: waits for its writer. */
static inline const char *take(const char *fifo)
{
	static char line[128];
	abx_auto_fd int fd = open(fifo, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Let the reader of a FIFO go on. */
static inline void give(const char *fifo)
{
	abx_auto_fd int fd = open(fifo, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "go\n", 3) != 3)
		note("nobody waits at %s", fifo);
}

static inline int slots_used(void)
{
	int n = 0;

	for (int i = 0; i < ABX_BOARD_CHILDREN; i++)
		n += atomic_load(&board->children[i].owner) != 0;
	return n;
}

static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static inline int in_child(int (*body)(void))
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(body());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

/* Make a board, open the door, go to a directory of our own. */
static inline void spawn_open(void)
{
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", kept[] = "KEPT=yes", token[] = "ABX_SERVER_TOKEN=secret", locale[] = "LC_ALL=C";
	static char *base[] = { path, kept, token, locale, NULL };
	int board_fd = -1;

	/* A call that does not end is not waited for. */
	alarm(400);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		exit(1);
	scratch_enter();
	chmod(scratch, 0755);
	opt.cwd_fd = open(scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
	board = abx_board_create(&board_fd, &err);
	/* As whoever started us may have left it. */
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	if (!board || abx_spawn_init(board, base, &err) < 0 || abx_env_init(&env) < 0) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	result = (struct abx_spawn_result){ .out = ABX_STRBUF_INIT, .err = ABX_STRBUF_INIT };
	defaults();
}

static inline void spawn_close(void)
{
	abx_spawn_result_release(&result);
	abx_env_release(&env);
	close(opt.cwd_fd);
}

#endif
