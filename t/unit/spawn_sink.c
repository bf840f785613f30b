#include "common/spawn.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "t/unit/spawn_run.h"

/* A sink that sends what it takes, and notes what it was called for. */
struct sink {
	struct abx_spawn_sink base;
	struct abx_strbuf waiting;
	char ends[3]; /* of streams, in their order */
	size_t begun, idle, held_max;
	bool refuses; /* the client is gone from the start */
};

static int client, peer; /* the two ends of a client's connection */

static int begin(struct abx_spawn_sink *base)
{
	struct sink *sink = (struct sink *)base;

	sink->begun++;
	return sink->refuses ? -1 : 0;
}

static void take_output(struct abx_spawn_sink *base, enum abx_stream stream, const char *data, size_t len)
{
	struct sink *sink = (struct sink *)base;

	if (data) {
		abx_strbuf_add(&sink->waiting, data, len);
		if (sink->waiting.len > sink->held_max)
			sink->held_max = sink->waiting.len;
	} else {
		sink->ends[strlen(sink->ends)] = stream == ABX_STDERR ? 'e' : 'o';
	}
	base->waiting = sink->waiting.len > 0;
}

static void idle(struct abx_spawn_sink *base)
{
	struct sink *sink = (struct sink *)base;

	sink->idle++;
	abx_strbuf_addc(&sink->waiting, '.');
	base->waiting = true;
}

static int send_some(struct abx_spawn_sink *base)
{
	struct sink *sink = (struct sink *)base;
	size_t n = sink->waiting.len < 60000 ? sink->waiting.len : 60000;
	ssize_t sent = send(client, sink->waiting.buf, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0)
		return -1;
	abx_strbuf_consume(&sink->waiting, (size_t)sent);
	base->waiting = sink->waiting.len > 0;
	return 0;
}

static struct sink sink;

static void prepare(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		exit(1);
	client = pair[0];
	peer = pair[1];
	abx_strbuf_release(&sink.waiting);
	sink = (struct sink){
		.base = { .begin = begin, .take = take_output, .idle = idle, .send = send_some, .idle_ms = 60000 },
		.waiting = ABX_STRBUF_INIT_MAX((size_t)64 << 20),
	};
	opt.sink = &sink.base;
	opt.client_fd = client;
}

static void finish(void)
{
	if (client >= 0)
		close(client);
	if (peer >= 0)
		close(peer);
}

