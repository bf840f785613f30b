#include "common/spawn.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/socket.h>

#include "t/unit/spawn_run.h"

/* ---- ends that are not the child's own */

static void test_timeout(void)
{
	opt.timeout = 2;
	is_int(sh("echo before; sleep 1000; echo after"), 0, "a child that takes too long");
	is_int(result.end, ABX_SPAWN_TIMED_OUT, "is timed out");
	is_str(result.out.buf, "before\n", "what it wrote is kept");
	is_int(result.exit_code, -9, "it was killed");

	opt.timeout = 0.3;
	sh("exec >&- 2>&-; sleep 1000");
	is_int(result.end, ABX_SPAWN_TIMED_OUT, "closed pipes change nothing");

	opt.timeout = 1;
	sh("while :; do echo yes; done");
	ok(result.end == ABX_SPAWN_TIMED_OUT && result.out.len > 0, "nor does endless output");

	opt.timeout = 1;
	opt.input = "x";
	opt.input_len = 1;
	sh("cat; sleep 1000");
	ok(result.end == ABX_SPAWN_TIMED_OUT && strcmp(result.out.buf, "x") == 0, "nor input");

	opt.timeout = 1e300;
	sh("exit 5");
	is_int(result.exit_code, 5, "a very long timeout is none");
	is_int(slots_used(), 0, "the board is empty again");
}

/* The other side of the request: it goes when the child says so. */
static int client_peer;

static void *hang_up(void *arg)
{
	take("ready");
	if (arg)
		shutdown(client_peer, SHUT_WR);
	else
		close(client_peer);
	return NULL;
}

/* Run a child until it writes to the FIFO "ready": then its client goes, or closes its half. */
static void run_until_ready(const char *const *argv, bool half)
{
	pthread_t thread;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	client_peer = pair[1];
	pthread_create(&thread, NULL, hang_up, half ? &half : NULL);
	opt.client_fd = pair[0];
	run(argv);
	pthread_join(thread, NULL);
	close(pair[0]);
	if (half)
		close(pair[1]);
}

/* Whether such a script was ended because its client went, and all whose pids it wrote are dead: at least `n`. */
static bool ends_all(const char *script, bool half, int n)
{
	run_until_ready((const char *const[]){ "/bin/sh", "-c", script, NULL }, half);
	return result.end == ABX_SPAWN_CLIENT_GONE && are_dead(result.out.buf, n);
}

static void test_client(void)
{
	static const char many[] = "i=0; while [ $i -lt 150 ]; do setsid sleep 1000 & echo $!; i=$((i+1)); done; sleep 1000 & echo $!; "
				   "echo > ready; sleep 1000";
	int pair[2];

	ok(ends_all("sleep 1000 & echo $!; (sleep 1000 & echo $!); echo $$; echo > ready; sleep 1000", false, 3),
	   "a client that hangs up has gone: the child and its descendants are killed");
	ok(ends_all("sleep 1000 & echo $!; echo > ready; sleep 1000", true, 1), "so has one that closes its half");
	ok(ends_all("setsid sleep 1000 & echo $!; (setsid sleep 1000 & echo $!); env -i setsid sleep 1000 & echo $!; echo > ready; sleep 1000",
		    false, 3),
	   "those that left the session are killed");
	ok(ends_all(many, false, 151), "however many there are");
	ok(ends_all("(env -i sleep 1000 & echo $!); echo > ready; sleep 1000", false, 1), "an orphan that only its group gives away");
	ok(ends_all("trap '' TERM INT HUP; echo $$; (until grep -q '^State:.T' /proc/$$/status; do :; done; echo > ready) & kill -STOP $$",
		    false, 1),
	   "one that is stopped");
	run_until_ready((const char *const[]){ "env", "-i", self, "leave-group", NULL }, false);
	ok(result.end == ABX_SPAWN_CLIENT_GONE && are_dead(result.out.buf, 1), "and one that moved to another group");

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	ok(write(pair[1], "more", 4) == 4, "a client that goes on talking");
	opt.client_fd = pair[0];
	sh("exit 6");
	ok(result.end == ABX_SPAWN_EXITED && result.exit_code == 6, "has not gone");
	close(pair[1]);
	opt.client_fd = pair[0];
	sh("sleep 1000");
	is_int(result.end, ABX_SPAWN_CLIENT_GONE, "one that had gone before is noticed");
	close(pair[0]);
	is_int(slots_used(), 0, "the board is empty again");
}

