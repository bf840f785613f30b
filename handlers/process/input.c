#include <errno.h>
#include <unistd.h>

#include "common/clock.h"
#include "handlers/process/handlers.h"
#include "handlers/process/proc.h"

/* How long a process may take to read what it is given; the answer then says how much has gone into its pipe. */
#define FEED_US (10 * 1000000LL)

/* What is fed, and how much of it has been. */
struct feed {
	const char *data;
	size_t len, written;
	bool eof;
};

static void input_close(struct proc *proc)
{
	if (proc->child.input_fd >= 0)
		close(abx_steal_fd(&proc->child.input_fd));
}

static int is_closed(const struct proc *proc, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_CONFLICT, "Standard input of process %d is closed", (int)proc->pid);
}

/* As much as the pipe takes now. */
static void feed_some(struct proc *proc, struct feed *feed)
{
	ssize_t n = write(proc->child.input_fd, feed->data + feed->written, feed->len - feed->written);

	if (n > 0)
		feed->written += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		input_close(proc); /* nobody reads from it any more */
}

/* Why the request has to end, or 0. */
static int interrupted(enum proc_news news, struct abx_err *err)
{
	if (news == PROC_CLIENT_GONE)
		return abx_err_set(err, ABX_E_GONE, "The client left");
	if (news == PROC_STOPPED)
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The server is stopping");
	return 0;
}

/* Write all, as the pipe has room. With the lock, and with the input to ourselves. */
static int feed_all(struct abx_request *req, struct proc *proc, struct proc_waiter *waiter, struct feed *feed, int64_t until_us,
		    struct abx_err *err)
{
	enum proc_news news = PROC_NEWS;

	while (news == PROC_NEWS && proc->child.input_fd >= 0 && proc->state != PROC_ENDED && feed->written < feed->len) {
		feed_some(proc, feed);
		if (feed->written < feed->len && proc->child.input_fd >= 0)
			news = proc_wait(waiter, proc->child.input_fd, req->io->client_fd, until_us);
	}
	if (interrupted(news, err) < 0)
		return -1;
	if (proc->child.input_fd < 0 && feed->written == 0 && feed->len > 0)
		return is_closed(proc, err);
	if (feed->eof && feed->written == feed->len)
		input_close(proc);
	return 0;
}

/* With the lock. */
static int feed_in_turn(struct abx_request *req, struct proc *proc, struct proc_waiter *waiter, struct feed *feed, struct abx_err *err)
{
	int64_t until_us = abx_clock_us() + FEED_US;
	enum proc_news news = PROC_NEWS;
	int result;

	while (proc->writing && news == PROC_NEWS)
		news = proc_wait(waiter, -1, req->io->client_fd, until_us);
	if (interrupted(news, err) < 0)
		return -1;
	/* Another request has not got rid of its own yet: nothing of this one was written. */
	if (proc->writing)
		return 0;
	if (proc->child.input_fd < 0)
		return is_closed(proc, err);
	proc->writing = true;
	result = feed_all(req, proc, waiter, feed, until_us, err);
	proc->writing = false;
	if (proc->state == PROC_ENDED)
		input_close(proc);
	proc_wake(proc);
	return result;
}

static int feed_proc(struct abx_request *req, struct proc *proc, struct feed *feed, bool *ret_closed, struct abx_err *err)
{
	struct proc_waiter waiter;
	int result;

	procs_lock();
	result = proc_wait_begin(proc, &waiter, err);
	if (result == 0) {
		result = feed_in_turn(req, proc, &waiter, feed, err);
		proc_wait_end(proc, &waiter);
	}
	*ret_closed = proc->child.input_fd < 0;
	procs_unlock();
	return result;
}

static int take_data(struct abx_request *req, struct feed *feed, struct abx_err *err)
{
	bool text = abx_arg_given(req, "data"), base64 = abx_arg_given(req, "data_base64");

	feed->eof = abx_arg_bool(req, "eof");
	if (text && base64)
		return abx_err_set(err, ABX_E_VALUE, "data: give either data or data_base64");
	if (!text && !base64 && !feed->eof)
		return abx_err_set(err, ABX_E_VALUE, "data: one of data, data_base64 and eof is required");
	if (base64)
		return abx_arg_base64(req, "data_base64", &feed->data, &feed->len, err);
	abx_arg_data(req, "data", &feed->data, &feed->len);
	return 0;
}

int h_process_stdin(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	auto_proc struct proc *proc = NULL;
	struct feed feed = { 0 };
	bool closed;

	if (take_data(req, &feed, err) < 0)
		return -1;
	proc = procs_get(req, err);
	if (!proc)
		return -1;
	if (!proc->input)
		return abx_err_set(err, ABX_E_CONFLICT, "Process %d was started without standard input: start it with stdin", (int)proc->pid);
	if (feed_proc(req, proc, &feed, &closed, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_kint(&jw, "pid", proc->pid);
	abx_jw_kint(&jw, "written", (int64_t)feed.written);
	abx_jw_kbool(&jw, "closed", closed);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
