#include "handlers/dev_tools/git_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/strbuf.h"

/* Files that hold a path or a few. */
#define SMALL_FILE ((size_t)64 << 10)

/* As deep as git itself follows them. */
#define ALTERNATES_DEPTH 5
#define ALTERNATES_MAX   64

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

/* `path` itself when it is absolute, else from `dir`. To be freed. */
static char *join(const char *dir, const char *path)
{
	char *joined = NULL;

	if (*path == '/')
		return strdup(path);
	return asprintf(&joined, "%s/%s", dir, path) < 0 ? NULL : joined;
}

/* Resolve `path`, taken from `dir`. 1, or 0: nothing is there, or -1. */
static int look(const struct abx_roots *roots, const char *dir, const char *path, struct abx_path *ret_path,
		struct abx_err *err)
{
	abx_auto_free char *joined = join(dir, path);

	if (!joined)
		return out_of_memory(err);
	if (abx_path_resolve(roots, joined, ABX_PATH_MISSING, ret_path, err) < 0)
		return err->kind == ABX_E_NO_FILE ? 0 : -1;
	return ret_path->fd >= 0;
}

int git_inside(const struct abx_roots *roots, const char *dir, const char *name, char **ret_path, struct abx_err *err)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	int there = look(roots, dir, name, &path, err);

	if (there == 1)
		*ret_path = ABX_STEAL(path.resolved);
	return there;
}

/* The whole of a small regular file. */
static int read_small(const struct abx_path *path, struct abx_strbuf *out, struct abx_err *err)
{
	char chunk[4096];
	ssize_t n;

	if (!S_ISREG(path->st.st_mode))
		return abx_err_set(err, ABX_E_GIT, "Not a file: %s", path->resolved);
	abx_auto_fd int fd = abx_path_open(path, O_RDONLY, err);
	if (fd < 0)
		return -1;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		abx_strbuf_add(out, chunk, (size_t)n);
	if (n < 0)
		return abx_err_errno(err, errno, "Cannot read %s", path->resolved);
	if (out->failed || strlen(out->buf) != out->len)
		return abx_err_set(err, ABX_E_GIT, "Not a file of a repository: %s", path->resolved);
	return 0;
}

/* The directory that a file names behind `key`, taken from `dir`. */
static int follow(const struct abx_roots *roots, const struct abx_path *file, const char *key, const char *dir,
		  char **ret_dir, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX(SMALL_FILE);
	abx_auto_path struct abx_path target = ABX_PATH_INIT;
	int there;

	if (read_small(file, &text, err) < 0)
		return -1;
	while (text.len > 0 && strchr("\r\n", text.buf[text.len - 1]))
		abx_strbuf_truncate(&text, text.len - 1);
	if (strncmp(text.buf, key, strlen(key)) != 0 || text.len == strlen(key))
		return abx_err_set(err, ABX_E_GIT, "invalid gitfile format: %s", file->resolved);
	there = look(roots, dir, text.buf + strlen(key), &target, err);
	if (there < 0)
		return -1;
	if (!there || !S_ISDIR(target.st.st_mode))
		return abx_err_set(err, ABX_E_GIT, "not a git repository: %s", text.buf + strlen(key));
	*ret_dir = ABX_STEAL(target.resolved);
	return 0;
}

/* The repository of the work tree `dir`, if it has one: 1 and *ret_git_dir, else 0. */
static int git_dir_of(const struct abx_roots *roots, const char *dir, char **ret_git_dir, struct abx_err *err)
{
	abx_auto_path struct abx_path git = ABX_PATH_INIT, head = ABX_PATH_INIT;
	int there = look(roots, dir, ".git", &git, err);

	if (there <= 0)
		return there;
	if (S_ISREG(git.st.st_mode))
		return follow(roots, &git, "gitdir: ", dir, ret_git_dir, err) < 0 ? -1 : 1;
	if (!S_ISDIR(git.st.st_mode))
		return 0;
	/* As for git, a directory of this name without HEAD is no repository. */
	there = look(roots, git.resolved, "HEAD", &head, err);
	if (there == 1)
		*ret_git_dir = ABX_STEAL(git.resolved);
	return there;
}

static int common_dir_of(const struct abx_roots *roots, const char *git_dir, char **ret_common_dir, struct abx_err *err)
{
	abx_auto_path struct abx_path file = ABX_PATH_INIT;
	int there = look(roots, git_dir, "commondir", &file, err);

	if (there < 0)
		return -1;
	if (there)
		return follow(roots, &file, "", git_dir, ret_common_dir, err);
	*ret_common_dir = strdup(git_dir);
	return *ret_common_dir ? 0 : out_of_memory(err);
}

static bool is_inside(const struct abx_roots *roots, const char *dir)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_err unused = ABX_ERR_INIT;

	return abx_path_resolve(roots, dir, 0, &path, &unused) == 0;
}

