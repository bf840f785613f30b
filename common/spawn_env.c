#include "common/spawn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/auto.h"
#include "common/overrides.h"

/* Names are only ever added: what was a secret once stays one. */
static struct {
	pthread_mutex_t lock;
	char **names;
	size_t n;
} hidden = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_hidden(const char *name, size_t len)
{
	bool found = false;

	pthread_mutex_lock(&hidden.lock);
	for (size_t i = 0; i < hidden.n && !found; i++)
		found = strncmp(hidden.names[i], name, len) == 0 && !hidden.names[i][len];
	pthread_mutex_unlock(&hidden.lock);
	return found;
}

static int hide(const char *name)
{
	char **grown = realloc(hidden.names, (hidden.n + 1) * sizeof(*grown));

	if (!grown)
		return -1;
	hidden.names = grown;
	grown[hidden.n] = strdup(name);
	if (!grown[hidden.n])
		return -1;
	hidden.n++;
	return 0;
}

int abx_spawn_hide(char *const *names)
{
	int result = 0;

	for (; *names && result == 0; names++) {
		if (is_hidden(*names, strlen(*names)))
			continue;
		pthread_mutex_lock(&hidden.lock);
		result = hide(*names);
		pthread_mutex_unlock(&hidden.lock);
	}
	return result;
}

/* The server's own settings, its token among them, stop here whatever the base environment holds. */
bool abx_env_is_private(const char *name)
{
	return strncmp(name, "ABX_", 4) == 0 || is_hidden(name, strcspn(name, "="));
}

/* The index of the variable whose name are the first `len` bytes of `name`, or env->n. */
static size_t env_find(const struct abx_env *env, const char *name, size_t len)
{
	size_t i = 0;

	while (i < env->n && (strncmp(env->vars[i], name, len) != 0 || env->vars[i][len] != '='))
		i++;
	return i;
}

/* Put `var` ("NAME=value", taken over) in place `i`, which is there already or the next one. */
static int env_put(struct abx_env *env, size_t i, char *var)
{
	if (i < env->n) {
		free(env->vars[i]);
		env->vars[i] = var;
		return 0;
	}
	char **grown = realloc(env->vars, (env->n + 2) * sizeof(*grown));
	if (!grown) {
		free(var);
		return -1;
	}
	env->vars = grown;
	env->vars[env->n++] = var;
	env->vars[env->n] = NULL;
	return 0;
}

/* What POST /env has set, for every child of every group. */
static int add_overrides(struct abx_env *env)
{
	abx_auto_strbuf struct abx_strbuf vars = ABX_STRBUF_INIT;

	if (abx_overrides_read(abx_spawn_door.board, &vars) < 0)
		return -1;
	for (const char *var = vars.buf; var < vars.buf + vars.len; var += strlen(var) + 1) {
		char *copy = abx_env_is_private(var) ? NULL : strdup(var);

		if (!abx_env_is_private(var) && (!copy || env_put(env, env_find(env, var, strcspn(var, "=")), copy) < 0))
			return -1;
	}
	return 0;
}

int abx_env_init(struct abx_env *env)
{
	size_t n = 0;

	*env = (struct abx_env){ 0 };
	while (abx_spawn_door.env[n])
		n++;
	env->vars = calloc(n + 1, sizeof(*env->vars));
	if (!env->vars)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (abx_env_is_private(abx_spawn_door.env[i]))
			continue;
		env->vars[env->n] = strdup(abx_spawn_door.env[i]);
		if (!env->vars[env->n]) {
			abx_env_release(env);
			return -1;
		}
		env->n++;
	}
	if (add_overrides(env) == 0)
		return 0;
	abx_env_release(env);
	return -1;
}

int abx_env_set(struct abx_env *env, const char *name, const char *value)
{
	size_t name_len = strlen(name), value_size = strlen(value) + 1;
	char *var = malloc(name_len + 1 + value_size);

	if (!var)
		return -1;
	memcpy(var, name, name_len);
	var[name_len] = '=';
	memcpy(var + name_len + 1, value, value_size);
	return env_put(env, env_find(env, name, name_len), var);
}

const char *abx_env_get(const struct abx_env *env, const char *name)
{
	size_t len = strlen(name), i = env_find(env, name, len);

	return i < env->n ? env->vars[i] + len + 1 : NULL;
}

void abx_env_drop(struct abx_env *env, const char *prefix)
{
	size_t len = strlen(prefix), kept = 0;

	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(env->vars[i], prefix, len) == 0)
			free(env->vars[i]);
		else
			env->vars[kept++] = env->vars[i];
	}
	env->n = kept;
	if (env->vars)
		env->vars[kept] = NULL;
}

void abx_env_release(struct abx_env *env)
{
	for (size_t i = 0; i < env->n; i++)
		free(env->vars[i]);
	free(env->vars);
	*env = (struct abx_env){ 0 };
}

/* Whether `path`, relative to the child's directory, is a program; else its errno. */
static int program_check(int cwd_fd, const char *path)
{
	struct stat st;

	if (fstatat(cwd_fd, path, &st, 0) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(cwd_fd, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

int abx_env_find_program(const struct abx_env *env, int cwd_fd, const char *name, char **ret_path)
{
	const char *dir = abx_env_get(env, "PATH");
	size_t name_size = strlen(name) + 1, dir_len;
	int result = ENOENT;

	if (strchr(name, '/') || !*name) {
		*ret_path = strdup(name);
		return *ret_path ? 0 : ENOMEM;
	}
	for (dir = dir ? dir : "/bin:/usr/bin";; dir += dir_len + 1) {
		dir_len = strcspn(dir, ":");

		/* An empty entry is the child's directory. */
		abx_auto_free char *path = malloc(dir_len + 1 + name_size);
		if (!path)
			return ENOMEM;
		memcpy(path, dir, dir_len);
		path[dir_len] = '/';
		memcpy(path + dir_len + (dir_len > 0), name, name_size);

		int why = program_check(cwd_fd, path);
		if (!why) {
			*ret_path = ABX_STEAL(path);
			return 0;
		}
		if (result == ENOENT && why != ENOTDIR)
			result = why;
		if (!dir[dir_len])
			return result;
	}
}

char **abx_env_finish(const struct abx_env *env, const char *marker)
{
	char **vars = calloc(env->n + 2, sizeof(*vars));
	size_t n = 0;

	if (!vars)
		return NULL;
	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(env->vars[i], ABX_INVOCATION, strlen(ABX_INVOCATION)) != 0)
			vars[n++] = env->vars[i];
	}
	/* posix_spawn does not write to the strings. */
	memcpy(&vars[n], &marker, sizeof(marker));
	return vars;
}
