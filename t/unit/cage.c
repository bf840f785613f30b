#include "common/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/tap.h"

#define ADMIN   ABX_CAGE_NO_ADMIN
#define EXEC    ABX_CAGE_NO_EXEC
#define NETWORK ABX_CAGE_NO_NETWORK
#define ALL     (ADMIN | EXEC | NETWORK)

/* Each with arguments that do no harm where the call is let through. */
#define CALL(flags, name, ...) { flags, #name, SYS_##name, { __VA_ARGS__ } }
#define BAD                    -1, -1, -1, -1, -1

static const struct {
	unsigned flags;
	const char *name;
	long number, args[5];
} refused[] = {
	CALL(EXEC, execve, 0, 0, 0, 0, 0),
	CALL(EXEC, execveat, BAD),
	CALL(NETWORK, socket, AF_INET, SOCK_STREAM, 0),
	CALL(NETWORK, socket, AF_INET6, SOCK_DGRAM, 0),
	CALL(NETWORK, socket, AF_NETLINK, SOCK_RAW, 0),
	CALL(NETWORK, socket, 0, 0, 0),
	CALL(ADMIN, io_uring_setup, BAD),
	CALL(EXEC, io_uring_setup, BAD),
	CALL(NETWORK, io_uring_setup, BAD),
	CALL(ABX_CAGE_NO_IO_URING, io_uring_setup, BAD),
	CALL(ABX_CAGE_NO_IO_URING, io_uring_enter, BAD),
	CALL(ADMIN, io_uring_enter, BAD),
	CALL(ADMIN, io_uring_register, BAD),
	CALL(ADMIN, ptrace, BAD),
	CALL(ADMIN, process_vm_readv, BAD),
	CALL(ADMIN, process_vm_writev, BAD),
	CALL(ADMIN, process_madvise, BAD),
	CALL(ADMIN, pidfd_getfd, BAD),
	CALL(ADMIN, kcmp, BAD),
	CALL(ADMIN, mount, BAD),
	CALL(ADMIN, umount2, BAD),
	CALL(ADMIN, mount_setattr, BAD),
	CALL(ADMIN, move_mount, BAD),
	CALL(ADMIN, open_tree, BAD),
	CALL(ADMIN, fsopen, BAD),
	CALL(ADMIN, fsconfig, BAD),
	CALL(ADMIN, fsmount, BAD),
	CALL(ADMIN, fspick, BAD),
	CALL(ADMIN, pivot_root, BAD),
	CALL(ADMIN, chroot, BAD),
	CALL(ADMIN, open_by_handle_at, BAD),
	CALL(ADMIN, swapon, BAD),
	CALL(ADMIN, swapoff, BAD),
	CALL(ADMIN, quotactl, BAD),
	CALL(ADMIN, fanotify_init, BAD),
	CALL(ADMIN, unshare, 0),
	CALL(ADMIN, unshare, CLONE_NEWUSER),
	CALL(ADMIN, setns, BAD),
	CALL(ADMIN, clone, CLONE_NEWUSER | CLONE_NEWNET),
	CALL(ADMIN, clone, CLONE_NEWUSER | SIGCHLD),
	CALL(ADMIN, clone, CLONE_NEWNS | SIGCHLD),
	CALL(ADMIN, bpf, BAD),
	CALL(ADMIN, perf_event_open, BAD),
	CALL(ADMIN, userfaultfd, BAD),
	CALL(ADMIN, init_module, BAD),
	CALL(ADMIN, finit_module, BAD),
	CALL(ADMIN, delete_module, BAD),
	CALL(ADMIN, kexec_load, BAD),
	CALL(ADMIN, reboot, BAD),
	CALL(ADMIN, syslog, BAD),
	CALL(ADMIN, acct, BAD),
	CALL(ADMIN, vhangup, 0),
	CALL(ADMIN, sethostname, 0, -1),
	CALL(ADMIN, setdomainname, 0, -1),
	CALL(ADMIN, settimeofday, BAD),
	CALL(ADMIN, clock_settime, BAD),
	CALL(ADMIN, clock_adjtime, BAD),
	CALL(ADMIN, adjtimex, BAD),
	CALL(ADMIN, ioctl, -1, TIOCSTI, 0),
	CALL(ADMIN, keyctl, BAD),
	CALL(ADMIN, add_key, BAD),
	CALL(ADMIN, request_key, BAD),
#ifdef SYS_kexec_file_load
	CALL(ADMIN, kexec_file_load, BAD),
#endif
#ifdef SYS_iopl
	CALL(ADMIN, iopl, BAD),
	CALL(ADMIN, ioperm, BAD),
	CALL(ADMIN, modify_ldt, BAD),
#endif
};