static void test_outside_signal(void)
{
	opt.timeout = 60;
	sh("sh -c 'kill -TERM $PPID'; sleep 1000");
	is_int(result.end, ABX_SPAWN_EXITED, "a signal from outside is no timeout");
	is_int(result.exit_code, -15, "but a signal");
}

/* ---- descendants that outlive the child */

static void test_daemon(void)
{
	pid_t pid;

	mkfifo("go", 0600);
	mkfifo("done", 0600);
	/* It holds both pipes, and writes far more than they hold. */
	sh("(read x < go; head -c 1000000 /dev/zero; a=$?; head -c 1000000 /dev/zero >&2; echo $a $? > done) & echo $!; exit 3");
	is_int(result.end, ABX_SPAWN_EXITED, "a daemon that holds the pipes does not hold the call");
	is_int(result.exit_code, 3, "which ends with the command");
	pid = (pid_t)atoi(result.out.buf);
	ok(pid > 1 && kill(pid, 0) == 0, "the daemon lives on");
	give("go");
	is_str(take("done"), "0 0", "and can go on writing");
	ok(is_dead(pid), "until it ends by itself");
	unlink("go");
	unlink("done");
}

/* Output that a descendant writes without end is not waited for. */
static void test_noisy_daemon(void)
{
	opt.max_output = 1000;
	sh("yes >/dev/stdout & echo $! >&2");
	is_int(result.end, ABX_SPAWN_EXITED, "a daemon that never stops writing does not hold the call either");
	pid_t pid = (pid_t)atoi(result.err.buf);
	ok(pid > 1 && kill(pid, 0) == 0, "it lives on");
	if (pid > 1)
		kill(pid, SIGKILL);
}

static atomic_int odd;

/* One call in a thread: whether it ended with this exit code and so much output. */
static bool call_is(const char *script, int exit_code, size_t len)
{
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, strdup(script), NULL };
	struct abx_spawn spawn = { .argv = argv, .env = &env, .cwd_fd = opt.cwd_fd, .max_output = MIB, .client_fd = -1 };
	struct abx_spawn_result got = ABX_SPAWN_RESULT_INIT;
	struct abx_err why;
	bool same = abx_spawn_run(&spawn, &got, &why) == 0 && got.exit_code == exit_code && got.out.len == len;

	abx_spawn_result_release(&got);
	free(argv[2]);
	return same;
}

static void *call_often(void *arg)
{
	for (int i = 0; i < 12; i++) {
		/* It ends while the background reads its pipes, and others are starting children. */
		if (!call_is("sleep 0.05 & exit 3", 3, 0) || !call_is("head -c 60000 /dev/zero", 0, 60000) ||
		    !call_is("head -c 200000 /dev/zero; exit 4", 4, 200000))
			atomic_fetch_add(&odd, 1);
	}
	return arg;
}

/* The numbers of descriptors that the background is done with are soon another call's. */
static void test_daemons_and_calls(void)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, call_often, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	is_int(atomic_load(&odd), 0, "the end of a daemon is no other call's affair");
	is_int(waitpid(-1, NULL, WNOHANG), -1, "and there is no zombie");
}

/* A descendant that is about to end is waited for, a little: how long it takes is the machine's affair, so one time of fifty is enough. */
static void test_late_output(void)
{
	bool whole = false;

	for (int i = 0; i < 50 && !whole; i++) {
		sh("(sleep 0.01; head -c 100000 /dev/zero) & exit 0");
		whole = result.out.len == 100000;
	}
	ok(whole, "what a descendant writes just after the end is still taken");
}

/* ---- the end of the server */

static void *sleeper(void *arg)
{
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char[]){ "setsid sleep 1000 & echo $!; echo > ready; sleep 1000" }, NULL };
	struct abx_spawn spawn = { .argv = argv, .env = &env, .cwd_fd = opt.cwd_fd, .max_output = MIB, .client_fd = -1 };

	*(int *)arg = abx_spawn_run(&spawn, &result, &err);
	return NULL;
}

static int stopped(void)
{
	pthread_t thread;
	int rc = -1;

	pthread_create(&thread, NULL, sleeper, &rc);
	take("ready");
	abx_spawn_stop_all();
	pthread_join(thread, NULL);
	if (rc < 0 || result.end != ABX_SPAWN_STOPPED || !are_dead(result.out.buf, 1))
		return 1;
	if (RUN("/bin/true") == 0 || err.kind != ABX_E_UNAVAILABLE)
		return 2;
	return slots_used();
}

static void test_stop(void)
{
	is_int(in_child(stopped), 0, "stopping ends what runs, and starts nothing more");
}

