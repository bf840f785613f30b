#include "common/landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/auto.h"

/* Rights that are younger than the headers that this may be compiled with. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#define NET_BIND_TCP    (1ULL << 0)
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT  (1ULL << 0)
#define SCOPE_SIGNAL    (1ULL << 1)

/* struct landlock_ruleset_attr as of version 6. An older kernel takes it where what it does not know is zero. */
struct ruleset {
	uint64_t files, net, scoped;
};

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE                                                                                                           \
	(READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |        \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                     \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER |                        \
	 LANDLOCK_ACCESS_FS_TRUNCATE)

/* What makes sense for something that is no directory. A device that may be written may be asked things, too. */
#define OF_A_FILE                                                                                                       \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |                    \
	 LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV)

int abx_landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}

/* What each version of the interface can restrict: all of it is. */
static uint64_t known_rights(int version)
{
	uint64_t rights = LANDLOCK_ACCESS_FS_REFER - 1;

	if (version >= 2)
		rights |= LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (version >= 5)
		rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return rights;
}

static struct ruleset ruleset_for(unsigned flags, int version)
{
	struct ruleset rules = { 0 };

	if (flags & ABX_LANDLOCK_FILES)
		rules.files = known_rights(version);
	if ((flags & ABX_LANDLOCK_NO_TCP) && version >= 4)
		rules.net = NET_BIND_TCP | NET_CONNECT_TCP;
	if ((flags & ABX_LANDLOCK_SCOPE) && version >= 6)
		rules.scoped = SCOPE_ABSTRACT | SCOPE_SIGNAL;
	return rules;
}

static int refused(struct abx_err *err)
{
	return abx_err_errno(err, errno, "Cannot set Landlock up");
}

static int add_tree(int ruleset_fd, const struct ruleset *rules, const struct abx_landlock_tree *tree)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = tree->writes ? WRITE : READ, .parent_fd = tree->fd };
	struct stat st;

	if (fstat(tree->fd, &st) < 0)
		return -1;
	if (tree->runs)
		rule.allowed_access |= LANDLOCK_ACCESS_FS_EXECUTE;
	if (tree->writes && S_ISCHR(st.st_mode))
		rule.allowed_access |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_A_FILE;
	rule.allowed_access &= rules->files;
	return (int)syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

int abx_landlock_enter(unsigned flags, const struct abx_landlock_tree *trees, size_t n, struct abx_err *err)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset rules = ruleset_for(flags, (int)version);
	abx_auto_fd int fd = -1;

	if (version < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
		return 1;
	if (version < 0)
		return refused(err);
	/* Nothing of what was asked for is known: the kernel takes no empty set. */
	if (!rules.files && !rules.net && !rules.scoped)
		return 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	if (fd < 0)
		return refused(err);
	for (size_t i = 0; i < n; i++)
		if (add_tree(fd, &rules, &trees[i]) < 0)
			return refused(err);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return refused(err);
	return 0;
}
