#include "common/spawn.h"

#include <pthread.h>
#include <sys/resource.h>

#include "t/unit/spawn_run.h"

static void test_end(void)
{
	is_int(sh("echo out; echo err >&2; exit 7"), 0, "a child runs");
	is_int(result.end, ABX_SPAWN_EXITED, "and ends by itself");
	is_int(result.exit_code, 7, "with its exit code");
	is_str(result.out.buf, "out\n", "its standard output is kept");
	is_str(result.err.buf, "err\n", "its standard error as well");
	ok(!result.truncated, "all of them");
	sh("exit 0");
	is_int(result.exit_code, 0, "0 is 0");
	sh("exit 255");
	is_int(result.exit_code, 255, "255 is 255");
	sh("kill -9 $$");
	is_int(result.exit_code, -9, "killed by a signal is negative");
	is_int(result.end, ABX_SPAWN_EXITED, "and no timeout");
	sh("kill -15 $$");
	is_int(result.exit_code, -15, "whatever the signal");
	sh("exec >&- 2>&-; sleep 0.05; exit 3");
	is_int(result.exit_code, 3, "a child that closes its output has not ended");
	is_int(slots_used(), 0, "the board is empty again");
}

static void test_environment(void)
{
	abx_auto_env struct abx_env other = { 0 };
	char first[64];

	is_int(abx_env_init(&other), 0, "the base environment");
	is_str(abx_env_get(&other, "KEPT"), "yes", "holds what the server has");
	is_str(abx_env_get(&other, "ABX_SERVER_TOKEN"), NULL, "but for its own settings");
	is_str(abx_env_get(&other, "KEP"), NULL, "names are compared whole");
	is_int(abx_env_set(&other, "NEW", "a=b c"), 0, "a variable is set");
	is_int(abx_env_set(&other, "KEPT", ""), 0, "and replaced");
	is_str(abx_env_get(&other, "NEW"), "a=b c", "both can be read");
	is_str(abx_env_get(&other, "KEPT"), "", "an empty one, too");
	abx_env_set(&other, "INVOCATION_ID", "forged");
	opt.env = &other;
	sh("echo \"$NEW|$KEPT|$ABX_SERVER_TOKEN\"; echo $INVOCATION_ID >&2; tr '\\0' '\\n' < /proc/$$/environ | grep -c INVOCATION_ID");
	is_str(result.out.buf, "a=b c||\n1\n", "the child sees them");
	is_int((long long)result.err.len, 33, "it has an invocation id of 32 digits, whatever the caller set");
	ok(strncmp(result.err.buf, board->instance, 16) == 0, "which begins with the server's");
	snprintf(first, sizeof(first), "%s", result.err.buf);
	sh("echo $INVOCATION_ID");
	ok(strcmp(result.out.buf, first) != 0 && strncmp(result.out.buf, first, 16) == 0, "the next one has another");
	is_str(abx_env_get(&env, "KEPT"), "yes", "the other environment is as it was");
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || fchmod(fd, mode) < 0)
		perror(path);
	close(fd);
}

static void is_failure(int rc, int os_errno, const char *message, const char *what)
{
	ok(rc < 0 && err.kind == ABX_E_ERRNO, "%s is no start", what);
	is_int(err.os_errno, os_errno, "by its errno");
	is_str(err.message, message, "with Python's message");
}