/* Run `body` in a child of its own, in a session of its own, and return its exit status (200: killed). */
static int in_child(int (*body)(const void *), const void *arg)
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		_exit(body(arg));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

/* The errno of a call inside the cage, 0 when it worked, 201 when there is no cage. */
static int call_refused(const void *arg)
{
	size_t i = *(const size_t *)arg;
	const long *a = refused[i].args;
	struct abx_err err;

	if (abx_cage_enter(refused[i].flags, &err) < 0)
		return 201;
	long rc = syscall(refused[i].number, a[0], a[1], a[2], a[3], a[4]);
	if (rc == 0 && refused[i].number == SYS_clone)
		_exit(202);
	return rc < 0 ? errno : 0;
}

static void test_refused(void)
{
	for (size_t i = 0; i < ABX_N(refused); i++)
		is_int(in_child(call_refused, &i), EPERM, "%s is refused under flags %u", refused[i].name, refused[i].flags);
}

/* A row of the table under all flags but its own: the filter is about that flag. */
static int call_let_through(const void *arg)
{
	size_t i = *(const size_t *)arg;
	struct abx_err err;

	if (abx_cage_enter(ALL & ~refused[i].flags, &err) < 0)
		return 201;
	const long *a = refused[i].args;
	return syscall(refused[i].number, a[0], a[1], a[2], a[3], a[4]) < 0 ? errno : 0;
}

static void test_let_through(void)
{
	static const size_t harmless[] = { 0, 1, 2 };

	for (size_t i = 0; i < ABX_N(harmless); i++) {
		int got = in_child(call_let_through, &harmless[i]);

		ok(got != EPERM && got < 200, "%s is let through without its flag (%d)", refused[harmless[i]].name, got);
	}
}

static int dumpable(const void *arg)
{
	struct rlimit core;
	struct abx_err err;

	(void)arg;
	prctl(PR_SET_DUMPABLE, 1);
	if (abx_cage_enter(0, &err) < 0)
		return 201;
	getrlimit(RLIMIT_CORE, &core);
	return prctl(PR_GET_DUMPABLE) != 0 || core.rlim_cur != 0 || prctl(PR_GET_SECCOMP) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0;
}

static int new_privs(const void *arg)
{
	struct abx_err err;

	if (abx_cage_enter(*(const unsigned *)arg, &err) < 0)
		return 201;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 1 : 0;
}

static void *nothing(void *arg)
{
	return arg;
}

/* What a responder does all day. */
static int daily_work(const void *arg)
{
	unsigned flags = *(const unsigned *)arg;
	int pair[2], status = 0, fd;
	struct abx_err err;
	pthread_t thread;

	if (abx_cage_enter(flags, &err) < 0)
		return 201;
	if (abx_cage_report())
		return 1;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return 2;
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		return 3;
	close(fd);
	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		return 4;
	fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TIOCGWINSZ, NULL) == 0 || errno == EPERM)
		return 5;
	close(fd);
	pid_t pid = fork();
	if (pid == 0)
		_exit(7);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		return 6;
	if (flags & ABX_CAGE_NO_EXEC)
		return 0;
	char *argv[] = { (char[]){ "true" }, NULL }, *env[] = { NULL };
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env) || waitpid(pid, &status, 0) != pid || status)
		return 8;
	return 0;
}

/* As nobody, who has to give up new privileges to get a filter. */
static int as_nobody(const void *arg)
{
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 203;
	return daily_work(arg);
}

