/*
 * Run a program on a kernel that seems to refuse some system calls: no_call ERRNO CALL… -- PROGRAM [ARGUMENT…]. ERRNO is a number: 38 for a
 * kernel that lacks them, 1 for one that does not permit them.
 */
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int at = 2;

	for (; filter && at < argc && strcmp(argv[at], "--") != 0; at++) {
		int number = seccomp_syscall_resolve_name(argv[at]);

		if (number == __NR_SCMP_ERROR || seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)atoi(argv[1])), number, 0)) {
			fprintf(stderr, "no_call: %s\n", argv[at]);
			return 126;
		}
	}
	if (at + 1 >= argc || !filter || seccomp_load(filter)) {
		fputs("no_call: no filter\n", stderr);
		return 126;
	}
	execvp(argv[at + 1], argv + at + 1);
	perror(argv[at + 1]);
	return 127;
}
