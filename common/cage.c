#include "common/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/auto.h"
#include "common/landlock.h"

#define ADMIN   ABX_CAGE_NO_ADMIN
#define EXEC    ABX_CAGE_NO_EXEC
#define NETWORK ABX_CAGE_NO_NETWORK
#define URING   ABX_CAGE_NO_IO_URING
#define CUT     ABX_CAGE_NO_TRUNCATE

#define FAMILIES 64 /* of sockets; AF_MAX of today's kernels is below */

/* A system call and the flags under which it is refused. By name: a call that this libseccomp or architecture does not have is no danger here. */
struct refusal {
	const char *name;
	unsigned flags;
};

static const struct refusal refusals[] = {
	{ "execve", EXEC },
	{ "execveat", EXEC },
	/* io_uring does the work of other calls where no filter sees it. */
	{ "io_uring_setup", ADMIN | EXEC | NETWORK | URING },
	{ "io_uring_enter", ADMIN | EXEC | NETWORK | URING },
	{ "io_uring_register", ADMIN | EXEC | NETWORK | URING },
	/* Cutting files by their names, which Landlock did not know before version 3. */
	{ "truncate", CUT },
	{ "truncate64", CUT },
	/* Other processes: their memory and their descriptors. */
	{ "ptrace", ADMIN },
	{ "process_vm_readv", ADMIN },
	{ "process_vm_writev", ADMIN },
	{ "process_madvise", ADMIN },
	{ "pidfd_getfd", ADMIN },
	{ "kcmp", ADMIN },
	/* The tree of files. */
	{ "mount", ADMIN },
	{ "umount", ADMIN },
	{ "umount2", ADMIN },
	{ "mount_setattr", ADMIN },
	{ "move_mount", ADMIN },
	{ "open_tree", ADMIN },
	{ "fsopen", ADMIN },
	{ "fsconfig", ADMIN },
	{ "fsmount", ADMIN },
	{ "fspick", ADMIN },
	{ "pivot_root", ADMIN },
	{ "chroot", ADMIN },
	{ "open_by_handle_at", ADMIN },
	{ "swapon", ADMIN },
	{ "swapoff", ADMIN },
	{ "quotactl", ADMIN },
	{ "quotactl_fd", ADMIN },
	{ "fanotify_init", ADMIN },
	/* Namespaces. clone is refused by its flags, see below. */
	{ "unshare", ADMIN },
	{ "setns", ADMIN },
	/* The kernel. */
	{ "bpf", ADMIN },
	{ "perf_event_open", ADMIN },
	{ "userfaultfd", ADMIN },
	{ "init_module", ADMIN },
	{ "finit_module", ADMIN },
	{ "delete_module", ADMIN },
	{ "kexec_load", ADMIN },
	{ "kexec_file_load", ADMIN },
	{ "reboot", ADMIN },
	{ "syslog", ADMIN },
	{ "acct", ADMIN },
	{ "iopl", ADMIN },
	{ "ioperm", ADMIN },
	{ "modify_ldt", ADMIN },
	{ "lookup_dcookie", ADMIN },
	{ "nfsservctl", ADMIN },
	{ "vhangup", ADMIN },
	{ "sethostname", ADMIN },
	{ "setdomainname", ADMIN },
	{ "settimeofday", ADMIN },
	{ "clock_settime", ADMIN },
	{ "clock_adjtime", ADMIN },
	{ "adjtimex", ADMIN },
	{ "stime", ADMIN },
	/* Keys of the session. */
	{ "keyctl", ADMIN },
	{ "add_key", ADMIN },
	{ "request_key", ADMIN },
};

static const unsigned long new_namespaces[] = {
	CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP,
};

static void filter_release(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

/*
 * A rule compares each argument once, so where two families are let through the others are refused one by one. There are fewer than FAMILIES.
 * Returns 0 or a negative errno.
 */
static int filter_add_network(scmp_filter_ctx filter, unsigned flags)
{
	int rc;

	if (!(flags & ABX_CAGE_SOCK_DIAG))
		return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_CMP(0, SCMP_CMP_NE, AF_UNIX, 0));
	rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_CMP(0, SCMP_CMP_GE, FAMILIES, 0));
	for (unsigned family = 0; !rc && family < FAMILIES; family++)
		if (family != AF_UNIX && family != AF_NETLINK)
			rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_CMP(0, SCMP_CMP_EQ, family, 0));
	return rc ? rc : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 2, SCMP_CMP(0, SCMP_CMP_EQ, AF_NETLINK, 0),
					  SCMP_CMP(2, SCMP_CMP_NE, NETLINK_SOCK_DIAG, 0));
}