static void test_program(void)
{
	abx_auto_env struct abx_env other = { 0 };

	abx_env_init(&other);
	mkdir("bin", 0755);
	mkdir("bin2", 0755);
	mkdir("bin/dir", 0755);
	write_file("bin/mine", "#!/bin/sh\necho mine $0 $*\n", 0755);
	write_file("bin/locked", "#!/bin/sh\n", 0644);
	write_file("bin2/locked", "#!/bin/sh\necho found\n", 0755);
	write_file("bin2/dir", "#!/bin/sh\necho file\n", 0755);
	write_file("here", "#!/bin/sh\necho here\n", 0755);
	write_file("bin/nothing", "no program\n", 0755);
	write_file("bin/lost", "#!/nosuch/interpreter\n", 0755);
	abx_env_set(&other, "PATH", "nosuch:bin/mine:bin:bin2:/bin");

	opt.env = &other;
	is_int(RUN("mine", "a b", "c"), 0, "a program is looked up in the child's PATH, from its directory");
	is_str(result.out.buf, "mine bin/mine a b c\n", "and gets its arguments");
	ok(RUN("mine") < 0, "not in the server's");
	opt.env = &other;
	RUN("locked");
	is_str(result.out.buf, "found\n", "one that cannot be run is passed over");
	opt.env = &other;
	RUN("dir");
	is_str(result.out.buf, "file\n", "so is a directory");
	RUN("./here");
	is_str(result.out.buf, "here\n", "with a slash it is a path from the child's directory");
	abx_env_set(&other, "PATH", "/nosuch:");
	opt.env = &other;
	RUN("here");
	is_str(result.out.buf, "here\n", "an empty entry is that directory");
	abx_env_set(&other, "PATH", "bin");
	opt.env = &other;
	is_failure(RUN("locked"), EACCES, "[Errno 13] Permission denied: 'locked'", "a program without the permission to run it");
	opt.env = &other;
	is_failure(RUN("nothing"), ENOEXEC, "[Errno 8] Exec format error: 'nothing'", "a file that is no program");
	opt.env = &other;
	is_failure(RUN("lost"), ENOENT, "[Errno 2] No such file or directory: 'lost'", "a script without its interpreter");
	is_failure(RUN("nosuch"), ENOENT, "[Errno 2] No such file or directory: 'nosuch'", "a missing program");
	is_failure(RUN("./no'such"), ENOENT, "[Errno 2] No such file or directory: \"./no'such\"", "a missing path");
	is_failure(RUN("n'\"\n\\\x01"), ENOENT, "[Errno 2] No such file or directory: 'n\\'\"\\n\\\\\\x01'", "an odd name");
	is_failure(RUN(""), ENOENT, "[Errno 2] No such file or directory: ''", "an empty name");
	is_failure(RUN("./bin"), EACCES, "[Errno 13] Permission denied: './bin'", "a directory");
	is_failure(RUN("./here/x"), ENOTDIR, "[Errno 20] Not a directory: './here/x'", "what is below a file");
	is_int(slots_used(), 0, "none of them holds a slot");
}

static void test_no_path(void)
{
	struct abx_env bare = { 0 };

	is_int(abx_env_set(&bare, "X", "1"), 0, "an environment without PATH");
	opt.env = &bare;
	is_int(RUN("echo", "found"), 0, "has the usual places");
	is_str(result.out.buf, "found\n", "and runs");
	abx_env_release(&bare);
}

