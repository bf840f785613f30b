#include "common/overrides.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/tap.h"

static struct abx_board *new_board(void)
{
	struct abx_err err = ABX_ERR_INIT;
	int fd;
	struct abx_board *board = abx_board_create(&fd, &err);

	if (!board) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	close(fd);
	return board;
}

/* `vars` ends with an empty one. */
static int set(struct abx_board *board, const char *vars, struct abx_err *err)
{
	const char *end = vars;

	while (*end)
		end += strlen(end) + 1;
	return abx_overrides_set(board, vars, (size_t)(end - vars), err);
}

static void holds(struct abx_board *board, const char *want, size_t len, const char *what)
{
	abx_auto_strbuf struct abx_strbuf vars = ABX_STRBUF_INIT;

	is_int(abx_overrides_read(board, &vars), 0, "read");
	is_mem(vars.buf, vars.len, want, len, "%s", what);
}

#define HOLDS(board, literal, what) holds(board, literal, sizeof(literal) - 1, what)

static void test_set(void)
{
	struct abx_board *board = new_board();
	struct abx_err err = ABX_ERR_INIT;

	HOLDS(board, "", "at first there is nothing");
	is_int(set(board, "A=1\0B=2\0", &err), 0, "set two");
	HOLDS(board, "A=1\0B=2\0", "they are there");
	is_int(set(board, "A=x=y\0AB=\0", &err), 0, "set one again, and one more");
	HOLDS(board, "B=2\0A=x=y\0AB=\0", "the last value counts, and names are whole ones");
	is_int(set(board, "", &err), 0, "set nothing");
	HOLDS(board, "B=2\0A=x=y\0AB=\0", "nothing changed");
}

static void test_limits(void)
{
	struct abx_board *board = new_board();
	struct abx_err err = ABX_ERR_INIT;
	size_t string = (size_t)sysconf(_SC_PAGESIZE) * 32, size = string + 2;
	char *big = calloc(1, size), *many = calloc(1025, 16), *at;

	memset(big, 'x', string);
	memcpy(big, "B=", 2);
	is_int(set(board, "KEPT=1\0", &err), 0, "one that stays");
	is_int(set(board, big, &err), -1, "a variable longer than the kernel takes");
	is_int(err.kind, ABX_E_TOO_LARGE, "is too large");
	big[string - 1] = '\0';
	is_int(set(board, big, &err), 0, "one byte less is taken");
	for (int i = 0; i < 10 && err.kind; i++) {
		big[1] = (char)('a' + i);
		big[2] = '=';
		err.kind = ABX_E_NONE;
		set(board, big, &err);
		if (err.kind)
			break;
		err.kind = i < 9 ? ABX_E_VALUE : ABX_E_NONE;
	}
	is_int(err.kind, ABX_E_TOO_LARGE, "together they are too large in the end");
	is_int(set(board, "B=1\0", &err), 0, "room can be made by smaller values");

	board = new_board();
	for (int i = 0, n = 0; i < 1024; i++)
		n += sprintf(many + n, "V%d=", i) + 1;
	is_int(set(board, many, &err), 0, "1024 variables");
	is_int(set(board, "V0=1\0V1023=2\0", &err), 0, "can be set again");
	is_int(set(board, "W=1\0", &err), -1, "one more cannot");
	is_int(err.kind, ABX_E_TOO_LARGE, "is too many");
	for (at = many; *at; at += strlen(at) + 1)
		;
	strcpy(at, "W=");
	is_int(set(new_board(), many, &err), -1, "nor 1025 at once");
	free(big);
	free(many);
}

/* Half of what arguments and environment may have together is the arguments'. */
static void test_small_stack(void)
{
	struct abx_board *board = new_board();
	struct abx_err err = ABX_ERR_INIT;
	struct rlimit limit = { 1 << 20, 1 << 20 };
	char *half = calloc(1, 100002);
	int status;
	pid_t pid;

	memset(half, 'x', 100000);
	memcpy(half, "H=", 2);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* A quarter of the stack's limit is for both. */
		setrlimit(RLIMIT_STACK, &limit);
		if (set(board, half, &err) < 0)
			_exit(1);
		half[0] = 'I';
		_exit(set(board, half, &err) < 0 && err.kind == ABX_E_TOO_LARGE ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "under a small limit of the stack less is taken");
	free(half);
}

static void *set_many(void *board)
{
	struct abx_err err = ABX_ERR_INIT;
	static atomic_int next;
	int self = atomic_fetch_add(&next, 1);
	char var[32];

	for (int i = 0; i < 200; i++) {
		int len = snprintf(var, sizeof(var), "T%d=%d", self, i);

		if (abx_overrides_set(board, var, (size_t)len + 1, &err) < 0)
			return board;
	}
	return NULL;
}

static void test_threads(void)
{
	struct abx_board *board = new_board();
	pthread_t threads[4];
	bool fine = true;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, set_many, board);
	for (int round = 0; round < 200; round++) {
		abx_auto_strbuf struct abx_strbuf vars = ABX_STRBUF_INIT;

		abx_overrides_read(board, &vars);
		for (const char *at = vars.buf; at < vars.buf + vars.len; at += strlen(at) + 1)
			fine &= at[0] == 'T' && at[2] == '=';
	}
	ok(fine, "what is read while others write is whole");
	for (int i = 0; i < 4; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		ok(!failed, "writer %d", i);
	}
	abx_auto_strbuf struct abx_strbuf vars = ABX_STRBUF_INIT;
	abx_overrides_read(board, &vars);
	for (int i = 0; i < 4; i++) {
		char last[16];

		snprintf(last, sizeof(last), "T%d=199", i);
		ok(memmem(vars.buf, vars.len, last, strlen(last) + 1), "no writer's last word is lost");
	}
}

static void test_death(void)
{
	struct abx_board *board = new_board();
	struct abx_err err = ABX_ERR_INIT;
	pid_t pid;

	is_int(set(board, "A=1\0", &err), 0, "set");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		pthread_mutex_lock(&board->vars.lock);
		memset(board->vars.texts[(board->vars.current & 1) ^ 1].vars, 'x', 100);
		raise(SIGKILL);
	}
	waitpid(pid, NULL, 0);
	HOLDS(board, "A=1\0", "a writer that died in the middle changed nothing");
	is_int(set(board, "B=2\0", &err), 0, "and does not stop the next one");
	HOLDS(board, "A=1\0B=2\0", "which is seen");
}

int main(void)
{
	test_set();
	test_limits();
	test_small_stack();
	test_threads();
	test_death();
	return done_testing();
}
