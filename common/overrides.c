#include "common/overrides.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/spawn.h"

/*
 * One string of an argument list or environment, its NUL included, has room in so many pages (MAX_ARG_STRLEN,
 * execve(2)).
 */
#define STRING_PAGES 32

/* Every start of a child looks each of them up. */
#define VARIABLES_MAX 1024

static void overrides_lock(struct abx_board_vars *vars)
{
	/* Whoever died with the lock had not put its text in force yet. */
	if (pthread_mutex_lock(&vars->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&vars->lock);
}

int abx_overrides_read(struct abx_board *board, struct abx_strbuf *out)
{
	struct abx_board_vars *vars = &board->vars;

	overrides_lock(vars);
	abx_strbuf_add(out, vars->texts[vars->current & 1].vars, vars->texts[vars->current & 1].len);
	pthread_mutex_unlock(&vars->lock);
	return out->failed ? -1 : 0;
}

/* The variable of the same name as `var` among `vars`, or NULL. */
static const char *find_name(const char *vars, size_t len, const char *var)
{
	size_t name_len = strcspn(var, "=") + 1;

	for (const char *at = vars; at < vars + len; at += strlen(at) + 1)
		if (strncmp(at, var, name_len) == 0)
			return at;
	return NULL;
}

/* Arguments and environment share this room, and half of it stays the arguments'. */
static size_t room_of_all(void)
{
	long all = sysconf(_SC_ARG_MAX);

	return all > 0 && (size_t)all / 2 < ABX_BOARD_VARS ? (size_t)all / 2 : ABX_BOARD_VARS;
}

static size_t count(const char *vars, size_t len)
{
	size_t n = 0;

	for (const char *at = vars; at < vars + len; at += strlen(at) + 1)
		n++;
	return n;
}

static int check_new(const char *vars, size_t len, struct abx_err *err)
{
	size_t max = (size_t)sysconf(_SC_PAGESIZE) * STRING_PAGES;

	if (count(vars, len) > VARIABLES_MAX)
		return abx_err_set(err, ABX_E_TOO_LARGE, "There would be more than %d variables", VARIABLES_MAX);
	for (const char *at = vars; at < vars + len; at += strlen(at) + 1) {
		size_t size = strlen(at) + 1;

		if (size > max)
			return abx_err_set(err, ABX_E_TOO_LARGE,
					   "The variable '%.*s' has %zu bytes with its name; the system takes %zu",
					   (int)strcspn(at, "="), at, size - 1, max - 1);
	}
	return 0;
}

/* Those of `old` that have no successor in `vars`, and then `vars`. */
static int merge(const char *old, size_t old_len, const char *vars, size_t len, struct abx_strbuf *out,
		 struct abx_err *err)
{
	for (const char *at = old; at < old + old_len; at += strlen(at) + 1)
		if (!find_name(vars, len, at))
			abx_strbuf_add(out, at, strlen(at) + 1);
	abx_strbuf_add(out, vars, len);
	if (out->failed)
		return abx_err_set(err, ABX_E_TOO_LARGE, "All variables together would take more than %zu bytes",
				   out->max);
	if (count(out->buf, out->len) > VARIABLES_MAX)
		return abx_err_set(err, ABX_E_TOO_LARGE, "There would be more than %d variables", VARIABLES_MAX);
	return 0;
}

int abx_overrides_set(struct abx_board *board, const char *vars, size_t len, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf merged = ABX_STRBUF_INIT_MAX(room_of_all());
	struct abx_board_vars *shared = &board->vars;
	unsigned now, next;
	int result;

	if (check_new(vars, len, err) < 0)
		return -1;
	overrides_lock(shared);
	now = shared->current & 1;
	next = now ^ 1;
	result = merge(shared->texts[now].vars, shared->texts[now].len, vars, len, &merged, err);
	if (result == 0) {
		memcpy(shared->texts[next].vars, merged.buf, merged.len);
		shared->texts[next].len = (uint32_t)merged.len;
		shared->current = next;
	}
	pthread_mutex_unlock(&shared->lock);
	return result;
}