static void test_directory(void)
{
	int here = opt.cwd_fd;
	char want[PATH_MAX + 16];

	mkdir("sub", 0755);
	opt.cwd_fd = open("sub", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(want, sizeof(want), "%s/sub\n", scratch);
	sh("pwd -P");
	is_str(result.out.buf, want, "a child begins in its directory");
	close(opt.cwd_fd);
	opt.cwd_fd = open("here", O_PATH | O_CLOEXEC);
	ok(sh("pwd") < 0 && err.os_errno == ENOTDIR, "a file is none");
	is_str(err.message, "Cannot enter the working directory: Not a directory", "which is told");
	close(opt.cwd_fd);
	opt.cwd_fd = here;
}

/* ---- what a child is given */

static void test_descriptors(void)
{
	char program[PATH_MAX + 32];
	int leaked[20];

	/* As those of a library that does not mark its sockets. */
	for (size_t i = 0; i < ABX_N(leaked); i++)
		leaked[i] = open("/dev/zero", O_RDONLY);
	snprintf(program, sizeof(program), "%.*s/../helper/fd_dump", (int)(strrchr(self, '/') - self), self);
	is_int(RUN(program), 0, "a child tells its descriptors");
	int lines = 0;
	for (const char *p = result.out.buf; *p; p = strchr(p, '\n') + 1)
		lines++;
	is_int(lines, 3, "they are three");
	ok(strncmp(result.out.buf, "0 /dev/null\n1 pipe:", 19) == 0 && strstr(result.out.buf, "\n2 pipe:"), "0 is /dev/null, 1 and 2 are pipes");
	sh("cat; echo end");
	is_str(result.out.buf, "end\n", "who reads finds the end at once");
	for (size_t i = 0; i < ABX_N(leaked); i++)
		close(leaked[i]);
}

static void test_group_and_signals(void)
{
	sigset_t all, before;
	char want[64];

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	RUN("cat", "/proc/self/status");
	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	ok(strstr(result.out.buf, "SigBlk:\t0000000000000000\n") != NULL, "a child has no signal blocked");
	/* Signals 32 and 33 are the C library's own. */
	const char *ignored = strstr(result.out.buf, "SigIgn:\t");
	ok(ignored && (strtoull(ignored + 8, NULL, 16) & ~(3ULL << 31)) == 0, "and none ignored");
	sh("read a b c d pgrp session rest < /proc/$$/stat; echo $((pgrp == $$)) $session");
	snprintf(want, sizeof(want), "1 %d\n", (int)getsid(0));
	is_str(result.out.buf, want, "it leads a group of its own in our session");
}

static void test_oom_score(void)
{
	char script[256], want[16];
	FILE *own = fopen("/proc/self/oom_score_adj", "re");
	int score = 0;

	if (!own || fscanf(own, "%d", &score) != 1)
		note("no score of our own");
	if (own)
		fclose(own);
	snprintf(want, sizeof(want), "%d\n", score < 900 ? score + 100 : 1000);
	/* It is raised just after the start. */
	snprintf(script, sizeof(script), "until [ \"$(cat /proc/$$/oom_score_adj)\" = %d ]; do :; done; cat /proc/self/oom_score_adj", atoi(want));
	opt.timeout = 20;
	sh(script);
	is_str(result.out.buf, want, "the kernel takes a child before the server");
}

static void test_input(void)
{
	char *big = malloc(3 * MIB);
	bool same = true;

	opt.input = "some\ninput";
	opt.input_len = 10;
	sh("cat; readlink /proc/self/fd/0 >&2");
	is_str(result.out.buf, "some\ninput", "a child can be given input");
	ok(strncmp(result.err.buf, "pipe:", 5) == 0, "by a pipe");
	for (size_t i = 0; i < 3 * MIB; i++)
		big[i] = (char)('a' + i % 23);
	opt.input = big;
	opt.input_len = 3 * MIB;
	opt.max_output = 3 * MIB;
	RUN("cat");
	same = result.out.len == 3 * MIB && memcmp(result.out.buf, big, 3 * MIB) == 0;
	ok(same && !result.truncated, "3 MiB go through cat as they are");
	opt.input = big;
	opt.input_len = 3 * MIB;
	sh("exit 4");
	is_int(result.exit_code, 4, "a child need not read it");
	opt.input = big;
	opt.input_len = 3 * MIB;
	sh("head -c 5; exec <&-; echo; sleep 0.1; echo on");
	is_str(result.out.buf, "abcde\non\n", "nor to its end");
	opt.input = "";
	sh("cat; echo end");
	is_str(result.out.buf, "end\n", "empty input is at its end");
	free(big);
}

/* ---- output */

static void cut_at(size_t max, const char *text, const char *want, bool truncated)
{
	opt.max_output = max;
	RUN("printf", text);
	ok(strcmp(result.out.buf, want) == 0 && result.truncated == truncated, "%zu bytes of %s: %s%s", max, text, result.out.buf,
	   result.truncated ? ", truncated" : "");
}

static void test_cap(void)
{
	cut_at(5, "abcde", "abcde", false);
	cut_at(4, "abcde", "abcd", true);
	cut_at(0, "a", "", true);
	cut_at(0, "", "", false);
	cut_at(3, "a\\303\\251", "a\xc3\xa9", false);
	cut_at(2, "a\\303\\251", "a", true);
	cut_at(5, "\\360\\237\\230\\200\\360\\237\\230\\200", "\xf0\x9f\x98\x80", true);
	cut_at(7, "\\360\\237\\230\\200\\360\\237\\230\\200", "\xf0\x9f\x98\x80", true);
	cut_at(8, "\\360\\237\\230\\200\\360\\237\\230\\200", "\xf0\x9f\x98\x80\xf0\x9f\x98\x80", false);
	cut_at(9, "a\\377b\\303", "a\xef\xbf\xbd" "b\xef\xbf\xbd", false);
	cut_at(3, "\\377\\377\\377\\377", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", true);

	opt.max_output = 100;
	sh("head -c 100 /dev/zero | tr '\\0' '\\377'");
	is_int((long long)result.out.len, 300, "every byte may become three");
	opt.max_output = 1000;
	sh("head -c 5000000 /dev/zero; echo done >&2; exit 9");
	is_int(result.exit_code, 9, "a child goes on past the cap");
	is_int((long long)result.out.len, 1000, "what is kept is the cap");
	is_str(result.err.buf, "done\n", "the other stream is whole");
	ok(result.truncated, "and it is told");
	opt.max_output = 10;
	sh("echo out; head -c 100 /dev/zero >&2");
	ok(result.truncated && result.err.len == 10 && strcmp(result.out.buf, "out\n") == 0, "the same for standard error");
}

/* Characters that arrive in two reads. */
static void test_torn(void)
{
	bool same = true;

	sh("i=0; while [ $i -lt 6 ]; do head -c 65535 /dev/zero | tr '\\0' a; printf '\\303\\251'; i=$((i+1)); done; printf '\\303'; printf '\\251'");
	is_int((long long)result.out.len, 6 * 65537 + 2, "all bytes are there");
	for (size_t i = 0; i < result.out.len; i++) {
		unsigned char c = (unsigned char)result.out.buf[i];

		same = same && (c == 'a' || c == 0xc3 || c == 0xa9);
	}
	ok(same, "no character is torn");
}

static atomic_int lost;

static void *burst(void *arg)
{
	for (int i = 0; i < 25; i++) {
		const char *size = i & 1 ? "200000" : "60000";
		char *argv[] = { (char[]){ "head" }, (char[]){ "-c" }, strdup(size), (char[]){ "/dev/zero" }, NULL };
		struct abx_spawn spawn = { .argv = argv, .env = &env, .cwd_fd = opt.cwd_fd, .max_output = MIB, .client_fd = -1 };
		struct abx_spawn_result got;
		struct abx_err why;

		if (abx_spawn_run(&spawn, &got, &why) < 0) {
			atomic_fetch_add(&lost, 1);
		} else {
			if (got.out.len != (size_t)atoi(size) || got.exit_code != 0 || got.truncated)
				atomic_fetch_add(&lost, 1);
			abx_spawn_result_release(&got);
		}
		free(argv[2]);
	}
	return arg;
}

/* On stacks as small as the responders' threads have. */
static void test_burst(void)
{
	pthread_attr_t attributes;
	pthread_t threads[8];

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], &attributes, burst, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attributes);
	is_int(atomic_load(&lost), 0, "200 programs that write and exit at once, 8 at a time: nothing is lost");
}

