#include "handlers/process/proc.h"

#include <stdlib.h>

#include "common/clock.h"
#include "t/unit/spawn_run.h"

/* Start a command. Returns its pid, or -1. */
static pid_t start_argv(char *const *argv, struct proc_options options, bool input)
{
	struct abx_start start = { .argv = argv, .env = &env, .cwd_fd = opt.cwd_fd, .input = input, .output = options.capture };
	pid_t pid = -1;

	err = (struct abx_err)ABX_ERR_INIT;
	options.command = "what it is called";
	options.max_output = options.max_output ? options.max_output : MIB;
	return procs_start(&start, &options, &pid, &err) == 0 ? pid : -1;
}

static pid_t start_sh(const char *script, struct proc_options options)
{
	char shell[] = "/bin/sh", option[] = "-c";
	abx_auto_free char *text = strdup(script);
	char *argv[] = { shell, option, text, NULL };

	return start_argv(argv, options, false);
}

static const struct proc_options plain = { .capture = false }, captured = { .capture = true };

/* The row of a pid, or NULL. */
static struct proc *row(pid_t pid)
{
	struct proc *found = NULL;

	procs_lock();
	for (struct proc *p = procs.first; p; p = p->next)
		if (p->pid == pid)
			found = p;
	procs_unlock();
	return found;
}

static size_t count(enum proc_state state)
{
	size_t n = 0;

	procs_lock();
	for (struct proc *p = procs.first; p; p = p->next)
		n += p->state == state;
	procs_unlock();
	return n;
}

static bool has_ended(pid_t pid)
{
	for (int i = 0; i < 10000; i++, nap()) {
		struct proc *proc = row(pid);

		procs_lock();
		bool ended = !proc || proc->state == PROC_ENDED;
		procs_unlock();
		if (ended)
			return true;
	}
	return false;
}

/* All output of an ended process as text: "o:… e:…". */
static const char *output_of(pid_t pid)
{
	static struct abx_strbuf out = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&out);
	const struct proc *proc = row(pid);

	abx_strbuf_reset(&out);
	procs_lock();
	ring_write(&proc->ring, 0, &jw);
	procs_unlock();
	return out.buf;
}

static void test_life(void)
{
	pid_t pid = start_sh("exit 7", plain), other;

	ok(pid > 1, "a process is started");
	ok(has_ended(pid), "and ends");
	is_int(row(pid)->exit_code, 7, "with its exit code");
	is_str(row(pid)->command, "what it is called", "under its name");
	pid = start_sh("kill -15 $$", plain);
	has_ended(pid);
	is_int(row(pid)->exit_code, -15, "or a signal");
	pid = start_sh("printf 'a\\303'; printf x >&2; sleep 0.1; printf '\\251b\\303'", captured);
	has_ended(pid);
	ok(strstr(output_of(pid), "\"data\": \"a\"}") && strstr(output_of(pid), "\"data\": \"\303\251b\"}") &&
	   strstr(output_of(pid), "\"data\": \"\357\277\275\"}"), "output is text, in whole characters (%s)", output_of(pid));
	char missing[] = "no-such-program";
	char *argv[] = { missing, NULL };
	size_t rows = count(PROC_ENDED);
	ok(start_argv(argv, plain, false) < 0 && err.os_errno == ENOENT, "what does not start");
	is_int((long long)count(PROC_ENDED), (long long)rows, "leaves no row");
	is_int((long long)procs.starting, 0, "and holds no place");

	pid = start_sh("sleep 1000 & echo $!; exit 3", captured);
	ok(has_ended(pid), "a descendant that holds the pipe does not hold up the end");
	other = (pid_t)strtol(strstr(output_of(pid), "data\": \"") + 8, NULL, 10);
	ok(other > 1 && kill(other, 0) == 0, "it lives on");
	kill(other, SIGKILL);

	pid = start_sh("sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait", (struct proc_options){ .capture = true, .timeout = 0.3 });
	ok(has_ended(pid), "a deadline");
	is_int(row(pid)->exit_code, -9, "kills");
	ok(!proc_kill(row(pid)), "what has ended is not killed");
	pid = start_sh("sleep 1000", plain);
	ok(proc_kill(row(pid)) && has_ended(pid), "what runs is");
}

