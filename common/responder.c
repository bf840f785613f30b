#include "common/responder.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sysexits.h>

#include "common/cage.h"
#include "common/fcgi_io.h"
#include "common/gate.h"
#include "common/log.h"
#include "common/service.h"
#include "common/spawn.h"

/*
 * The pool. It starts small, grows to EAGER_THREADS as soon as all are busy (more make quick handlers slower), and past that only while callers wait and at
 * least half of the threads were in one and the same call for a whole tick.
 */
#define FIRST_THREADS 4
#define EAGER_THREADS 16
#define MAX_THREADS   256
#define TICK_MS	      5

/* The stack of a thread: handlers keep large things elsewhere (a unit test runs the deepest JSON on less). */
#if ABX_SANITIZERS
#define STACK_SIZE ((size_t)2 << 20)
#else
#define STACK_SIZE ((size_t)256 << 10)
#endif

/* How often threads that sit in accept() are woken while the responder drains. */
#define DRAIN_STEP_MS 5

/* A policy, and how many calls are under way that began with it. */
struct generation {
	struct abx_service *service;
	unsigned calls;
};

struct worker {
	pthread_t thread;
	atomic_uint calls;   /* that ended; wraps */
	unsigned calls_seen; /* at the last tick; the main thread's */
};

/* The one responder of this process. */
static struct {
	const struct abx_program *program;
	struct abx_board *board;
	struct generation *generation; /* the one that new calls begin with */
	pthread_mutex_t generations;   /* held for the pointer above and for all counts of calls */
	struct worker workers[MAX_THREADS];
	atomic_uint n_threads; /* started; only ever grows */
	atomic_uint idle;      /* in accept() */
	atomic_uint running;   /* not yet ended */
	atomic_bool draining;
	atomic_bool watched;   /* the main thread looks on, tick by tick */
	int all_busy;          /* eventfd: wakes the main thread to do so */
	pthread_mutex_t grow;
} responder = { .grow = PTHREAD_MUTEX_INITIALIZER, .generations = PTHREAD_MUTEX_INITIALIZER };

static void start_thread(void);

/* The last idle thread leaves: the next connection would wait for one of us. */
static void note_all_busy(void)
{
	if (responder.n_threads < EAGER_THREADS)
		start_thread();
	else if (responder.n_threads < responder.program->max_threads && !atomic_exchange(&responder.watched, true))
		eventfd_write(responder.all_busy, 1);
}

/* Accept one connection; only here can SIGUSR1 interrupt, since libfcgi takes an interrupted read for a broken connection. */
static int accept_one(const sigset_t *wake)
{
	int fd;

	pthread_sigmask(SIG_UNBLOCK, wake, NULL);
	fd = accept4(ABX_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC);
	pthread_sigmask(SIG_BLOCK, wake, NULL);
	return fd;
}

/* No descriptor or memory for one more connection: it stays in the backlog; wait for a moment that can be better. */
static void back_off(void)
{
	abx_log(ABX_LOG_ERROR, "cannot accept a connection: %s", strerror(errno));
	poll(NULL, 0, 20);
}

/* ---- the policy */

static struct generation *take_generation(void)
{
	struct generation *generation;

	pthread_mutex_lock(&responder.generations);
	generation = responder.generation;
	generation->calls++;
	pthread_mutex_unlock(&responder.generations);
	return generation;
}

static void free_generation(struct generation *generation)
{
	abx_service_close(generation->service);
	free(generation);
}

/* The last call of a policy that was replaced takes it along. */
static void leave_generation(struct generation *generation)
{
	bool last;

	pthread_mutex_lock(&responder.generations);
	last = --generation->calls == 0 && generation != responder.generation;
	pthread_mutex_unlock(&responder.generations);
	if (last)
		free_generation(generation);
}

/* Begin to use a service: calls that are under way end with the one that they have. */
static int use_service(struct abx_service *service, struct abx_err *err)
{
	struct generation *generation = calloc(1, sizeof(*generation)), *old;
	bool unused;

	if (!generation || abx_spawn_hide(service->policy->secrets) < 0) {
		free(generation);
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	generation->service = service;
	/* What a program's init has seen stays as long as the program. */
	generation->calls = responder.generation == NULL;
	pthread_mutex_lock(&responder.generations);
	old = responder.generation;
	responder.generation = generation;
	unused = old && old->calls == 0;
	pthread_mutex_unlock(&responder.generations);
	if (unused)
		free_generation(old);
	return 0;
}

/* A new policy has come from abxd. A bad one leaves the old one in force; the answer says which. */
static void take_policy(int fd)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_service *service = abx_service_open(responder.program->group, fd, responder.board, &err);
	bool taken = false;

	if (service) {
		service->server_error = responder.generation->service->server_error;
		taken = use_service(service, &err) == 0;
		if (!taken)
			abx_service_close(service);
	}
	close(fd);
	if (!taken)
		abx_log(ABX_LOG_ERROR, "the new policy is not taken: %s", err.message);
	if (write(ABX_FD_CONTROL, taken ? "P" : "E", 1) != 1)
		abx_log(ABX_LOG_ERROR, "abxd cannot be told of the new policy: %s", strerror(errno));
}

