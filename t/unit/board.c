#include "common/board.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "t/tap.h"

static struct abx_board *board;
static int board_fd = -1;

static void test_create(void)
{
	struct abx_err err = ABX_ERR_INIT;
	int64_t before = abx_clock_ms();

	board = abx_board_create(&board_fd, &err);
	if (!ok(board != NULL, "a board is made: %s", err.message))
		exit(done_testing());
	ok(fcntl(board_fd, F_GETFD) & FD_CLOEXEC, "its descriptor is close-on-exec");
	ok(board->started_ms >= before && board->started_ms <= abx_clock_ms(), "it says when the server started");
	ok(board->started_at > 1e9 && board->started_at <= abx_clock_real(), "and by the clock on the wall");
	is_int((long long)strspn(board->instance, "0123456789abcdef"), 16, "an instance is 16 hex digits");
	is_int(board->instance[16], 0, "and ends there");
	ok(ftruncate(board_fd, 10) < 0 && ftruncate(board_fd, 1 << 20) < 0, "nobody can change its size");
}

static void test_map(void)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_board *again = abx_board_map(board_fd, &err), *other;
	int small = memfd_create("small", MFD_CLOEXEC), other_fd = -1;

	ok(again && again != board, "it is mapped a second time");
	board->peer_uid = 4711;
	is_int(again ? again->peer_uid : 0, 4711, "both see the same");
	board->peer_uid = 0;
	ok(ftruncate(small, 100) == 0 && !abx_board_map(small, &err), "a board of another size is refused");
	is_int(err.kind, ABX_E_INTERNAL, "as an error of ours");
	close(small);
	ok(!abx_board_map(small, &err), "no descriptor, no board");
	is_int(err.os_errno, EBADF, "and the errno is told");
	other = abx_board_create(&other_fd, &err);
	ok(other && strcmp(other->instance, board->instance) != 0, "another server is another instance");
	munmap(other, sizeof(*other));
	close(other_fd);
	munmap(again, sizeof(*again));
}

static void test_admits(void)
{
	int pair[2], plain[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || pipe(plain) < 0)
		return;
	ok(!abx_board_admits(board, pair[0]), "a new board admits nobody");
	board->peer_uid = getuid();
	ok(!abx_board_admits(board, pair[0]), "the right user alone is not enough");
	board->any_peer = 1;
	ok(abx_board_admits(board, pair[0]), "unless every process of that user is admitted");
	board->peer_uid = getuid() + 1;
	ok(!abx_board_admits(board, pair[0]), "another user is not");
	board->any_peer = 0;
	for (int i = 0; i < ABX_BOARD_PEERS; i++) {
		atomic_store(&board->peers[i], getpid());
		ok(abx_board_admits(board, pair[0]), "a process whose pid is in place %d is admitted", i);
		atomic_store(&board->peers[i], getpid() + 1);
		ok(!abx_board_admits(board, pair[0]), "another pid is not");
		atomic_store(&board->peers[i], 0);
	}
	board->any_peer = 1;
	board->peer_uid = getuid();
	ok(!abx_board_admits(board, plain[0]), "what is no socket is not admitted");
	ok(!abx_board_admits(board, -1), "nor is nothing");
	board->any_peer = 0;
	close(pair[0]);
	close(pair[1]);
	close(plain[0]);
	close(plain[1]);
}

static void test_children(void)
{
	struct abx_board_child *children[ABX_BOARD_CHILDREN];
	bool whole = true, differ = true;

	for (size_t i = 0; i < ABX_BOARD_CHILDREN; i++) {
		children[i] = abx_board_child_begin(board);
		whole = whole && children[i] && atomic_load(&children[i]->owner) == getpid() && atomic_load(&children[i]->pid) == 0 &&
			strlen(children[i]->invocation) == 32 && strspn(children[i]->invocation, "0123456789abcdef") == 32 &&
			strncmp(children[i]->invocation, board->instance, 16) == 0;
		if (!whole)
			break;
		for (size_t j = 0; j < i; j++)
			differ = differ && children[i] != children[j] && strcmp(children[i]->invocation, children[j]->invocation) != 0;
	}
	if (!ok(whole, "every slot is handed out, with the owner and an id that begins with the instance"))
		return;
	ok(differ, "no slot and no id twice");
	ok(!abx_board_child_begin(board), "then there are no more");
	atomic_store(&children[7]->pid, 12);
	abx_board_child_end(children[7]);
	is_int(atomic_load(&children[7]->pid), 0, "an ended child has no pid");
	is_str(children[7]->invocation, "", "and no id");
	ok(abx_board_child_begin(board) == children[7], "its slot is the next one");
	for (size_t i = 0; i < ABX_BOARD_CHILDREN; i++)
		abx_board_child_end(children[i]);
}

static atomic_int taken[ABX_BOARD_CHILDREN];
static atomic_bool shared;

static void *take_and_give(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3000; i++) {
		struct abx_board_child *child = abx_board_child_begin(board);

		if (!child || atomic_fetch_add(&taken[child - board->children], 1) != 0)
			atomic_store(&shared, true);
		if (child) {
			atomic_fetch_sub(&taken[child - board->children], 1);
			abx_board_child_end(child);
		}
	}
	return NULL;
}

static void test_threads(void)
{
	struct abx_board_child *held[ABX_BOARD_CHILDREN];
	pthread_t threads[8];

	/* As few free slots as there are threads, so that they meet. */
	for (int i = 0; i < ABX_BOARD_CHILDREN - 8; i++)
		held[i] = abx_board_child_begin(board);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, take_and_give, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	ok(!atomic_load(&shared), "no two threads have one slot");
	for (int i = 0; i < ABX_BOARD_CHILDREN - 8; i++)
		abx_board_child_end(held[i]);
}

/* The board outlives its programs. */
static void test_dead_owner(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct abx_board_child *child = abx_board_child_begin(board);

		atomic_store(&child->pid, 123);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	int left = 0;
	for (int i = 0; i < ABX_BOARD_CHILDREN; i++) {
		if (atomic_load(&board->children[i].owner) != pid)
			continue;
		left++;
		is_int(atomic_load(&board->children[i].pid), 123, "what a dead program has left can be found");
		abx_board_child_end(&board->children[i]);
	}
	is_int(left, 1, "once");
}

int main(void)
{
	test_create();
	test_map();
	test_admits();
	test_children();
	test_threads();
	test_dead_owner();
	munmap(board, sizeof(*board));
	close(board_fd);
	return done_testing();
}
