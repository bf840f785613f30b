/*
 * Cleanup attributes and explicit stealing.
 *
 * A variable declared with one of these is released when it goes out of scope; initialise it where
 * it is declared. Never use goto in a function that declares one: the jump could skip the
 * initialisation (clang refuses that, gcc does not always).
 */
#ifndef ABX_AUTO_H
#define ABX_AUTO_H

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

/* Number of elements of an array. */
#define ABX_N(array) (sizeof(array) / sizeof((array)[0]))

#define ABX_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define ABX_UNUSED             __attribute__((unused))

static inline void abx_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void abx_cleanup_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void abx_cleanup_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define abx_auto_free __attribute__((cleanup(abx_cleanup_free)))
#define abx_auto_fd   __attribute__((cleanup(abx_cleanup_fd)))
#define abx_auto_dir  __attribute__((cleanup(abx_cleanup_dir)))

/* Take the value out of an auto variable, so that its scope no longer releases it. */
#define ABX_STEAL(ptr)                      \
	({                                  \
		__typeof__(ptr) abx_s_ = (ptr); \
		(ptr) = NULL;               \
		abx_s_;                     \
	})

static inline int abx_steal_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

#endif