/* A child inherits the filter. */
static int inherited(const void *arg)
{
	int status;
	struct abx_err err;

	(void)arg;
	if (abx_cage_enter(NETWORK, &err) < 0)
		return 201;
	pid_t pid = fork();
	if (pid == 0)
		_exit(socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

static int try_socket(int family, int protocol)
{
	int fd = socket(family, SOCK_RAW, protocol);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? errno : 0;
}

/* The table of sockets can be asked for, and nothing else of the network. Returns 0, or the number of the check that failed. */
static int only_sock_diag(const void *arg)
{
	struct abx_err err;
	int pair[2];

	(void)arg;
	if (abx_cage_enter(NETWORK | ABX_CAGE_SOCK_DIAG, &err) < 0)
		return 201;
	for (int family = 0; family < 80; family++)
		if (family != AF_UNIX && family != AF_NETLINK && try_socket(family, 0) != EPERM)
			return 1;
	if (try_socket(-1, 0) != EPERM || syscall(SYS_socket, 0x100000000UL | AF_INET, SOCK_STREAM, 0) >= 0)
		return 2;
	if (try_socket(AF_NETLINK, NETLINK_ROUTE) != EPERM || try_socket(AF_NETLINK, NETLINK_AUDIT) != EPERM)
		return 3;
	if (try_socket(AF_NETLINK, NETLINK_SOCK_DIAG) == EPERM)
		return 4;
	return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ? 5 : 0;
}

/* Files are cut where they are written, and nowhere else. Returns 0, or the number of the check that failed. */
static int no_truncate(const void *arg)
{
	char path[] = "/tmp/abx-cage-XXXXXX";
	int fd = mkstemp(path), other, failed = 0;
	struct abx_err err;

	(void)arg;
	if (fd < 0 || write(fd, "text", 4) != 4 || abx_cage_filter(ABX_CAGE_NO_TRUNCATE, &err) < 0)
		return 201;
	if (truncate(path, 0) == 0 || errno != EPERM)
		failed = 1;
	other = open(path, O_RDONLY | O_TRUNC | O_CLOEXEC);
	if (!failed && (other >= 0 || errno != EACCES))
		failed = 2;
	if (!failed && (syscall(SYS_openat2, AT_FDCWD, path, NULL, 0) >= 0 || errno != ENOSYS))
		failed = 3;
	if (!failed && lseek(fd, 0, SEEK_END) != 4)
		failed = 4;
	other = open(path, O_RDONLY | O_CLOEXEC);
	if (!failed && other < 0)
		failed = 5;
	close(other);
	if (!failed && ftruncate(fd, 2) < 0)
		failed = 6;
	other = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
	if (!failed && (other < 0 || lseek(fd, 0, SEEK_END) != 0))
		failed = 7;
	unlink(path);
	return failed;
}

static void test_state(void)
{
	static const unsigned none = 0, exec = EXEC, admin = ADMIN | NETWORK, all = ALL;

	is_int(in_child(dumpable, NULL), 0, "no core files, and without flags no filter");
	is_int(in_child(new_privs, &exec), 1, "without exec no new privileges either");
	if (geteuid() == 0)
		is_int(in_child(new_privs, &admin), 0, "with exec they stay");
	is_int(in_child(daily_work, &none), 0, "daily work without flags");
	is_int(in_child(daily_work, &admin), 0, "daily work without network and administration");
	is_int(in_child(daily_work, &all), 0, "daily work under all flags");
	is_int(in_child(inherited, NULL), EPERM, "children inherit the filter");
	is_int(in_child(only_sock_diag, NULL), 0, "with the table of sockets let through, nothing else of the network is");
	is_int(in_child(no_truncate, NULL), 0, "a filter stands in for what Landlock before version 3 does not know of cutting files");
	if (geteuid() == 0) {
		is_int(in_child(as_nobody, &admin), 0, "an ordinary user can have the filter as well");
		is_int(in_child(as_nobody, &all), 0, "under all flags, too");
	}
}

int main(void)
{
	test_refused();
	test_let_through();
	test_state();
	return done_testing();
}
