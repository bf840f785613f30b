#include "handlers/process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "common/clock.h"

struct procs procs = { .lock = PTHREAD_MUTEX_INITIALIZER, .epoll_fd = -1, .wake_fd = -1 };

void procs_lock(void)
{
	pthread_mutex_lock(&procs.lock);
}

void procs_unlock(void)
{
	pthread_mutex_unlock(&procs.lock);
}

static void proc_free(struct proc *proc)
{
	ring_release(&proc->ring);
	abx_workdir_release(&proc->temp);
	free(proc->command);
	free(proc);
}

/* With the lock. */
static void proc_unref(struct proc *proc)
{
	if (--proc->users == 0)
		proc_free(proc);
}

void procs_put(struct proc **proc)
{
	if (!*proc)
		return;
	procs_lock();
	proc_unref(*proc);
	procs_unlock();
}

static struct proc *proc_new(const struct abx_start *start, const struct proc_options *options)
{
	struct proc *proc = calloc(1, sizeof(*proc));

	if (!proc)
		return NULL;
	proc->command = strdup(options->command);
	if (!proc->command) {
		free(proc);
		return NULL;
	}
	proc->users = 1;
	proc->child = (struct abx_child)ABX_CHILD_INIT;
	proc->temp = (struct abx_workdir)ABX_WORKDIR_INIT;
	proc->capture = options->capture;
	proc->input = start->input;
	proc->ring.max = options->max_output;
	for (int i = 0; i < PROC_SOURCE__N; i++)
		proc->sources[i] = (struct proc_source){ .proc = proc, .kind = (enum proc_source_kind)i, .fd = -1 };
	return proc;
}

bool proc_is_alive(const struct proc *proc)
{
	return proc->state == PROC_RUNNING && !abx_child_has_ended(&proc->child);
}

const char *proc_state_name(const struct proc *proc)
{
	return proc->state == PROC_ENDED ? "exited" : "running";
}

void proc_write_exit_code(const struct proc *proc, struct abx_json_writer *jw)
{
	abx_jw_key(jw, "exit_code");
	if (proc->state == PROC_ENDED)
		abx_jw_int(jw, proc->exit_code);
	else
		abx_jw_null(jw);
}

/* ---- the table */

static size_t count_alive(void)
{
	size_t n = procs.starting;

	for (const struct proc *p = procs.first; p; p = p->next)
		n += p->state == PROC_RUNNING;
	if (n < PROCS_MAX)
		return n;
	/* Only then is it worth asking the kernel who has ended a moment ago. */
	n = procs.starting;
	for (const struct proc *p = procs.first; p; p = p->next)
		n += proc_is_alive(p);
	return n;
}

static void remove_at(struct proc **at)
{
	struct proc *proc = *at;

	*at = proc->next;
	proc_unref(proc);
}

/* A new row. A record with the same pid is of a process that was reaped: the pid is the new one's now. */
static void insert(struct proc *proc)
{
	struct proc **at = &procs.first;

	while (*at) {
		if ((*at)->pid == proc->pid)
			remove_at(at);
		else
			at = &(*at)->next;
	}
	*at = proc;
	proc->users++;
}

/* The ended process whose record is to go first, or NULL. */
static struct proc **oldest_ended(size_t *ret_n)
{
	struct proc **oldest = NULL;

	*ret_n = 0;
	for (struct proc **at = &procs.first; *at; at = &(*at)->next) {
		if ((*at)->state != PROC_ENDED)
			continue;
		++*ret_n;
		if (!oldest || (*at)->due_us < (*oldest)->due_us)
			oldest = at;
	}
	return oldest;
}

void procs_expire(int64_t now_us)
{
	struct proc **oldest;
	size_t n;

	while ((oldest = oldest_ended(&n)) && (n > PROCS_ENDED_MAX || (*oldest)->due_us <= now_us))
		remove_at(oldest);
}

/* Take a place for a process. */
static int reserve(struct abx_err *err)
{
	int result = -1;

	procs_lock();
	if (count_alive() >= PROCS_MAX)
		abx_err_set(err, ABX_E_TABLE_FULL, "Too many running processes (%d)", PROCS_MAX);
	else
		result = manager_start(err);
	if (result == 0)
		procs.starting++;
	procs_unlock();
	return result;
}

/* A started child that cannot be watched. */
static void give_up(struct abx_child *child)
{
	abx_child_kill(child);
	abx_drain_child(abx_steal_fd(&child->pidfd), child->slot);
	abx_cleanup_fd(&child->input_fd);
	abx_cleanup_fd(&child->out_fd);
	abx_cleanup_fd(&child->err_fd);
}