/* Both are absolute and without links. */
static bool is_below(const char *tree, const char *path)
{
	size_t len = strlen(tree);

	return strncmp(tree, path, len) == 0 && (path[len] == '/' || !path[len]);
}

int git_find(const struct abx_roots *roots, const char *start, char **ret_work_tree, char **ret_git_dir,
	     char **ret_common_dir, struct abx_err *err)
{
	abx_auto_free char *dir = strdup(start), *git_dir = NULL;
	int there;

	if (!dir)
		return out_of_memory(err);
	while ((there = git_dir_of(roots, dir, &git_dir, err)) == 0) {
		char *slash = strrchr(dir, '/');

		if (slash > dir)
			*slash = '\0';
		else if (dir[1])
			dir[1] = '\0';
		else
			break;
		if (!is_inside(roots, dir))
			break;
	}
	if (there < 0)
		return -1;
	if (!there)
		return abx_err_set(err, ABX_E_GIT,
				   "not a git repository (nor any of the parent directories that are allowed): %s",
				   start);
	if (is_below(git_dir, start))
		return abx_err_set(err, ABX_E_GIT, "this operation must be run in a work tree: %s", start);
	if (common_dir_of(roots, git_dir, ret_common_dir, err) < 0)
		return -1;
	*ret_work_tree = ABX_STEAL(dir);
	*ret_git_dir = ABX_STEAL(git_dir);
	return 0;
}

static int check_alternates(const struct abx_roots *roots, const char *objects, int depth, int *left,
			    struct abx_err *err);

/* One object directory that another one names. */
static int check_alternate(const struct abx_roots *roots, const char *objects, const char *named, int depth, int *left,
			   struct abx_err *err)
{
	abx_auto_free char *path = NULL;
	int there;

	if (--*left < 0)
		return abx_err_set(err, ABX_E_GIT, "too many alternates");
	there = git_inside(roots, objects, named, &path, err);
	return there == 1 ? check_alternates(roots, path, depth + 1, left, err) : there;
}

/* git reads objects also from the directories that are listed in a file, and so on. */
static int check_alternates(const struct abx_roots *roots, const char *objects, int depth, int *left,
			    struct abx_err *err)
{
	abx_auto_path struct abx_path file = ABX_PATH_INIT;
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX(SMALL_FILE);
	char *save = NULL;
	int there = look(roots, objects, "info/alternates", &file, err);

	if (there <= 0 || depth > ALTERNATES_DEPTH)
		return there < 0 ? -1 : 0;
	if (read_small(&file, &text, err) < 0)
		return -1;
	/* A quoted name has escapes that we do not follow git in. */
	if (strchr(text.buf, '"'))
		return abx_err_set(err, ABX_E_GIT, "alternates with quoted names are not supported: %s", file.resolved);
	for (char *line = strtok_r(text.buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (*line != '#' && check_alternate(roots, objects, line, depth, left, err) < 0)
			return -1;
	return 0;
}

/* The parts of a split index lie beside it; git follows a link in the place of one. */
static int check_shared_indexes(const struct abx_roots *roots, const char *git_dir, struct abx_err *err)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct dirent *entry;
	int fd;

	if (abx_path_resolve(roots, git_dir, 0, &path, err) < 0)
		return -1;
	fd = abx_path_open(&path, O_RDONLY | O_DIRECTORY, err);
	if (fd < 0)
		return -1;
	abx_auto_dir DIR *names = fdopendir(fd);
	if (!names) {
		close(fd);
		return out_of_memory(err);
	}
	while ((entry = readdir(names))) {
		abx_auto_free char *resolved = NULL;

		if (strncmp(entry->d_name, "sharedindex.", 12) == 0 &&
		    git_inside(roots, git_dir, entry->d_name, &resolved, err) < 0)
			return -1;
	}
	return 0;
}

int git_check_inside(const struct abx_roots *roots, const char *git_dir, const char *common_dir, struct abx_err *err)
{
	static const char *const own[] = { "HEAD", "index" };
	static const char *const common[] = { "config",       "packed-refs",     "refs",   "refs/heads", "info",
					      "info/exclude", "info/attributes", "shallow" };
	abx_auto_free char *objects = NULL;
	int left = ALTERNATES_MAX;

	for (size_t i = 0; i < ABX_N(own); i++) {
		abx_auto_free char *path = NULL;

		if (git_inside(roots, git_dir, own[i], &path, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < ABX_N(common); i++) {
		abx_auto_free char *path = NULL;

		if (git_inside(roots, common_dir, common[i], &path, err) < 0)
			return -1;
	}
	if (check_shared_indexes(roots, git_dir, err) < 0)
		return -1;
	switch (git_inside(roots, common_dir, "objects", &objects, err)) {
	case 0:
		return abx_err_set(err, ABX_E_GIT, "not a git repository: %s has no objects", common_dir);
	case 1:
		return check_alternates(roots, objects, 0, &left, err);
	default:
		return -1;
	}
}