/* ---- by marker */

/* Whether a file of /proc/<pid> begins with `text`. */
static bool proc_begins(pid_t pid, const char *file, const char *text)
{
	char path[48], got[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	abx_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, got, strlen(text)) > 0 && strncmp(got, text, strlen(text)) == 0;
}

/* posix_spawn returns while the child is still seen with our environment, and then with none: wait until it has its own. */
static void wait_for_exec(pid_t pid, const char *first_var)
{
	char begin[16];

	snprintf(begin, sizeof(begin), "%s", first_var);
	for (int i = 0; i < 5000 && !(proc_begins(pid, "comm", "sleep\n") && proc_begins(pid, "environ", begin)); i++)
		nap();
}

static pid_t start_marked(const char *const *vars)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "1000" }, NULL };
	char *const *environment;
	pid_t pid = -1;

	memcpy(&environment, &vars, sizeof(environment));
	if (posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, environment))
		return -1;
	wait_for_exec(pid, vars[0]);
	return pid;
}

static bool reap_killed(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void test_marked(void)
{
	static const char *const others[][3] = {
		{ "INVOCATION_ID=beefcafe", NULL },
		{ "XINVOCATION_ID=feedf00d00", NULL },
		{ "X=INVOCATION_ID=feedf00d00", "INVOCATION_ID=", NULL },
		{ "INVOCATION_IDX=feedf00d00", "invocation_id=feedf00d00", NULL },
	};
	pid_t marked[3], spared[ABX_N(others)];
	bool lives = true, dead = true;

	marked[0] = start_marked((const char *const[]){ "INVOCATION_ID=feedf00d0000", NULL });
	marked[1] = start_marked((const char *const[]){ "A=1", "INVOCATION_ID=feedf00d", NULL });
	marked[2] = start_marked((const char *const[]){ "INVOCATION_ID=feedf00d-1", "Z=", NULL });
	for (size_t i = 0; i < ABX_N(others); i++)
		spared[i] = start_marked(others[i]);
	abx_kill_marked("feedf00d");
	for (int i = 0; i < 3; i++)
		ok(reap_killed(marked[i]), "a process that carries the marker is killed");
	for (size_t i = 0; i < ABX_N(others); i++) {
		lives = lives && waitpid(spared[i], NULL, WNOHANG) == 0;
		kill(spared[i], SIGKILL);
		dead = dead && reap_killed(spared[i]);
	}
	ok(lives && dead, "others are left alone");
}

/* abxd may itself be the descendant of a server. */
static void test_marked_self(void)
{
	char *argv[] = { self, (char[]){ "kill-marked" }, NULL }, *vars[] = { (char[]){ "INVOCATION_ID=cafef00d" }, NULL };
	int status = -1;
	pid_t pid;

	if (posix_spawn(&pid, self, NULL, NULL, argv, vars) == 0)
		waitpid(pid, &status, 0);
	is_int(status, 0, "a process that kills by a marker of its own spares itself");
}

/* The environment is read in pieces: the marker anywhere about their ends. */
static void test_marker_places(void)
{
	char *filler = malloc(70000);
	bool all = true;

	memset(filler, 'f', 70000);
	memcpy(filler, "FILL=", 5);
	for (size_t len = 65536 - 40; len < 65536 + 10; len++) {
		const char *vars[] = { filler, "INVOCATION_ID=0123456789abcdef", NULL };

		filler[len] = '\0';
		pid_t pid = start_marked(vars);
		filler[len] = 'f';
		abx_kill_marked("0123456789abcdef");
		kill(pid, SIGTERM);
		if (!reap_killed(pid)) {
			note("missed behind %zu bytes", len);
			all = false;
		}
	}
	ok(all, "the marker is found wherever it is");
	free(filler);
}

/* Print our pid, go to our parent's group, say so, and wait. */
static int leave_group(void)
{
	if (setpgid(0, getpgid(getppid())) < 0)
		return 1;
	printf("%d\n", (int)getpid());
	fflush(stdout);
	give("ready");
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "leave-group") == 0)
		return leave_group();
	if (argc > 1) {
		abx_kill_marked("cafef00d");
		return 0;
	}
	spawn_open();
	mkfifo("ready", 0600);
	test_timeout();
	test_client();
	test_outside_signal();
	test_daemon();
	test_noisy_daemon();
	test_late_output();
	test_daemons_and_calls();
	test_stop();
	test_marked();
	test_marked_self();
	test_marker_places();
	spawn_close();
	return done_testing();
}