int procs_start(const struct abx_start *start, const struct proc_options *options, pid_t *ret_pid, struct abx_err *err)
{
	auto_proc struct proc *proc = proc_new(start, options);
	bool started, watched = false;

	if (!proc)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (reserve(err) < 0)
		return -1;
	started = abx_child_start(start, &proc->child, err) == 0;
	/* Where the system allows it: the room of a plain pipe is enough, too. */
	if (started && start->input)
		fcntl(proc->child.input_fd, F_SETPIPE_SZ, PROCS_INPUT_ROOM);
	procs_lock();
	procs.starting--;
	if (started) {
		proc->pid = proc->child.pid;
		proc->started_at = abx_clock_real();
		proc->due_us = abx_spawn_deadline_us(options->timeout);
		watched = manager_watch(proc, err) == 0;
		if (watched)
			insert(proc);
		if (watched && options->temp) {
			proc->temp = *options->temp;
			*options->temp = (struct abx_workdir)ABX_WORKDIR_INIT;
		}
	}
	procs_unlock();
	if (started && !watched)
		give_up(&proc->child);
	if (!watched)
		return -1;
	*ret_pid = proc->pid;
	manager_wake();
	return 0;
}

int procs_parse_pid(const struct abx_request *req, pid_t *ret_pid, struct abx_err *err)
{
	const char *text = abx_request_param(req, "pid"), *digits = text + (*text == '-');
	size_t n = strspn(digits, "0123456789");
	long pid;

	if (n == 0 || digits[n])
		return abx_err_set(err, ABX_E_VALUE, "pid: must be an integer");
	errno = 0;
	pid = strtol(text, NULL, 10);
	*ret_pid = errno || pid < 0 || pid > INT_MAX ? 0 : (pid_t)pid;
	return 0;
}

struct proc *procs_get(const struct abx_request *req, struct abx_err *err)
{
	struct proc *proc;
	pid_t pid;

	if (procs_parse_pid(req, &pid, err) < 0)
		return NULL;
	procs_lock();
	procs_expire(abx_clock_us());
	for (proc = procs.first; proc && proc->pid != pid; proc = proc->next)
		;
	if (proc)
		proc->users++;
	procs_unlock();
	if (!proc)
		abx_err_set(err, ABX_E_NO_PROCESS, "No such process: %s", abx_request_param(req, "pid"));
	return proc;
}

/* ---- waiting */

int proc_wait_begin(struct proc *proc, struct proc_waiter *waiter, struct abx_err *err)
{
	waiter->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (waiter->fd < 0)
		return abx_err_errno(err, errno, "Cannot wait for the process");
	waiter->next = proc->waiters;
	proc->waiters = waiter;
	return 0;
}

enum proc_news proc_wait(struct proc_waiter *waiter, int input_fd, int client_fd, int64_t until_us)
{
	struct pollfd watched[] = {
		{ .fd = waiter->fd, .events = POLLIN },
		{ .fd = input_fd, .events = POLLOUT },
		{ .fd = client_fd, .events = POLLRDHUP },
		{ .fd = abx_spawn_stop_fd(), .events = POLLIN },
	};
	int64_t left_us = until_us - abx_clock_us();
	struct timespec left = { .tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000 };
	enum proc_news news = PROC_LATE;
	eventfd_t count;

	if (left_us <= 0)
		return PROC_LATE;
	procs_unlock();
	if (ppoll(watched, ABX_N(watched), &left, NULL) < 0)
		news = PROC_NEWS;
	else if (watched[3].revents)
		news = PROC_STOPPED;
	else if (watched[2].revents)
		news = PROC_CLIENT_GONE;
	else if (watched[1].revents || watched[0].revents)
		news = PROC_NEWS;
	procs_lock();
	/* Whatever was told up to now is seen by whoever looks now. */
	eventfd_read(waiter->fd, &count);
	return news;
}

void proc_wait_end(struct proc *proc, struct proc_waiter *waiter)
{
	struct proc_waiter **at = &proc->waiters;

	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
	abx_cleanup_fd(&waiter->fd);
}

void proc_wake(struct proc *proc)
{
	for (struct proc_waiter *waiter = proc->waiters; waiter; waiter = waiter->next)
		eventfd_write(waiter->fd, 1);
}

bool proc_kill(struct proc *proc)
{
	bool alive;

	procs_lock();
	alive = proc_is_alive(proc);
	proc->kills += alive;
	procs_unlock();
	if (!alive)
		return false;
	abx_child_kill(&proc->child);
	procs_lock();
	proc->kills--;
	procs_unlock();
	manager_wake();
	return true;
}