/* Read what abxd sends: one byte that carries the descriptor of a policy. false: abxd is gone. */
static bool take_control(void)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(ABX_FD_CONTROL, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *cmsg = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fd;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n != 1)
		return false;
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS && cmsg->cmsg_len == CMSG_LEN(sizeof(int))) {
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
		take_policy(fd);
	}
	return true;
}

/* ---- threads */

static void serve_one(struct abx_fcgi *fcgi, int fd)
{
	struct generation *generation;
	struct abx_io *io;

	if (!abx_board_admits(responder.board, fd)) {
		abx_log(ABX_LOG_WARNING, "refused a FastCGI connection that does not come from the web server");
		close(fd);
		return;
	}
	io = abx_fcgi_begin(fcgi, fd);
	if (!io)
		return;
	generation = take_generation();
	abx_gate_serve(generation->service, io);
	leave_generation(generation);
	abx_fcgi_end(fcgi);
}

static void *serve(void *arg)
{
	struct worker *worker = arg;
	struct abx_fcgi *fcgi = abx_fcgi_new();
	sigset_t wake;

	sigemptyset(&wake);
	sigaddset(&wake, SIGUSR1);
	while (fcgi && !responder.draining) {
		int fd;

		/* Once more, since drain() counts on it: who is not idle when it looks does not accept any more. */
		atomic_fetch_add(&responder.idle, 1);
		errno = EINTR;
		fd = responder.draining ? -1 : accept_one(&wake);
		if (atomic_fetch_sub(&responder.idle, 1) == 1 && fd >= 0)
			note_all_busy();
		if (fd >= 0)
			serve_one(fcgi, fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			back_off();
		atomic_fetch_add(&worker->calls, 1);
	}
	abx_fcgi_free(fcgi);
	atomic_fetch_sub(&responder.running, 1);
	return NULL;
}

/* Start one more thread, unless the pool is full or the process is draining. */
static void start_thread(void)
{
	pthread_attr_t attr;

	if (responder.n_threads >= responder.program->max_threads || responder.draining)
		return;
	pthread_mutex_lock(&responder.grow);
	if (responder.n_threads < responder.program->max_threads) {
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, responder.program->stack_size ? responder.program->stack_size : STACK_SIZE);
		atomic_fetch_add(&responder.running, 1);
		struct worker *worker = &responder.workers[responder.n_threads];

		if (pthread_create(&worker->thread, &attr, serve, worker) == 0)
			atomic_fetch_add(&responder.n_threads, 1);
		else
			atomic_fetch_sub(&responder.running, 1);
		pthread_attr_destroy(&attr);
	}
	pthread_mutex_unlock(&responder.grow);
}

static void woken(int sig ABX_UNUSED)
{
}

/* All signals are blocked in all threads; the main thread reads them from a descriptor, and SIGUSR1 only interrupts accept(). */
static int prepare_signals(void)
{
	struct sigaction action = { .sa_handler = woken };
	sigset_t all;

	sigfillset(&all);
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&all);
	sigaddset(&all, SIGTERM);
	sigaddset(&all, SIGINT);
	return signalfd(-1, &all, SFD_CLOEXEC);
}

/* How many threads are in the call that they were in at the last look. */
static unsigned count_stuck(void)
{
	unsigned stuck = 0;

	for (unsigned i = 0; i < responder.n_threads; i++) {
		unsigned calls = responder.workers[i].calls;

		stuck += calls == responder.workers[i].calls_seen;
		responder.workers[i].calls_seen = calls;
	}
	return stuck;
}

/* A tick has passed: double the pool if it is stuck while callers wait. Returns whether to look again. */
static bool watch_pool(void)
{
	struct pollfd backlog = { .fd = ABX_FD_LISTEN, .events = POLLIN };
	unsigned n = responder.n_threads;

	if (responder.idle > 0 || n >= responder.program->max_threads) {
		responder.watched = false;
		return false;
	}
	if (count_stuck() >= n / 2 && poll(&backlog, 1, 0) > 0)
		for (unsigned i = 0; i < n; i++)
			start_thread();
	return true;
}

/* Wait for a signal from abxd, or for its end, and let the pool grow. Returns the signal; 0: abxd is gone. */
static int wait_for_orders(int signals)
{
	struct pollfd fds[3] = { { .fd = signals, .events = POLLIN },
				 { .fd = ABX_FD_CONTROL, .events = POLLIN },
				 { .fd = responder.all_busy, .events = POLLIN } };
	struct signalfd_siginfo info;
	eventfd_t count;
	bool watching = false;

	for (;;) {
		int n = poll(fds, 3, watching ? TICK_MS : -1);

		if (n > 0 && fds[0].revents && read(signals, &info, sizeof(info)) == sizeof(info))
			return (int)info.ssi_signo;
		if (n > 0 && fds[1].revents && !take_control())
			return 0;
		if (n > 0 && fds[2].revents && eventfd_read(responder.all_busy, &count) == 0) {
			count_stuck();
			watching = true;
		} else if (watching) {
			watching = watch_pool();
		}
	}
}

