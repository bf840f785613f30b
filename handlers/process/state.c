#include "handlers/process/handlers.h"
#include "handlers/process/proc.h"

/* With the lock. */
static void write_members(struct abx_json_writer *jw, const struct proc *proc)
{
	abx_jw_kint(jw, "pid", proc->pid);
	abx_jw_kstring(jw, "command", proc->command);
	abx_jw_kstring(jw, "state", proc_state_name(proc));
	abx_jw_key(jw, "started_at");
	abx_jw_double(jw, proc->started_at);
}

int h_process_list(struct abx_request *req, struct abx_err *err)
{
	/* A hundred commands of the longest that a body has room for. */
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)1 << 30);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);

	abx_jw_object(&jw);
	abx_jw_key(&jw, "processes");
	abx_jw_array(&jw);
	procs_lock();
	for (const struct proc *proc = procs.first; proc; proc = proc->next) {
		if (proc->state == PROC_ENDED)
			continue;
		abx_jw_object(&jw);
		write_members(&jw, proc);
		abx_jw_object_end(&jw);
	}
	procs_unlock();
	abx_jw_array_end(&jw);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}

int h_process_get(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	auto_proc struct proc *proc = procs_get(req, err);

	if (!proc)
		return -1;
	abx_jw_object(&jw);
	procs_lock();
	write_members(&jw, proc);
	proc_write_exit_code(proc, &jw);
	procs_unlock();
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
