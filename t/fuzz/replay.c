/* Run a fuzz target over files: those given as arguments, and all in directories given. For builds without libFuzzer.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "common/auto.h"
#include "t/fuzz/fuzz.h"

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat st;

	if (!file || fstat(fileno(file), &st) < 0) {
		perror(path);
		if (file)
			fclose(file);
		return -1;
	}
	/* Memory of exactly this size, so that a sanitizer sees a read past its end. */
	abx_auto_free uint8_t *data = malloc(st.st_size ? (size_t)st.st_size : 1);
	size_t n = data ? fread(data, 1, (size_t)st.st_size, file) : 0;
	fclose(file);
	if (n != (size_t)st.st_size) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return -1;
	}
	LLVMFuzzerTestOneInput(data, n);
	return 1;
}

/* Returns how many files were run, or -1. */
static int replay(const char *path)
{
	abx_auto_dir DIR *dir = opendir(path);
	struct dirent *entry;
	int total = 0;

	if (!dir)
		return replay_file(path);
	while ((entry = readdir(dir))) {
		char child[4096];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
		int n = replay(child);
		if (n < 0)
			return -1;
		total += n;
	}
	return total;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int n = replay(argv[i]);
		if (n < 0)
			return 1;
		total += n;
	}
	printf("%d inputs\n", total);
	/* A corpus that is not there tests nothing. */
	return total == 0;
}
