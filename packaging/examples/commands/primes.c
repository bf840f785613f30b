/*
 * Native commands: POST /commands/is_prime {"number": 97}, POST /commands/primes {"limit": 100}. Build with
 *
 *     cc -shared -fPIC -O2 -o primes.so primes.c
 *
 * and put primes.so into the directory of commands. The header tells all about them.
 */
#include <abx/command.h>
#include <stdio.h>
#include <stdlib.h>

static int is_prime(int64_t number)
{
	for (int64_t divisor = 2; divisor <= number / divisor; divisor++)
		if (number % divisor == 0)
			return 0;
	return number > 1;
}

static int run_is_prime(struct abx_call *call)
{
	return abx_call_return_json(call, is_prime(abx_call_integer(call, "number", 0)) ? "true" : "false", -1);
}

/* A list may become long: it grows in memory of our own, and the result is a copy. */
static int run_primes(struct abx_call *call)
{
	int64_t limit = abx_call_integer(call, "limit", 0);
	size_t len = 0, size = 4096;
	char *list;
	int result;

	if (limit > 10000000)
		return abx_call_fail(call, "ValueError", "limit: must be 10000000 at most");
	list = malloc(size);
	if (!list)
		return abx_call_fail(call, "MemoryError", "out of memory");
	list[len++] = '[';
	for (int64_t number = 2; number <= limit; number++) {
		/* Nobody may be waiting any more. */
		if (number % 4096 == 0 && abx_call_cancelled(call))
			break;
		if (!is_prime(number))
			continue;
		if (size - len < 32) {
			char *grown = realloc(list, size * 2);

			if (!grown) {
				free(list);
				return abx_call_fail(call, "MemoryError", "out of memory");
			}
			list = grown;
			size *= 2;
		}
		len += (size_t)sprintf(list + len, "%s%lld", len > 1 ? ", " : "", (long long)number);
	}
	list[len++] = ']';
	result = abx_call_return_json(call, list, (ptrdiff_t)len);
	free(list);
	return result;
}

static const struct abx_command_arg is_prime_args[] = {
	{ "number", "integer", 1, NULL, "The number to look at." },
};

static const struct abx_command_arg primes_args[] = {
	{ "limit", "integer", 0, "100", "The largest number to look at." },
};

static const struct abx_command_def commands[] = {
	{ "is_prime", "Whether a number is a prime.", is_prime_args, 1, NULL, 0, 0, run_is_prime, NULL },
	{ "primes", "The primes up to a limit.", primes_args, 1, NULL, 0, 10, run_primes, NULL },
};

static const struct abx_command_module module = ABX_COMMAND_MODULE(commands, 2, NULL);

ABX_COMMAND_EXPORT const struct abx_command_module *abx_command_entry(void)
{
	return &module;
}
