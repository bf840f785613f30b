/*
 * Run a command as the spawn door does, confined: confined [OPTION…] -- PROGRAM [ARGUMENT…]. The options are filesystem, no-network, no-new-privs, memory=N, processes=N,
 * cpu=N, tree=DIRECTORY (the first is the working directory), and NAME=VALUE for the environment. Its output is passed on; exit status: the command's (128 + N for
 * signal N), or 125 when it was not started, with the reason on standard error.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/confine.h"
#include "common/spawn.h"

#define TREES_MAX 16

static int trees[TREES_MAX];
static struct abx_confinement confinement = { .trees = trees };
static bool wanted;

static void take(const char *option, struct abx_env *env)
{
	const char *value = strchr(option, '=');
	abx_auto_free char *name = strndup(option, value ? (size_t)(value - option) : strlen(option));

	value = value ? value + 1 : "";
	if (strcmp(name, "filesystem") == 0) {
		confinement.filesystem = wanted = true;
	} else if (strcmp(name, "no-network") == 0) {
		confinement.no_network = wanted = true;
	} else if (strcmp(name, "no-new-privs") == 0) {
		confinement.no_new_privs = wanted = true;
	} else if (strcmp(name, "memory") == 0) {
		confinement.memory_bytes = strtoull(value, NULL, 10);
		wanted = true;
	} else if (strcmp(name, "processes") == 0) {
		confinement.processes = strtoull(value, NULL, 10);
		wanted = true;
	} else if (strcmp(name, "cpu") == 0) {
		confinement.cpu_seconds = strtoull(value, NULL, 10);
		wanted = true;
	} else if (strcmp(name, "tree") == 0 && confinement.n_trees < TREES_MAX) {
		trees[confinement.n_trees++] = open(value, O_PATH | O_DIRECTORY | O_CLOEXEC);
	} else {
		abx_env_set(env, name, value);
	}
}

int main(int argc, char **argv)
{
	abx_auto_env struct abx_env env = { 0 };
	struct abx_err err = ABX_ERR_INIT;
	struct abx_spawn_result result;
	int board_fd = -1, at = 1;
	struct abx_board *board = abx_board_create(&board_fd, &err);

	if (!board || abx_spawn_init(board, environ, &err) < 0 || abx_env_init(&env) < 0)
		return 124;
	for (; at < argc && strcmp(argv[at], "--") != 0; at++)
		take(argv[at], &env);
	struct abx_spawn spawn = {
		.argv = argv + at + 1,
		.env = &env,
		.cwd_fd = confinement.n_trees ? trees[0] : open(".", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.max_output = (size_t)16 << 20,
		.client_fd = -1,
		.timeout = 300,
		.confine = wanted ? &confinement : NULL,
	};
	if (at + 1 >= argc || abx_spawn_run(&spawn, &result, &err) < 0) {
		fprintf(stderr, "refused: %d %s %s\n", abx_err_status(&err), abx_err_type(&err), err.message);
		return 125;
	}
	fwrite(result.out.buf, 1, result.out.len, stdout);
	fwrite(result.err.buf, 1, result.err.len, stderr);
	abx_spawn_result_release(&result);
	return result.exit_code < 0 ? 128 - result.exit_code : result.exit_code;
}
