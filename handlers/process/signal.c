#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>

#include "common/clock.h"
#include "handlers/process/handlers.h"
#include "handlers/process/proc.h"

/* How long the answer waits for a killed process to be gone. */
#define KILL_WAIT_US 1000000

static const int allowed[] = { SIGINT, SIGKILL, SIGTERM, SIGCONT, SIGTSTP };

static bool is_allowed(int64_t number)
{
	for (size_t i = 0; i < ABX_N(allowed); i++)
		if (allowed[i] == number)
			return true;
	return false;
}

static int has_ended(const struct proc *proc, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_NO_PROCESS, "Process %d has ended", (int)proc->pid);
}

/* The process alone. */
static int send_signal(const struct proc *proc, int number, struct abx_err *err)
{
	int result = 0;

	procs_lock();
	if (!proc_is_alive(proc))
		result = has_ended(proc, err);
	else if (pidfd_send_signal(proc->child.pidfd, number, NULL, 0) < 0)
		result = abx_err_errno(err, errno, "Cannot send the signal");
	procs_unlock();
	return result;
}

/* The process, its group and descendants; then whoever asks for its state sees that it has ended. */
static int kill_tree(struct abx_request *req, struct proc *proc, struct abx_err *err)
{
	int64_t until_us = abx_clock_us() + KILL_WAIT_US;
	struct abx_err unused = ABX_ERR_INIT;
	enum proc_news news = PROC_NEWS;
	struct proc_waiter waiter;

	if (!proc_kill(proc))
		return has_ended(proc, err);
	procs_lock();
	/* It is killed, whether or not its end can be waited for. */
	if (proc_wait_begin(proc, &waiter, &unused) == 0) {
		while (news == PROC_NEWS && proc->state != PROC_ENDED)
			news = proc_wait(&waiter, -1, req->io->client_fd, until_us);
		proc_wait_end(proc, &waiter);
	}
	procs_unlock();
	return 0;
}

int h_process_signal(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	int64_t number = abx_arg_int(req, "signal");
	auto_proc struct proc *proc = NULL;
	pid_t pid;

	if (procs_parse_pid(req, &pid, err) < 0)
		return -1;
	if (!is_allowed(number))
		return abx_err_set(err, ABX_E_VALUE, "signal: must be 2, 9, 15, 18 or 20");
	if (abx_process_is_server(pid))
		return abx_err_set(err, ABX_E_FORBIDDEN, "Process %d belongs to the server", (int)pid);
	proc = procs_get(req, err);
	if (!proc || (number == SIGKILL ? kill_tree(req, proc, err) : send_signal(proc, (int)number, err)) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_kint(&jw, "pid", pid);
	abx_jw_kint(&jw, "signal", number);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
