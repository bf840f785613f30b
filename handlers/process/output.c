#include "common/clock.h"
#include "handlers/process/handlers.h"
#include "handlers/process/proc.h"

#define WAIT_MAX_S 30

/* With the lock. */
static bool has_news(const struct proc *proc, uint64_t since)
{
	return proc->ring.next > since || proc->state == PROC_ENDED;
}

/*
 * Wait until there is something to tell. The header goes out before, since lighttpd tells of a client's departure only then. -1: nobody is there any more to be
 * told. With the lock.
 */
static int wait_for_news(struct abx_request *req, struct proc *proc, uint64_t since, double seconds, struct abx_err *err)
{
	int64_t until_us = abx_clock_us() + (int64_t)(seconds * 1e6);
	enum proc_news news = PROC_NEWS;
	struct proc_waiter waiter;

	if (proc_wait_begin(proc, &waiter, err) < 0)
		return -1;
	procs_unlock();
	if (abx_response_begin(&req->res, 200, ABX_RESPONSE_JSON, -1) < 0 || req->io->ops->flush(req->io) < 0)
		news = PROC_CLIENT_GONE;
	procs_lock();
	/* A server that stops tells what there is. */
	while (news == PROC_NEWS && !has_news(proc, since))
		news = proc_wait(&waiter, -1, req->io->client_fd, until_us);
	proc_wait_end(proc, &waiter);
	return news == PROC_CLIENT_GONE ? abx_err_set(err, ABX_E_GONE, "The client left") : 0;
}

/* With the lock. */
static void write_output(const struct proc *proc, uint64_t since, struct abx_json_writer *jw)
{
	abx_jw_object(jw);
	abx_jw_kint(jw, "pid", proc->pid);
	abx_jw_key(jw, "events");
	ring_write(&proc->ring, since, jw);
	abx_jw_kint(jw, "next", (int64_t)proc->ring.next);
	abx_jw_kstring(jw, "state", proc_state_name(proc));
	proc_write_exit_code(proc, jw);
	abx_jw_kbool(jw, "dropped", ring_dropped(&proc->ring, since));
	abx_jw_object_end(jw);
}

/* The answer, whose header may be out. */
static int respond(struct abx_request *req, const struct abx_strbuf *body, struct abx_err *err)
{
	if (req->res.state == ABX_RESPONSE_NEW)
		return abx_response_json(&req->res, 200, body, err);
	if (body->failed)
		return abx_err_set(err, ABX_E_INTERNAL, "The answer is too large for memory");
	abx_response_write(&req->res, body->buf, body->len);
	return 0;
}

int h_process_output(struct abx_request *req, struct abx_err *err)
{
	/* All that is kept, each byte escaped. */
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	auto_proc struct proc *proc = procs_get(req, err);
	int64_t since = abx_arg_int(req, "since");
	double wait = abx_arg_number(req, "wait");
	int result = 0;

	if (!proc)
		return -1;
	if (!proc->capture)
		return abx_err_set(err, ABX_E_CONFLICT, "Output of process %d is not captured: start it with capture_output", (int)proc->pid);
	since = since > 0 ? since : 0;
	procs_lock();
	if (wait > 0 && !has_news(proc, (uint64_t)since))
		result = wait_for_news(req, proc, (uint64_t)since, wait < WAIT_MAX_S ? wait : WAIT_MAX_S, err);
	if (result == 0)
		write_output(proc, (uint64_t)since, &jw);
	procs_unlock();
	return result < 0 ? -1 : respond(req, &body, err);
}
