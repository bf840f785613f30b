#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/commands/custom.h"

static bool ends_in(const char *name, const char *const *endings)
{
	size_t len = strlen(name);

	for (; *endings; endings++) {
		size_t ending_len = strlen(*endings);

		if (len > ending_len && strcmp(name + len - ending_len, *endings) == 0)
			return true;
	}
	return false;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add(char ***files, const char *dir, const char *name)
{
	abx_auto_free char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return -1;
	}
	return abx_list_add(files, path);
}

int command_files(const char *dir, const char *const *endings, char ***ret_files, struct abx_err *err)
{
	abx_auto_dir DIR *d = opendir(dir);
	char **files = calloc(1, sizeof(*files));
	int failed = files ? 0 : -1;
	size_t n = 0;

	if (!d && errno != ENOENT) {
		abx_list_free(files);
		return abx_err_set(err, ABX_E_VALUE, "ABX_COMMANDS_DIR: %s cannot be read: %s", dir, strerror(errno));
	}
	for (const struct dirent *entry = d ? readdir(d) : NULL; entry && !failed; entry = readdir(d))
		if (entry->d_name[0] != '.' && ends_in(entry->d_name, endings))
			failed = add(&files, dir, entry->d_name);
	if (failed) {
		abx_list_free(files);
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	while (files[n])
		n++;
	qsort(files, n, sizeof(*files), compare);
	*ret_files = files;
	return 0;
}