/* Opening a file only to read it cuts it all the same with O_TRUNC. The flags of openat2 are in memory. Returns 0 or a negative errno. */
static int filter_add_truncate(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(open), 1,
				  SCMP_CMP(1, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_TRUNC, O_RDONLY | O_TRUNC));

	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(openat), 1,
				      SCMP_CMP(2, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_TRUNC, O_RDONLY | O_TRUNC));
	return rc ? rc : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0);
}

/* Rules on arguments. Returns 0 or a negative errno. */
static int filter_add_arguments(scmp_filter_ctx filter, unsigned flags)
{
	int rc = 0;

	if (flags & NETWORK)
		rc = filter_add_network(filter, flags);
	if (!rc && (flags & CUT))
		rc = filter_add_truncate(filter);
	if (rc || !(flags & ADMIN))
		return rc;
	for (size_t i = 0; !rc && i < ABX_N(new_namespaces); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				      SCMP_CMP(0, SCMP_CMP_MASKED_EQ, new_namespaces[i], new_namespaces[i]));
	/* The flags of clone3 are in memory, out of a filter's sight. Without it the C library takes clone. */
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* Typing into the terminal that the server was started from. */
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
				      SCMP_CMP(1, SCMP_CMP_MASKED_EQ, 0xffffffffUL, TIOCSTI));
	return rc;
}

static int filter_fill(scmp_filter_ctx filter, unsigned flags)
{
	int rc;

	/* Calls of another architecture (32-bit programs) have other numbers: none of them is let through. */
	rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
	/* Else all failures of the kernel are told as ECANCELED. */
	if (!rc)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (!rc)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, flags & EXEC ? 1 : 0);
	for (size_t i = 0; !rc && i < ABX_N(refusals); i++) {
		int number = seccomp_syscall_resolve_name(refusals[i].name);

		if (number != __NR_SCMP_ERROR && (refusals[i].flags & flags))
			rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
	}
	return rc ? rc : filter_add_arguments(filter, flags);
}

int abx_cage_filter(unsigned flags, struct abx_err *err)
{
	__attribute__((cleanup(filter_release))) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int rc;

	if (!filter)
		return abx_err_set(err, ABX_E_INTERNAL, "Cannot make the system call filter");
	rc = filter_fill(filter, flags);
	if (!rc)
		rc = seccomp_load(filter);
	/* Only root may have a filter without no_new_privs. */
	if ((rc == -EACCES || rc == -EPERM) && !(flags & EXEC)) {
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 1);
		if (!rc)
			rc = seccomp_load(filter);
	}
	return rc ? abx_err_errno(err, -rc, "Cannot load the system call filter") : 0;
}

static char report[256];

/* Add a sentence to what the kernel lacks. */
static void add_report(const char *sentence)
{
	size_t len = strlen(report);

	snprintf(report + len, sizeof(report) - len, "%s%s", len ? ". " : "", sentence);
}

const char *abx_cage_report(void)
{
	return *report ? report : NULL;
}

int abx_cage_trees(const int *fds, size_t n, struct abx_err *err)
{
	abx_auto_free struct abx_landlock_tree *trees = calloc(n + 1, sizeof(*trees));
	int result;

	if (!trees)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	for (size_t i = 0; i < n; i++)
		trees[i] = (struct abx_landlock_tree){ .fd = fds[i], .writes = true };
	result = abx_landlock_enter(ABX_LANDLOCK_FILES, trees, n, err);
	if (result > 0)
		add_report("The kernel has no Landlock: this program's own checks alone keep it inside its directories");
	return result < 0 ? -1 : 0;
}

int abx_cage_enter(unsigned flags, struct abx_err *err)
{
	struct rlimit core;

	/* The soft limit alone: a child may raise it again for itself. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || getrlimit(RLIMIT_CORE, &core) < 0)
		return abx_err_errno(err, errno, "Cannot turn core files off");
	core.rlim_cur = 0;
	if (setrlimit(RLIMIT_CORE, &core) < 0)
		return abx_err_errno(err, errno, "Cannot turn core files off");
	if (!flags)
		return 0;
	if (prctl(PR_GET_SECCOMP) < 0 && errno == EINVAL) {
		add_report("The kernel has no seccomp: no system call is refused to this program");
		return 0;
	}
	return abx_cage_filter(flags, err);
}