/* All that has come to the peer, as a string. */
static const char *received(void)
{
	static char text[4096];
	ssize_t n = recv(peer, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void test_output(void)
{
	prepare();
	is_int(sh("echo out; sleep 0.05; echo err >&2; sleep 0.05; printf end; exit 3"), 0, "a child with a sink");
	is_int(result.end, ABX_SPAWN_EXITED, "ends");
	is_int(result.exit_code, 3, "with its exit code");
	is_str(received(), "out\nerr\nend", "all output was sent, in its order");
	is_str(result.out.buf, "", "none of it is kept");
	is_int((long long)sink.begun, 1, "the sink was told of the start");
	is_str(sink.ends, "oe", "and of the end of each stream");
	ok(!sink.base.waiting, "nothing waits");
	finish();

	prepare();
	ok(RUN("no-such-program") < 0, "one that does not start");
	is_int((long long)sink.begun, 0, "begins nothing");
	finish();

	prepare();
	sink.refuses = true;
	sh("sleep 1000");
	is_int(result.end, ABX_SPAWN_CLIENT_GONE, "a client that is gone at the start");
	finish();

	prepare();
	sink.base.idle_ms = 20;
	sh("sleep 0.2; echo x; sleep 0.2");
	ok(sink.idle >= 3 && sink.idle < 1000, "silence is told (%zu times)", sink.idle);
	const char *text = received();
	ok(strlen(text) == sink.idle + 2 && strstr(text, ".x\n."), "before and after");
	finish();
}

/* ---- clients that do not read */

static _Atomic bool begin_to_read;
static _Atomic size_t n_read;

static void *read_late(void *arg)
{
	static char buf[65536];
	ssize_t n;

	while (!begin_to_read)
		nap();
	while ((n = read(peer, buf, sizeof(buf))) > 0)
		n_read += (size_t)n;
	return arg;
}

static bool appears(const char *path)
{
	for (int i = 0; i < 20000; i++, nap())
		if (access(path, F_OK) == 0)
			return true;
	return false;
}

/* What the other thread looks at meanwhile. */
static void *watch_stalled(void *arg)
{
	/* Time enough to write it all, were it not held back. */
	for (int i = 0; i < 250; i++)
		nap();
	*(bool *)arg = access("written", F_OK) == 0;
	begin_to_read = true;
	return NULL;
}

static void test_slow(void)
{
	pthread_t reader, watcher;
	bool early = true;

	prepare();
	begin_to_read = false;
	n_read = 0;
	pthread_create(&reader, NULL, read_late, NULL);
	pthread_create(&watcher, NULL, watch_stalled, &early);
	sh("head -c 20000000 /dev/zero; : >written; exit 4");
	close(client);
	client = -1;
	pthread_join(watcher, NULL);
	pthread_join(reader, NULL);
	ok(!early, "a child whose client does not read is held back");
	is_int((long long)n_read, 20000000, "no byte is lost");
	is_int(result.exit_code, 4, "nor the exit code");
	ok(sink.held_max <= 2 * 65536, "and little is held meanwhile (%zu bytes)", sink.held_max);
	finish();
}

/* Fill the client's connection. */
static void stuff(void)
{
	static const char junk[4096];

	while (send(client, junk, sizeof(junk), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
}

/* The file's content, when it ends with a newline. */
static const char *content(const char *path)
{
	static char text[128];

	for (int i = 0; i < 20000; i++, nap()) {
		abx_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

		text[n > 0 ? n : 0] = '\0';
		if (n > 0 && text[n - 1] == '\n')
			return text;
	}
	return "";
}

/* Read only when the child is dead. */
static void *read_at_death(void *arg)
{
	*(bool *)arg = are_dead(content("pid"), 1);
	begin_to_read = true;
	return NULL;
}

static void test_stalled(void)
{
	pthread_t reader, watcher;
	bool dead = false;

	prepare();
	stuff();
	begin_to_read = false;
	n_read = 0;
	opt.timeout = 0.3;
	pthread_create(&reader, NULL, read_late, NULL);
	pthread_create(&watcher, NULL, read_at_death, &dead);
	sh("echo before; echo $$ >pid; sleep 1000");
	is_int(result.end, ABX_SPAWN_TIMED_OUT, "a timeout comes in time when the client does not read");
	close(client);
	client = -1;
	pthread_join(watcher, NULL);
	pthread_join(reader, NULL);
	ok(dead, "the child is dead before the client goes on");
	is_int((long long)(n_read % 4096), 7, "who then gets what there was");
	finish();
}

static void *let_read(void *arg)
{
	appears("ended");
	/* The deadline passes. */
	for (int i = 0; i < 1250; i++)
		nap();
	begin_to_read = true;
	return arg;
}

static void test_ended(void)
{
	pthread_t reader, waker;

	prepare();
	stuff();
	begin_to_read = false;
	opt.timeout = 2;
	pthread_create(&reader, NULL, read_late, NULL);
	pthread_create(&waker, NULL, let_read, NULL);
	sh("echo last; : >ended; exit 5");
	is_int(result.end, ABX_SPAWN_EXITED, "a child that had ended in time was not timed out, however late its client read");
	is_int(result.exit_code, 5, "it has its exit code");
	close(client);
	client = -1;
	pthread_join(waker, NULL);
	pthread_join(reader, NULL);
	finish();
}

static void *leave(void *arg)
{
	appears("begun");
	close(peer);
	peer = -1;
	return arg;
}

static void test_gone(void)
{
	pthread_t leaver;

	prepare();
	pthread_create(&leaver, NULL, leave, NULL);
	sh("yes & echo $! >>pids; setsid sleep 1000 & echo $! >>pids; : >begun; wait");
	pthread_join(leaver, NULL);
	is_int(result.end, ABX_SPAWN_CLIENT_GONE, "a client that leaves while output waits for it is noticed");
	ok(are_dead(content("pids"), 2), "and all descendants are killed");
	is_int(slots_used(), 0, "the board is empty");
	finish();
}

int main(void)
{
	spawn_open();
	test_output();
	test_slow();
	test_stalled();
	test_ended();
	test_gone();
	abx_strbuf_release(&sink.waiting);
	spawn_close();
	return done_testing();
}