static char noted[128];
static atomic_int noted_slots;

static void *look_at_board(void *arg)
{
	const char *line = take("told");
	int pid = atoi(line);
	const char *id = strchr(line, ' ');

	/* It may be quicker than the one who notes it. */
	for (int tries = 0; id && tries < 5000 && !atomic_load(&noted_slots); tries++, nap()) {
		for (int i = 0; i < ABX_BOARD_CHILDREN; i++) {
			struct abx_board_child *child = &board->children[i];

			if (atomic_load(&child->owner) == getpid() && atomic_load(&child->pid) == pid &&
			    strcmp(child->invocation, id + 1) == 0)
				atomic_fetch_add(&noted_slots, 1);
		}
	}
	snprintf(noted, sizeof(noted), "%s", line);
	give("looked");
	return arg;
}

static void test_board(void)
{
	struct abx_board_child *taken[ABX_BOARD_CHILDREN];
	pthread_t thread;

	mkfifo("told", 0600);
	mkfifo("looked", 0600);
	pthread_create(&thread, NULL, look_at_board, NULL);
	sh("echo $$ $INVOCATION_ID > told; read x < looked");
	pthread_join(thread, NULL);
	is_int(atomic_load(&noted_slots), 1, "a running child is noted on the board, with pid and id: %s", noted);
	is_int(slots_used(), 0, "and no longer when it has ended");
	for (int i = 0; i < ABX_BOARD_CHILDREN; i++)
		taken[i] = abx_board_child_begin(board);
	is_int(RUN("true"), -1, "with the board full no child is started");
	is_int(err.kind, ABX_E_TABLE_FULL, "which is told");
	abx_board_child_end(taken[100]);
	is_int(RUN("true"), 0, "until there is a place");
	for (int i = 0; i < ABX_BOARD_CHILDREN; i++)
		if (i != 100)
			abx_board_child_end(taken[i]);
}