/* Enough that it cannot all be kept. */
static void test_cap(void)
{
	pid_t pid = start_sh("head -c 300000 /dev/zero | tr '\\0' x; printf '\\nend'", (struct proc_options){ .capture = true, .max_output = 100000 });
	struct proc *proc;

	has_ended(pid);
	proc = row(pid);
	ok(proc->ring.held <= 100000 + 65536, "output that is kept has a limit");
	ok(ring_dropped(&proc->ring, 0), "what is dropped is told");
	ok(strstr(output_of(pid), "end\"}") != NULL, "the end is there");
	pid = start_sh("printf '\\303\\251\\303\\251'", (struct proc_options){ .capture = true, .max_output = 1 });
	has_ended(pid);
	ok(strstr(output_of(pid), "{\"seq\": 1, \"stream\": \"stdout\", \"data\": \"\303\251\"}") != NULL, "even of one byte (%s)", output_of(pid));
}

static void kill_all(void)
{
	for (;;) {
		auto_proc struct proc *proc = NULL;

		procs_lock();
		for (struct proc *p = procs.first; p; p = p->next)
			if (proc_is_alive(p))
				proc = p;
		if (proc)
			proc->users++;
		procs_unlock();
		if (!proc)
			return;
		proc_kill(proc);
	}
}

static void test_full(void)
{
	pid_t pids[PROCS_MAX];
	bool started = true;

	for (int i = 0; i < PROCS_MAX; i++) {
		pids[i] = start_sh("sleep 1000", plain);
		started = started && pids[i] > 0;
	}
	ok(started, "a hundred can run");
	ok(start_sh("true", plain) < 0 && err.kind == ABX_E_TABLE_FULL, "one more cannot");
	is_str(err.message, "Too many running processes (100)", "which is told");
	/* Not even reaped yet, as far as we know. */
	kill(pids[0], SIGKILL);
	ok(is_dead(pids[0]), "one of them ends");
	ok(start_sh("sleep 1000", plain) > 0, "another can be started at once");
	kill_all();
	for (int i = 0; i < 10000 && count(PROC_RUNNING) + count(PROC_ENDING) > 0; i++)
		nap();
	is_int((long long)(count(PROC_RUNNING) + count(PROC_ENDING)), 0, "all are killed");
	is_int((long long)count(PROC_ENDED), PROCS_ENDED_MAX, "no more records are kept than allowed");
	ok(!row(pids[0]) && row(pids[PROCS_MAX - 1]), "those are the latest");
}

static void test_expire(void)
{
	int64_t now = abx_clock_us();
	size_t before = count(PROC_ENDED);

	procs_lock();
	procs_expire(now + PROCS_ENDED_US - 100 * 1000000LL);
	procs_unlock();
	is_int((long long)count(PROC_ENDED), (long long)before, "records are kept for their time");
	procs_lock();
	procs_expire(now + PROCS_ENDED_US);
	procs_unlock();
	is_int((long long)count(PROC_ENDED), 0, "and no longer");
}

/* Records with the pids that the system will give next. */
static void test_same_pid(void)
{
	bool happened = false;

	for (int try = 0; try < 50 && !happened; try++) {
		int next = 0;

		for (int i = 0; i < 20; i++)
			next = start_sh("true", plain);
		has_ended(next);
		procs_lock();
		for (struct proc *p = procs.first; p; p = p->next)
			if (p->state == PROC_ENDED)
				p->pid = ++next;
		procs_unlock();
		size_t before = count(PROC_ENDED);
		pid_t pid = start_sh("sleep 1000", plain);
		happened = count(PROC_ENDED) < before;
		if (happened)
			is_int(row(pid)->state, PROC_RUNNING, "a new process replaces the record of an ended one with its pid");
		if (happened)
			is_int((long long)count(PROC_ENDED), (long long)before - 1, "that one alone");
		proc_kill(row(pid));
		has_ended(pid);
	}
	if (!happened)
		skip("the system gave no pid that was expected");
	procs_lock();
	procs_expire(INT64_MAX - 1);
	procs_unlock();
}

int main(void)
{
	spawn_open();
	test_life();
	test_cap();
	test_full();
	test_expire();
	int fds = count_fds();
	test_same_pid();
	ok(count_fds() <= fds, "no descriptor is left open");
	is_int(slots_used(), 0, "the board is empty");
	spawn_close();
	return done_testing();
}
