#include "common/landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
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

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE                                                                                                           \
	(READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |        \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                     \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER |                        \
	 LANDLOCK_ACCESS_FS_TRUNCATE)

/* What each version of the interface can restrict: all of it is. */
static uint64_t known_rights(long version)
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

static int refused(struct abx_err *err)
{
	return abx_err_errno(err, errno, "Cannot set Landlock up");
}

int abx_landlock_enter(const struct abx_landlock_tree *trees, size_t n, struct abx_err *err)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr rules = { .handled_access_fs = known_rights(version) };
	abx_auto_fd int fd = -1;

	if (version < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
		return 1;
	if (version < 0)
		return refused(err);
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	if (fd < 0)
		return refused(err);
	for (size_t i = 0; i < n; i++) {
		struct landlock_path_beneath_attr tree = {
			.allowed_access = (trees[i].writes ? WRITE : READ) & rules.handled_access_fs,
			.parent_fd = trees[i].fd,
		};

		if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &tree, 0) < 0)
			return refused(err);
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return refused(err);
	return 0;
}
