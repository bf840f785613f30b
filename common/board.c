#include "common/board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/clock.h"
#include "common/ids.h"

#define INSTANCE_DIGITS (sizeof(((struct abx_board *)0)->instance) - 1)
#define CHILD_DIGITS    (sizeof(((struct abx_board_child *)0)->invocation) - 1 - INSTANCE_DIGITS)

/* Invocation ids are compared as plain strings of their full length by everyone who reads the board. */
_Static_assert(CHILD_DIGITS == 16, "an invocation id is the instance and sixteen further digits");

static struct abx_board *board_mmap(int fd, struct abx_err *err)
{
	void *at = mmap(NULL, sizeof(struct abx_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		abx_err_errno(err, errno, "Cannot map the board");
		return NULL;
	}
	return at;
}

static int lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;
	int rc = pthread_mutexattr_init(&attributes);

	if (rc)
		return rc;
	rc = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (!rc)
		rc = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (!rc)
		rc = pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return rc;
}

struct abx_board *abx_board_create(int *ret_fd, struct abx_err *err)
{
	abx_auto_fd int fd = memfd_create("abx-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct abx_board *board;

	/* The size is sealed: a program that shrank the file would end all others with SIGBUS. */
	if (fd < 0 || ftruncate(fd, sizeof(struct abx_board)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		abx_err_errno(err, errno, "Cannot make the board");
		return NULL;
	}
	board = board_mmap(fd, err);
	if (!board)
		return NULL;
	int rc = lock_init(&board->vars.lock);
	if (rc) {
		munmap(board, sizeof(*board));
		abx_err_errno(err, rc, "Cannot make the board");
		return NULL;
	}
	board->started_at = abx_clock_real();
	board->started_ms = abx_clock_ms();
	abx_id_hex(board->instance, INSTANCE_DIGITS);
	*ret_fd = abx_steal_fd(&fd);
	return board;
}

struct abx_board *abx_board_map(int fd, struct abx_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		abx_err_errno(err, errno, "Cannot map the board");
		return NULL;
	}
	if (st.st_size != sizeof(struct abx_board)) {
		abx_err_set(err, ABX_E_INTERNAL, "The board has %lld bytes, %zu were expected: are all programs of one version?",
			    (long long)st.st_size, sizeof(struct abx_board));
		return NULL;
	}
	return board_mmap(fd, err);
}

bool abx_board_admits(const struct abx_board *board, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	/* A peer outside our pid namespace has pid 0: that is nobody whom abxd could have named. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof(peer))
		return false;
	for (size_t i = 0; peer.pid > 0 && i < ABX_BOARD_PEERS; i++) {
		if (atomic_load(&board->peers[i]) == peer.pid)
			return true;
	}
	return board->any_peer && peer.uid == board->peer_uid;
}

/*
 * Give the child its id. Whoever looks after us when we are dead kills by it, and the instance alone would mean every child of the server. So the first
 * character comes last: an id is there whole or not at all.
 */
static void child_name(struct abx_board_child *child, const char *instance)
{
	char id[sizeof(child->invocation)];

	memcpy(id, instance, INSTANCE_DIGITS);
	abx_id_hex(id + INSTANCE_DIGITS, CHILD_DIGITS);
	memcpy(child->invocation + 1, id + 1, sizeof(id) - 1);
	atomic_thread_fence(memory_order_seq_cst);
	child->invocation[0] = id[0];
}

struct abx_board_child *abx_board_child_begin(struct abx_board *board)
{
	static atomic_uint next;
	unsigned start = atomic_fetch_add(&next, 1);
	int32_t self = getpid();

	for (unsigned i = 0; i < ABX_BOARD_CHILDREN; i++) {
		struct abx_board_child *child = &board->children[(start + i) % ABX_BOARD_CHILDREN];
		int32_t free_slot = 0;

		if (atomic_load(&child->owner) || !atomic_compare_exchange_strong(&child->owner, &free_slot, self))
			continue;
		child_name(child, board->instance);
		return child;
	}
	return NULL;
}

void abx_board_child_end(struct abx_board_child *child)
{
	/* The owner goes last: whoever takes the slot next finds it empty. */
	atomic_store(&child->pid, 0);
	child->invocation[0] = '\0';
	atomic_thread_fence(memory_order_seq_cst);
	memset(child->invocation + 1, 0, sizeof(child->invocation) - 1);
	atomic_store(&child->owner, 0);
}

void abx_board_warn(struct abx_board *board, enum abx_group group, const char *text)
{
	struct abx_board_warnings *warnings = &board->warnings[group];
	uint32_t version = atomic_load(&warnings->version) | 1;
	size_t len = strlen(text);

	if (len >= sizeof(warnings->text)) {
		const char *end = memrchr(text, '\n', sizeof(warnings->text) - 1);

		len = end ? (size_t)(end - text) + 1 : 0;
	}
	atomic_store(&warnings->version, version);
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(warnings->text, text, len);
	warnings->text[len] = '\0';
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store(&warnings->version, version + 1);
}

void abx_board_warnings(const struct abx_board *board, enum abx_group group, char ret_text[ABX_BOARD_WARNINGS])
{
	const struct abx_board_warnings *warnings = &board->warnings[group];

	for (int i = 0; i < 100; i++) {
		uint32_t version = atomic_load(&warnings->version);

		memcpy(ret_text, warnings->text, ABX_BOARD_WARNINGS);
		atomic_thread_fence(memory_order_seq_cst);
		if (!(version & 1) && atomic_load(&warnings->version) == version)
			return;
	}
	*ret_text = '\0';
}