static void test_many(void)
{
	int before, failed = 0;

	RUN("true");
	before = count_fds();
	for (int i = 0; i < 2000; i++)
		failed += RUN("true") < 0 || result.exit_code != 0;
	is_int(failed, 0, "2000 children, one after the other");
	is_int(count_fds(), before, "leave no descriptor");
	for (int i = 0; i < 50; i++)
		ok(RUN("nosuch") < 0, "one that cannot be started");
	is_int(count_fds(), before, "leaves none either");
	pid_t left = waitpid(-1, NULL, WNOHANG);
	ok(left < 0 && errno == ECHILD, "and there is no zombie (%d, %s)", (int)left, strerror(errno));
	is_int(slots_used(), 0, "nor a slot in use");
}

static void test_no_descriptors(void)
{
	struct rlimit before, few;
	bool recovered = true;

	getrlimit(RLIMIT_NOFILE, &before);
	/* One descriptor more each time, until it is enough. */
	for (few = before, few.rlim_cur = 3;; few.rlim_cur++) {
		int fds = count_fds();

		setrlimit(RLIMIT_NOFILE, &few);
		int rc = RUN("true");
		setrlimit(RLIMIT_NOFILE, &before);
		recovered = recovered && fds == count_fds() && slots_used() == 0;
		if (rc == 0 || few.rlim_cur > 500)
			break;
		recovered = recovered && err.kind == ABX_E_ERRNO && err.os_errno == EMFILE;
	}
	ok(recovered, "without descriptors it is EMFILE, and nothing is left (%d were enough)", (int)few.rlim_cur);
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no zombie either");
}

/* As a user who may have no further process. */
static int without_processes(void)
{
	struct rlimit limit;

	if (geteuid() == 0 && (setgid(54321) < 0 || setuid(54321) < 0))
		return 77;
	getrlimit(RLIMIT_NPROC, &limit);
	limit.rlim_cur = 1;
	if (setrlimit(RLIMIT_NPROC, &limit) < 0)
		return 77;
	if (RUN("/bin/true") == 0)
		return 1;
	if (err.kind != ABX_E_ERRNO || err.os_errno != EAGAIN || strcmp(abx_err_type(&err), "BlockingIOError") != 0)
		return 2;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NPROC, &limit);
	return RUN("/bin/true") < 0 || result.exit_code != 0 ? 3 : 0;
}

static void test_no_processes(void)
{
	int status = in_child(without_processes);

	if (status == 77)
		skip("no limit on processes can be set");
	else
		is_int(status, 0, "no process can be made: an error, and work again when it passes");
}

int main(void)
{
	spawn_open();
	test_end();
	test_environment();
	test_program();
	test_no_path();
	test_directory();
	test_descriptors();
	test_group_and_signals();
	test_oom_score();
	test_input();
	test_cap();
	test_torn();
	test_burst();
	test_board();
	test_many();
	test_no_descriptors();
	test_no_processes();
	spawn_close();
	return done_testing();
}
