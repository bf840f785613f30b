/*
 * The least that starting a command can cost: posix_spawn and wait, in a loop. Prints the microseconds of each round, one a line.
 *
 *   spawn_loop ROUNDS PROGRAM [ARGUMENT…]
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 0, status;
	pid_t pid;

	for (int i = 0; i < rounds; i++) {
		double begin = now_us();

		if (posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		printf("%.1f\n", now_us() - begin);
	}
	return rounds ? 0 : 64;
}
