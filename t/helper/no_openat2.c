/*
 * Run a program on a kernel that seems to lack openat2(2): no_openat2 PROGRAM [ARGUMENT…]. So the same tests can be run against
 * what replaces it.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (argc < 2 || !filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0) || seccomp_load(filter)) {
		fputs("no_openat2: no filter\n", stderr);
		return 126;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
