/* Print the descriptors that this program was started with, one a line: the number, and what it is. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void)
{
	char link[32], target[PATH_MAX];
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = 0; (rlim_t)fd < limit.rlim_cur; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(link, target, sizeof(target));
		printf("%d %.*s\n", fd, (int)(n > 0 ? n : 0), target);
	}
	return 0;
}