void abx_responder_lose_threads(int n)
{
	atomic_fetch_sub(&responder.running, (unsigned)n);
}

/* Accept no more, and wait for the requests that run. The process's exit frees the rest. */
static void drain(int signals)
{
	struct pollfd pfd = { .fd = signals, .events = POLLIN };
	struct signalfd_siginfo info;
	bool told = false;

	responder.draining = true;
	while (responder.running > 0) {
		if (!told && responder.idle == 0)
			told = write(ABX_FD_CONTROL, "D", 1) == 1;
		for (unsigned i = 0; i < responder.n_threads && responder.idle > 0; i++)
			pthread_kill(responder.workers[i].thread, SIGUSR1);
		if (poll(&pfd, 1, DRAIN_STEP_MS) > 0 && read(signals, &info, sizeof(info)) == sizeof(info) &&
		    info.ssi_signo == SIGINT)
			abx_spawn_stop_all();
	}
}

static int load(const struct abx_program *program, struct abx_err *err)
{
	struct abx_service *service;

	responder.board = abx_board_map(ABX_FD_BOARD, err);
	service = responder.board ? abx_service_open(program->group, ABX_FD_POLICY, responder.board, err) : NULL;
	if (!service)
		return -1;
	abx_log_init(program->name, service->policy->log_level, service->policy->log_json);
	if (abx_spawn_init(responder.board, environ, err) < 0 || use_service(service, err) < 0)
		return -1;
	if (program->init && program->init(service, err) < 0)
		return -1;
	return abx_cage_enter(service->policy->cage_off[program->group] ? 0 : program->cage, err);
}

void abx_responder_outlived(void)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&told) && write(ABX_FD_CONTROL, "N", 1) != 1)
		abx_log(ABX_LOG_WARNING, "abxd does not listen");
}

/* The group's rows as JSON lines, for tests and documentation. */
static int list_endpoints(enum abx_group group)
{
	for (size_t i = 0; i < *abx_groups[group].n_rows; i++) {
		const struct abx_endpoint *row = &abx_groups[group].rows[i];
		abx_auto_strbuf struct abx_strbuf line = ABX_STRBUF_INIT;
		struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&line);

		abx_jw_object(&jw);
		abx_jw_kstring(&jw, "id", row->id);
		abx_jw_kstring(&jw, "method", abx_method_name(row->method));
		abx_jw_kstring(&jw, "path", row->path);
		abx_jw_kstring(&jw, "group", abx_groups[group].name);
		abx_jw_kbool(&jw, "public", row->flags & ABX_EP_PUBLIC);
		abx_jw_kbool(&jw, "streaming", row->flags & ABX_EP_STREAM);
		abx_jw_kbool(&jw, "implemented", row->fn != NULL);
		abx_jw_object_end(&jw);
		puts(line.buf);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

/* What somebody wrote is wrong, and starting again would not help: abxd, which tells it where it is looked for, stops if it is starting itself. */
static _Noreturn void refuse_start(const struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf line = ABX_STRBUF_INIT;

	abx_strbuf_addf(&line, "C%s", err->message);
	if (send(ABX_FD_CONTROL, line.buf, line.len, MSG_NOSIGNAL) < 0)
		abx_log(ABX_LOG_ERROR, "cannot start: %s", err->message);
	_exit(EX_CONFIG);
}

int abx_responder_main(int argc, char **argv, const struct abx_program *program)
{
	struct abx_err err = ABX_ERR_INIT;
	int signals, order;

	if (argc == 2 && strcmp(argv[1], "--list-endpoints") == 0)
		return list_endpoints(program->group);
	/* A fixed threshold gives large bodies back to the system at once; glibc's own would grow with them. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	mallopt(M_ARENA_MAX, 4);
	responder.program = program;
	responder.all_busy = eventfd(0, EFD_CLOEXEC);
	signals = prepare_signals();
	if (signals < 0 || responder.all_busy < 0 || abx_fcgi_init() < 0 || load(program, &err) < 0) {
		if (err.kind == ABX_E_VALUE)
			refuse_start(&err);
		abx_log(ABX_LOG_ERROR, "%s: cannot start: %s", program->name,
			err.kind ? err.message : strerror(errno));
		return 1;
	}
	for (unsigned i = 0; i < FIRST_THREADS; i++)
		start_thread();
	if (write(ABX_FD_CONTROL, "R", 1) != 1)
		return 1;
	order = wait_for_orders(signals);
	if (order != SIGTERM)
		abx_spawn_stop_all();
	if (order)
		drain(signals);
	else
		/* abxd was killed: nobody else would end what the server has started. */
		abx_kill_marked(responder.board->instance);
	_exit(0);
}
