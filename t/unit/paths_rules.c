#include "common/paths.h"

#include <fcntl.h>
#include <string.h>

#include "t/scratch.h"
#include "t/tap.h"

static struct abx_roots roots;

/* "kind rule" of what resolving `path` gives. */
static const char *resolve(const char *path, unsigned flags)
{
	static char out[256];
	abx_auto_path struct abx_path found = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	if (abx_path_resolve(&roots, path, flags, &found, &err) == 0)
		return found.fd >= 0 ? "there" : "missing";
	snprintf(out, sizeof(out), "%s %s", abx_err_code(&err) ? abx_err_code(&err) : abx_err_type(&err), err.rule);
	return out;
}

static void make(void)
{
	const char *dirs[] = { "base", "base/.ssh", "base/.ssh/deep", "base/open", "base/open/sub", "base/one" };
	const char *files[] = { "base/.ssh/id", "base/.ssh/deep/key", "base/open/file", "base/open/key.pem", "base/one/x" };

	for (size_t i = 0; i < ABX_N(dirs); i++)
		mkdir(dirs[i], 0755);
	for (size_t i = 0; i < ABX_N(files); i++)
		close(open(files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	if (symlink(".ssh", "base/to_ssh") < 0 || symlink("../.ssh/id", "base/open/to_id") < 0 ||
	    symlink("file", "base/open/link.pem") < 0 || symlink("open", "base/two") < 0 || symlink("nowhere", "base/open/dangling.pem") < 0)
		puts("Bail out! symlink");
}

static void denied(void)
{
	static const char *const off_limits[] = {
		".ssh", ".ssh/", "./.ssh", ".ssh/id", ".ssh/deep/key", ".ssh/none", ".ssh/none/below", ".ssh/id/below",
		"open/../.ssh/id", "to_ssh", "to_ssh/id", "to_ssh/none", "open/to_id", "open/key.pem", "open/none.pem",
		"open//key.pem", "open/link.pem", "open/dangling.pem", "two", "two/file", "one", "one/x", "one/none",
	};
	static const char *const free_to_use[] = { "open/file", "open", "open/sub", ".", "open/./file", "open/sub/../file" };

	for (size_t i = 0; i < ABX_N(off_limits); i++) {
		is_str(resolve(off_limits[i], 0), "path_not_allowed policy:endpoints.x", "%s", off_limits[i]);
		is_str(resolve(off_limits[i], ABX_PATH_MISSING), "path_not_allowed policy:endpoints.x", "%s, may be missing",
		       off_limits[i]);
	}
	for (size_t i = 0; i < ABX_N(free_to_use); i++)
		is_str(resolve(free_to_use[i], 0), "there", "%s", free_to_use[i]);
	is_str(resolve("to_ssh", ABX_PATH_NOFOLLOW), "there", "a link itself, where only what it leads to is off limits");
	is_str(resolve("two", ABX_PATH_NOFOLLOW), "path_not_allowed policy:endpoints.x", "a link that is off limits");
	is_str(resolve("open/none", ABX_PATH_MISSING), "missing", "a name that nobody denies");
	is_str(resolve("../elsewhere", 0), "path_not_allowed ", "outside the base directory: no rule of the policy");
}

static void leaves_nothing_behind(void)
{
	struct stat st;

	is_str(resolve("new/.ssh/a/b", ABX_PATH_PARENTS), "path_not_allowed policy:endpoints.x", "parents off limits");
	ok(stat("base/new", &st) < 0, "no directory was made on the way");
	is_str(resolve("new/open/a", ABX_PATH_PARENTS), "missing", "parents");
	ok(stat("base/new/open", &st) == 0, "they were made");
}

/* Trees of an allow list: plain ones, one that is missing, one that is a file, and a glob. */
static void allowed(void)
{
	char plain[PATH_MAX + 32], missing[PATH_MAX + 32], file[PATH_MAX + 32], glob[PATH_MAX + 32], base[PATH_MAX + 32];
	char *allow[] = { plain, missing, file, glob, NULL }, *with_base[] = { plain, base, NULL };
	char denied_glob[] = "**/private/**";
	char *deny[] = { denied_glob, NULL };
	struct abx_err err = ABX_ERR_INIT;

	snprintf(base, sizeof(base), "%s/base", scratch);
	snprintf(plain, sizeof(plain), "%s/plain", scratch);
	snprintf(missing, sizeof(missing), "%s/missing/deep", scratch);
	snprintf(file, sizeof(file), "%s/file", scratch);
	snprintf(glob, sizeof(glob), "%s/proj-*/**", scratch);
	mkdir("plain", 0755);
	mkdir("plain/private", 0755);
	mkdir("proj-a", 0755);
	mkdir("other", 0755);
	close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	close(open("proj-a/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	close(open("other/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	if (symlink("../other/x", "proj-a/out") < 0 || symlink("proj-a", "proj-link") < 0 || symlink("../proj-a/x", "plain/to_proj") < 0)
		puts("Bail out! symlink");
	is_int(abx_roots_open_lists(base, allow, deny, "policy:endpoints.y", &roots, &err), 0, "an allow list");
	is_str(resolve(".", 0), "there", "relative paths begin in the first tree");
	is_str(resolve(plain, 0), "there", "a plain tree");
	is_str(resolve("to_proj", 0), "there", "a link from one tree to another");
	is_str(resolve("private/x", ABX_PATH_MISSING), "path_not_allowed policy:endpoints.y", "what is denied in it");
	is_str(resolve("../missing/deep/a", ABX_PATH_MISSING), "missing", "a tree that is missing");
	is_str(resolve("../missing/other", ABX_PATH_MISSING), "path_not_allowed policy:endpoints.y", "beside it");
	is_str(resolve("../missing", ABX_PATH_MISSING), "path_not_allowed policy:endpoints.y", "above it");
	is_str(resolve("../missing/deep/a/b", ABX_PATH_PARENTS), "missing", "it can be made");
	is_str(resolve("../missing/deep/a", 0), "there", "and is there then");
	is_str(resolve("../file", 0), "there", "a file");
	is_str(resolve("../file2", ABX_PATH_MISSING), "path_not_allowed policy:endpoints.y", "beside the file");
	is_str(resolve("../proj-a", 0), "there", "what a glob matches");
	is_str(resolve("../proj-a/x", 0), "there", "and below");
	is_str(resolve("../proj-link/x", 0), "there", "by a link that ends there");
	is_str(resolve("../proj-a/out", 0), "path_not_allowed policy:endpoints.y", "a link that leads out of a glob");
	is_str(resolve("../other/x", 0), "path_not_allowed policy:endpoints.y", "what no glob matches");
	is_str(resolve("..", 0), "path_not_allowed policy:endpoints.y", "the directory above");
	is_str(resolve(base, 0), "path_not_allowed policy:endpoints.y", "the base directory, which was replaced");
	is_str(resolve("../other/nothing", 0), "path_not_allowed policy:endpoints.y", "outside, whether or not it is there");
	abx_roots_release(&roots);

	is_int(abx_roots_open_lists(base, allow + 1, NULL, "policy:endpoints.y", &roots, &err), 0, "a first tree that is there by now");
	is_str(resolve("a/b", ABX_PATH_MISSING), "missing", "is where relative paths begin");
	abx_roots_release(&roots);
	snprintf(missing, sizeof(missing), "%s/later", scratch);
	is_int(abx_roots_open_lists(base, allow + 1, NULL, "policy:endpoints.y", &roots, &err), 0, "a first tree that is missing");
	is_str(resolve(".", 0), "FileNotFoundError ", "relative paths begin there all the same");
	mkdir("later", 0755);
	is_str(resolve(".", 0), "there", "and it can come later");
	is_str(resolve("x", ABX_PATH_PARENTS), "missing", "with what is below");
	is_str(resolve("../base", 0), "path_not_allowed policy:endpoints.y", "and not beside it");
	abx_roots_release(&roots);

	is_int(abx_roots_open_lists(base, with_base, NULL, "policy:endpoints.y", &roots, &err), 0, "the base directory among others");
	is_str(resolve("open/file", 0), "there", "relative paths begin in the base directory all the same");
	is_str(resolve(plain, 0), "there", "the other tree");
	abx_roots_release(&roots);
}

/* A list that names places by links. */
static void aliases(void)
{
	char alias[PATH_MAX + 32], secret[PATH_MAX + 32], base[PATH_MAX + 32];
	char *allow[] = { alias, NULL }, *deny[] = { secret, NULL };
	struct abx_err err = ABX_ERR_INIT;

	if (symlink("base", "alias") < 0)
		puts("Bail out! symlink");
	snprintf(base, sizeof(base), "%s/base", scratch);
	snprintf(alias, sizeof(alias), "%s/alias/open", scratch);
	snprintf(secret, sizeof(secret), "%s/alias/open/*.pem", scratch);
	is_int(abx_roots_open_lists(base, allow, deny, "policy:endpoints.z", &roots, &err), 0, "lists that go by a link");
	is_str(resolve("file", 0), "there", "a file");
	is_str(resolve(alias, 0), "there", "the tree by its alias");
	is_str(resolve("key.pem", 0), "path_not_allowed policy:endpoints.z", "what is denied by its alias");
	abx_roots_release(&roots);
}

int main(void)
{
	char ssh[] = "**/.ssh/**", pem[] = "**/*.pem", two[] = "**/two", one[PATH_MAX + 16];
	char *deny[] = { ssh, pem, two, one, NULL };
	struct abx_err err = ABX_ERR_INIT;

	scratch_enter();
	make();
	snprintf(one, sizeof(one), "%s/base/one", scratch);
	if (abx_roots_open_lists("base", NULL, deny, "policy:endpoints.x", &roots, &err) < 0) {
		printf("Bail out! %s\n", err.message);
		return 1;
	}
	denied();
	leaves_nothing_behind();
	abx_roots_release(&roots);
	allowed();
	aliases();
	return done_testing();
}
