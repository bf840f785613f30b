#include "handlers/exec/exec.h"

#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Names of processes are hidden by what tracing would be allowed, as of Linux 5.8; older ones refuse the option. */
#define PROC_OPTIONS "hidepid=ptraceable"

static const int kept[] = {
	CAP_AUDIT_WRITE, CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL,      CAP_NET_BIND_SERVICE,
	CAP_NET_RAW,     CAP_SETFCAP, CAP_SETGID,       CAP_SETPCAP, CAP_SETUID, CAP_SYS_CHROOT,
};

static int set_limit(__rlimit_resource_t resource, const char *name, uint64_t value, struct abx_err *err)
{
	struct rlimit limit = { .rlim_cur = value, .rlim_max = value }, now;

	if (!value)
		return 0;
	/* A limit that is lower already is kept. */
	if (getrlimit(resource, &now) == 0 && now.rlim_max < value)
		limit.rlim_cur = limit.rlim_max = now.rlim_max;
	return setrlimit(resource, &limit) < 0 ? abx_err_errno(err, errno, "The limit of %s", name) : 0;
}

int exec_limit(const struct exec_options *options, struct abx_err *err)
{
	if (options->processes && (getuid() == 0 || geteuid() == 0))
		return abx_err_set(err, ABX_E_INTERNAL, "The kernel does not limit root's processes");
	if (set_limit(RLIMIT_DATA, "memory", options->memory, err) < 0 ||
	    set_limit(RLIMIT_NPROC, "processes", options->processes, err) < 0)
		return -1;
	return set_limit(RLIMIT_CPU, "CPU time", options->cpu, err);
}

/* Best effort: a program that talks to itself by the loopback finds it. */
static void raise_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
		request.ifr_flags |= IFF_UP;
		ioctl(fd, SIOCSIFFLAGS, &request);
	}
	close(fd);
}

int exec_leave_network(bool *ret_done, struct abx_err *err)
{
	if (unshare(CLONE_NEWNET) == 0) {
		raise_loopback();
		*ret_done = true;
		return 0;
	}
	/* A kernel without the namespaces says EINVAL. */
	if (errno != EPERM && errno != EINVAL)
		return abx_err_errno(err, errno, "A network namespace");
	*ret_done = false;
	return 0;
}

int exec_own_proc(struct abx_err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return errno == EPERM || errno == EINVAL ? 0 : abx_err_errno(err, errno, "A mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return abx_err_errno(err, errno, "A mount namespace");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, PROC_OPTIONS) < 0 && errno != EPERM && errno != EINVAL)
		return abx_err_errno(err, errno, "/proc");
	return 0;
}

static bool is_kept(int capability)
{
	for (size_t i = 0; i < ABX_N(kept); i++)
		if (kept[i] == capability)
			return true;
	return false;
}

int exec_drop_capabilities(struct abx_err *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	/* Root's next program gets what is in the bounding set; other users' get nothing, since they have no_new_privs. */
	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		if (!is_kept(c) && prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1 && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0 && geteuid() == 0)
			return abx_err_errno(err, errno, "Capability %d", c);
	/* What would be handed on all the same. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return abx_err_errno(err, errno, "Capabilities");
	if (syscall(SYS_capget, &header, sets) < 0)
		return abx_err_errno(err, errno, "Capabilities");
	for (size_t i = 0; i < ABX_N(sets); i++)
		sets[i].inheritable = 0;
	return syscall(SYS_capset, &header, sets) < 0 ? abx_err_errno(err, errno, "Capabilities") : 0;
}
