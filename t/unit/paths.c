#include "common/paths.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "t/unit/paths_tree.h"

/* What becomes of a string. `resolved` is NULL where it is refused with `kind`. */
static const struct {
	const char *path;
	unsigned flags;
	enum abx_error kind;
	const char *resolved;
	bool missing;
} table[] = {
	/* plain */
	{ "file", 0, 0, "%/file", false },
	{ "%/file", 0, 0, "%/file", false },
	{ "./file", 0, 0, "%/file", false },
	{ ".//.//file", 0, 0, "%/file", false },
	{ "%//dir/.//deep///file", 0, 0, "%/dir/deep/file", false },
	{ "//%/./file", 0, 0, "%/file", false },
	{ "dir", 0, 0, "%/dir", false },
	{ "dir/", 0, 0, "%/dir", false },
	{ "dir//", 0, 0, "%/dir", false },
	{ "dir/.", 0, 0, "%/dir", false },
	{ "dir/./", 0, 0, "%/dir", false },
	{ "..file", 0, 0, "%/..file", false },
	{ ".", 0, 0, "%", false },
	{ "./", 0, 0, "%", false },
	{ "%", 0, 0, "%", false },
	{ "%/", 0, 0, "%", false },
	{ "%/.", 0, 0, "%", false },
	{ "dir/..", 0, 0, "%", false },
	{ "dir/deep/..", 0, 0, "%/dir", false },
	{ "dir/deep/../..", 0, 0, "%", false },
	{ "dir/deep/../../file", 0, 0, "%/file", false },
	{ "%/../base/file", 0, 0, "%/file", false },
	{ "../base/dir/deep", 0, 0, "%/dir/deep", false },
	{ "../outside/../base/file", 0, 0, "%/file", false },
	{ "/..%/file", 0, 0, "%/file", false },
	{ "/../..%/file", 0, 0, "%/file", false },
	/* missing */
	{ "nosuch", 0, ABX_E_NO_FILE, NULL, false },
	{ "nosuch/", 0, ABX_E_NO_FILE, NULL, false },
	{ "%/nosuch/x", 0, ABX_E_NO_FILE, NULL, false },
	{ "dir/nosuch", 0, ABX_E_NO_FILE, NULL, false },
	{ "nosuch", MISSING, 0, "%/nosuch", true },
	{ "nosuch/", MISSING, 0, "%/nosuch", true },
	{ "nosuch/.", MISSING, 0, "%/nosuch", true },
	{ "dir/nosuch", MISSING, 0, "%/dir/nosuch", true },
	{ "rel/nosuch", MISSING, 0, "%/dir/deep/nosuch", true },
	{ "abs/nosuch", MISSING, 0, "%/dir/deep/nosuch", true },
	{ "no/such", MISSING, 0, "%/no/such", true },
	{ "no/such/../other", MISSING, 0, "%/no/other", true },
	{ "file", MISSING, 0, "%/file", false },
	{ "nosuch/../file", 0, 0, "%/file", false },
	{ "no/such/../../dir/deep", 0, 0, "%/dir/deep", false },
	{ "nosuch/..", 0, 0, "%", false },
	{ "nosuch/../out_rel/secret", 0, ABX_E_PATH, NULL, false },
	{ "nosuch/../../outside/secret", 0, ABX_E_PATH, NULL, false },
	{ "file/../dir", 0, 0, "%/dir", false },
	/* below a file */
	{ "file/", 0, ABX_E_NO_FILE, NULL, false },
	{ "file/.", 0, ABX_E_NO_FILE, NULL, false },
	{ "file/x", 0, ABX_E_NO_FILE, NULL, false },
	{ "file/", MISSING, 0, "%/file", false },
	{ "file/", PARENTS, ABX_E_VALUE, NULL, false },
	{ "file/x", MISSING, 0, "%/file/x", true },
	{ "file/x/y", MISSING, 0, "%/file/x/y", true },
	{ "file/x/y", PARENTS, ABX_E_VALUE, NULL, false },
	{ "file_slash", 0, ABX_E_NO_FILE, NULL, false },
	{ "link3/x", 0, ABX_E_NO_FILE, NULL, false },
	/* links that stay inside */
	{ "rel", 0, 0, "%/dir/deep", false },
	{ "rel/file", 0, 0, "%/dir/deep/file", false },
	{ "rel/../deep/file", 0, 0, "%/dir/deep/file", false },
	{ "rel/..", 0, 0, "%/dir", false },
	{ "abs", 0, 0, "%/dir/deep", false },
	{ "abs/file", 0, 0, "%/dir/deep/file", false },
	{ "abs/../deep", 0, 0, "%/dir/deep", false },
	{ "self", 0, 0, "%", false },
	{ "self/self/self/file", 0, 0, "%/file", false },
	{ "slash%/file", 0, 0, "%/file", false },
	{ "with_slash", 0, 0, "%/dir", false },
	{ "with_slash/deep", 0, 0, "%/dir/deep", false },
	{ "out_and_in", 0, 0, "%/dir", false },
	{ "there_and_back/deep", 0, 0, "%/dir/deep", false },
	{ "link39", 0, 0, "%/file", false },
	{ "dangling", 0, ABX_E_NO_FILE, NULL, false },
	{ "dangling", MISSING, 0, "%/dir/new", true },
	{ "dangling_abs", MISSING, 0, "%/dir/newabs", true },
	/* the link itself */
	{ "rel", NOFOLLOW, 0, "%/rel", false },
	{ "dir/../rel", NOFOLLOW, 0, "%/rel", false },
	{ "abs", NOFOLLOW, 0, "%/abs", false },
	{ "self/rel", NOFOLLOW, 0, "%/rel", false },
	{ "rel/", NOFOLLOW, 0, "%/dir/deep", false },
	{ "rel/.", NOFOLLOW, 0, "%/dir/deep", false },
	{ "abs/", NOFOLLOW, 0, "%/dir/deep", false },
	{ "out_rel", NOFOLLOW, 0, "%/out_rel", false },
	{ "out_abs", NOFOLLOW, 0, "%/out_abs", false },
	{ "out_missing", NOFOLLOW, 0, "%/out_missing", false },
	{ "dangling", NOFOLLOW, 0, "%/dangling", false },
	{ "loop", NOFOLLOW, 0, "%/loop", false },
	{ "magic_fd", NOFOLLOW, 0, "%/magic_fd", false },
	{ "out_rel/", NOFOLLOW, ABX_E_PATH, NULL, false },
	{ "out_rel/.", NOFOLLOW, ABX_E_PATH, NULL, false },
	/* too many links */
	{ "loop", 0, ABX_E_VALUE, NULL, false },
	{ "loop/x", MISSING, ABX_E_VALUE, NULL, false },
	{ "one", 0, ABX_E_VALUE, NULL, false },
	{ "link40", 0, ABX_E_VALUE, NULL, false },
	{ "../outside/loop", 0, ABX_E_PATH, NULL, false },
	{ "../outside/loop/x", MISSING, ABX_E_PATH, NULL, false },
	{ "out_loop", 0, ABX_E_PATH, NULL, false },
	/* outside, whether or not it is there */
	{ "/", 0, ABX_E_PATH, NULL, false },
	{ "..", 0, ABX_E_PATH, NULL, false },
	{ "../", 0, ABX_E_PATH, NULL, false },
	{ "../outside/secret", 0, ABX_E_PATH, NULL, false },
	{ "../outside/nosuch", 0, ABX_E_PATH, NULL, false },
	{ "../outside/nosuch", PARENTS, ABX_E_PATH, NULL, false },
	{ "../outside/secret/x", MISSING, ABX_E_PATH, NULL, false },
	{ "../base2", MISSING, ABX_E_PATH, NULL, false },
	{ "%2", MISSING, ABX_E_PATH, NULL, false },
	{ "%/../base2/x", PARENTS, ABX_E_PATH, NULL, false },
	{ "dir/../..", 0, ABX_E_PATH, NULL, false },
	{ "dir/../../outside", 0, ABX_E_PATH, NULL, false },
	{ "rel/../../../outside", 0, ABX_E_PATH, NULL, false },
	{ "/etc/passwd", 0, ABX_E_PATH, NULL, false },
	{ "/etc/passwd/x", 0, ABX_E_PATH, NULL, false },
	{ "/etc/nosuch", 0, ABX_E_PATH, NULL, false },
	{ "/nosuch", MISSING, ABX_E_PATH, NULL, false },
	{ "out_rel", 0, ABX_E_PATH, NULL, false },
	{ "out_rel/secret", 0, ABX_E_PATH, NULL, false },
	{ "out_rel/nosuch", MISSING, ABX_E_PATH, NULL, false },
	{ "out_rel/new/x", PARENTS, ABX_E_PATH, NULL, false },
	{ "out_rel/secret", NOFOLLOW, ABX_E_PATH, NULL, false },
	{ "out_file", 0, ABX_E_PATH, NULL, false },
	{ "out_abs/passwd", 0, ABX_E_PATH, NULL, false },
	{ "out_missing", MISSING, ABX_E_PATH, NULL, false },
	{ "out_missing", PARENTS, ABX_E_PATH, NULL, false },
	{ "slash", 0, ABX_E_PATH, NULL, false },
	{ "slash/etc/passwd", 0, ABX_E_PATH, NULL, false },
	{ "magic_root/etc/passwd", 0, ABX_E_PATH, NULL, false },
	{ "magic_fd", 0, ABX_E_PATH, NULL, false },
	{ "magic_cwd/outside/secret", 0, ABX_E_PATH, NULL, false },
	{ "/proc/self/root/etc/passwd", 0, ABX_E_PATH, NULL, false },
	{ "/proc/self/fd/0", 0, ABX_E_PATH, NULL, false },
	{ "/proc/self/exe", 0, ABX_E_PATH, NULL, false },
	/* a place outside, there or not, on the way inside */
	{ "/etc/..%/file", 0, 0, "%/file", false },
	{ "/nosuch/..%/file", 0, 0, "%/file", false },
	{ "/etc/passwd/../..%/file", 0, 0, "%/file", false },
	{ "/etc/passwd/..%/nosuch", 0, ABX_E_PATH, NULL, false },
	{ "/etc/..%/nosuch", 0, ABX_E_NO_FILE, NULL, false },
	{ "/nosuch/..%/nosuch", 0, ABX_E_NO_FILE, NULL, false },
	/* a magic link leads nowhere, though its text may lead inside */
	{ "/proc/self/root%/file", 0, ABX_E_PATH, NULL, false },
	{ "/proc/thread-self/root%/file", 0, ABX_E_PATH, NULL, false },
	{ "magic_cwd/base/file", 0, ABX_E_PATH, NULL, false },
};

/* Everything that a resolved path says must agree. */
static const char *inconsistency(const struct abx_path *path, bool missing)
{
	struct stat st;

	if (missing != (path->fd < 0))
		return missing ? "something is there" : "nothing is there";
	if (!path->name || !path->resolved || path->resolved[0] != '/')
		return "it has no name";
	if (strcmp(strrchr(path->resolved, '/') + 1, path->name) != 0)
		return "the name is not the last component";
	if (!missing && (fstat(path->fd, &st) < 0 || st.st_ino != path->st.st_ino || st.st_dev != path->st.st_dev))
		return "the figures are another file's";
	if (!missing && (lstat(path->resolved, &st) < 0 || st.st_ino != path->st.st_ino))
		return "the resolved path is another file's";
	if (path->parent_fd < 0)
		return missing || strcmp(path->resolved, base) == 0 ? NULL : "the parent is missing";
	if (fcntl(path->parent_fd, F_GETFD) != FD_CLOEXEC || (path->fd >= 0 && fcntl(path->fd, F_GETFD) != FD_CLOEXEC))
		return "a descriptor is inherited";
	if (fstatat(path->parent_fd, path->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return missing && errno == ENOENT ? NULL : "the name is not in the parent";
	return missing || st.st_ino != path->st.st_ino ? "the parent holds something else" : NULL;
}

static void test_table(void)
{
	for (size_t i = 0; i < ABX_N(table); i++) {
		abx_auto_path struct abx_path path = ABX_PATH_INIT;
		struct abx_err err = ABX_ERR_INIT;
		const char *given = at(table[i].path);
		int rc = abx_path_resolve(&roots, given, table[i].flags, &path, &err);

		if (!table[i].resolved) {
			is_int(rc < 0 ? err.kind : ABX_E_NONE, table[i].kind, "%s, flags %u, is refused", table[i].path, table[i].flags);
			ok(path.fd == -1 && path.parent_fd == -1 && !path.name && !path.resolved, "and nothing is returned");
			ok(strstr(err.message, given) != NULL, "and the message shows the path as given: %s", err.message);
			continue;
		}
		if (!ok(rc == 0, "%s, flags %u, resolves (%s)", table[i].path, table[i].flags, rc ? err.message : ""))
			continue;
		is_str(path.resolved, at(table[i].resolved), "to %s", table[i].resolved);
		is_str(inconsistency(&path, table[i].missing), NULL, "and all that is said of it agrees");
	}
}

/* The kinds of the refusals of two paths, and their messages but for the path, are the same. */
static void same_refusal(const char *one, const char *other, unsigned flags)
{
	struct abx_err a = ABX_ERR_INIT, b = ABX_ERR_INIT;
	struct abx_path path = ABX_PATH_INIT;
	int rc_a = abx_path_resolve(&roots, at(one), flags, &path, &a), rc_b = abx_path_resolve(&roots, at(other), flags, &path, &b);
	size_t len = strcspn(a.message, ":");

	ok(rc_a < 0 && rc_b < 0 && a.kind == ABX_E_PATH && a.kind == b.kind && a.os_errno == b.os_errno && !a.rule[0] &&
		   strncmp(a.message, b.message, len + 1) == 0,
	   "%s is refused as %s is, flags %u", one, other, flags);
}

static void test_no_oracle(void)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		same_refusal("/etc/passwd", "/etc/nosuch", flags);
		same_refusal("../outside/secret", "../outside/nosuch", flags);
		same_refusal("../outside/secret/x", "../outside/nosuch/x", flags);
		same_refusal("../outside/dir/x/y", "../outside/nosuch/x/y", flags);
		same_refusal("out_rel/secret", "out_rel/nosuch", flags);
		same_refusal("/etc/passwd/", "/etc/nosuch/", flags);
		same_refusal("../outside/secret/../x", "../outside/nosuch/../x", flags);
	}
	is_int(count_entries("outside"), 4, "nothing was made outside");
}

static int resolve_kind(const char *path, unsigned flags)
{
	abx_auto_path struct abx_path found = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	return abx_path_resolve(&roots, path, flags, &found, &err) < 0 ? (int)err.kind : 0;
}

static void test_parents(void)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT, again = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;
	mode_t mask = umask(003);
	struct stat st;

	is_int(abx_path_resolve(&roots, "p/q/r/file", PARENTS, &path, &err), 0, "parents are made");
	umask(mask);
	is_str(inconsistency(&path, true), NULL, "and the path agrees");
	ok(path.parent_fd >= 0, "the parent is at hand");
	ok(stat(at("%/p/q/r"), &st) == 0 && (st.st_mode & 07777) == 0774, "with mode 0777 less the umask");
	ok(stat(at("%/p/q/r/file"), &st) < 0, "the last component is not made");
	is_int(resolve_kind("abs/s/file", PARENTS), 0, "behind an absolute link");
	ok(stat(at("%/dir/deep/s"), &st) == 0, "they are made where it leads");
	is_int(resolve_kind("t/../u/./v/w", PARENTS), 0, "with dots in it");
	ok(stat(at("%/u/v"), &st) == 0 && stat(at("%/t"), &st) < 0, "only what remains is made");
	is_int(abx_path_resolve(&roots, "p/q/r", PARENTS, &again, &err), 0, "what is there is found");
	is_str(inconsistency(&again, false), NULL, "as without the flag");
}

static void test_lengths(void)
{
	char path[3 * PATH_MAX], name[300];
	struct stat st;

	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	is_int(resolve_kind(name, MISSING), 0, "a name of 255 bytes is fine");
	is_int(resolve_kind(name, 0), ABX_E_NO_FILE, "even if nothing has it");
	name[255] = 'n';
	name[256] = '\0';
	is_int(resolve_kind(name, MISSING), ABX_E_VALUE, "one of 256 is not");
	snprintf(path, sizeof(path), "long/%s/x", name);
	is_int(resolve_kind(path, PARENTS), ABX_E_VALUE, "nor in the middle");
	ok(stat(at("%/long"), &st) < 0, "and no parent was made for it");
	snprintf(path, sizeof(path), "../outside/%s", name);
	is_int(resolve_kind(path, MISSING), ABX_E_PATH, "outside it is just outside");

	memset(path, '/', sizeof(path));
	strcpy(path + PATH_MAX - 1 - 4, "file");
	memcpy(path, "dir", 3);
	is_int(resolve_kind(path, 0), ABX_E_NO_FILE, "a path of 4095 bytes is looked at");
	memcpy(path, "./.", 3);
	is_int(resolve_kind(path, 0), 0, "and found");
	strcpy(path + PATH_MAX - 4, "file");
	is_int(resolve_kind(path, 0), ABX_E_VALUE, "one of 4096 is too long");
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	is_int(resolve_kind(path, 0), ABX_E_VALUE, "so is a very long one");
}

/* Deeper than there are descriptors. */
static void test_deep(void)
{
	enum { DEPTH = 1500 };
	char path[PATH_MAX];
	struct rlimit before, few;
	abx_auto_path struct abx_path found = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_cur = 40;
	setrlimit(RLIMIT_NOFILE, &few);
	strcpy(path, "self");
	for (int i = 0; i < DEPTH; i++)
		strcat(path, "/d");
	strcat(path, "/f");
	int rc = abx_path_resolve(&roots, path, PARENTS, &found, &err);
	is_int(rc, 0, "1500 parents are made with few descriptors: %s", rc ? err.message : "");
	path[0] = '\0';
	for (int i = 0; i < DEPTH; i++)
		strcat(path, "d/");
	strcpy(path + strlen(path) - 1, "");
	is_int(resolve_kind(path, 0), 0, "and found");
	strcpy(path, "self");
	for (int i = 0; i < DEPTH / 2; i++)
		strcat(path, "/d");
	for (int i = 0; i < DEPTH / 2; i++)
		strcat(path, "/..");
	is_int(resolve_kind(path, 0), 0, "and walked back");
	strcat(path, "/..");
	is_int(resolve_kind(path, 0), ABX_E_PATH, "one step more is outside");
	setrlimit(RLIMIT_NOFILE, &before);
}

static void test_names(void)
{
	static const char *const names[] = { "a\nb", "a\"b", "a'b", "a\\b", "a b ", " ", "-rf", "\xff\xfe", "caf\xc3\xa9", "e\xcc\x81", "*",
					     "a\tb", "\x01", "...", "gone (deleted)", "%s%n", "CON", "a:b" };

	for (size_t i = 0; i < ABX_N(names); i++) {
		abx_auto_path struct abx_path path = ABX_PATH_INIT, again = ABX_PATH_INIT;
		struct abx_err err = ABX_ERR_INIT;
		char inside[64];

		snprintf(inside, sizeof(inside), "%s/x", names[i]);
		int rc = abx_path_resolve(&roots, inside, PARENTS, &path, &err);
		ok(rc == 0 && path.parent_fd >= 0, "name %zu can be a directory: %s", i, rc ? err.message : "");
		rc = abx_path_resolve(&roots, names[i], 0, &again, &err);
		ok(rc == 0 && strcmp(again.name, names[i]) == 0 && S_ISDIR(again.st.st_mode), "and is found");
	}
}

static void test_root_itself(void)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	is_int(abx_path_resolve(&roots, "self/dir/..", NOFOLLOW | MISSING, &path, &err), 0, "the root is found");
	is_int(path.parent_fd, -1, "without a parent, so that nothing can be done to it");
	is_str(path.name, "base", "and with a name");
	abx_path_release(&path);
	is_int(abx_path_resolve(&roots, ".", 0, &path, &err), 0, "by its dot as well");
	is_int(path.parent_fd, -1, "without a parent");
	is_str(path.name, "base", "and with a name");
}

static void test_open_roots(void)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_roots made = { 0 }, linked = { 0 }, refused = { 0 };
	mode_t mask = umask(0);
	struct stat st;

	is_int(abx_roots_open("new//./base/", &made, &err), 0, "a base directory is made, with its parent");
	umask(mask);
	snprintf(base, sizeof(base), "%s/new/base", scratch);
	is_str(made.roots[0].path, base, "its path is absolute and clean");
	is_str(made.roots[0].alias, NULL, "and it has no other");
	ok(stat("new", &st) == 0 && (st.st_mode & 07777) == 0755, "the parent has mode 0755");
	ok(stat(base, &st) == 0 && (st.st_mode & 07777) == 0755, "so has the directory");
	is_int((int)made.n, 1, "it is the one root");
	ok(fcntl(made.roots[0].fd, F_GETFD) == FD_CLOEXEC, "its descriptor is not inherited");
	snprintf(base, sizeof(base), "%s/base", scratch);

	is_int(abx_roots_open(at("%/..//alias/."), &linked, &err), 0, "through a link");
	is_str(linked.roots[0].path, base, "the path is where it leads");
	is_str(linked.roots[0].alias, at("%/../alias"), "the alias is what was configured");
	for (int i = 0; i < 2; i++) {
		abx_auto_path struct abx_path path = ABX_PATH_INIT;
		const char *given = i ? at("%/../alias/file") : at("%/file");

		is_int(abx_path_resolve(&linked, given, 0, &path, &err), 0, "%s is found", i ? "by the alias" : "by the path");
		is_str(path.resolved, at("%/file"), "as the same file");
	}
	abx_roots_release(&linked);
	is_int((int)linked.n, 0, "released roots are gone");
	abx_roots_release(&made);

	is_int(abx_roots_open("base/file", &refused, &err), -1, "a file is no base directory");
	is_int(err.kind, ABX_E_ERRNO, "which is told by errno");
	is_int(err.os_errno, ENOTDIR, "ENOTDIR");
	ok(!refused.roots, "and nothing is returned");
	is_int(abx_roots_open("base/file/x", &refused, &err), -1, "nor is what would be below one");
	is_int(abx_roots_open("base/out_missing", &refused, &err), -1, "nor a link to nothing");
}

/* The whole file system may be the allowed tree. */
static void test_slash_root(void)
{
	struct abx_roots all = { 0 };
	abx_auto_path struct abx_path path = ABX_PATH_INIT, itself = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;

	is_int(abx_roots_open("/", &all, &err), 0, "the root can be / ");
	is_int(abx_path_resolve(&all, at("%/abs/file"), 0, &path, &err), 0, "then everything is inside");
	is_str(path.resolved, at("%/dir/deep/file"), "and resolved");
	is_int(abx_path_resolve(&all, "../..", 0, &itself, &err), 0, "nothing is above it");
	is_str(itself.resolved, "/", "it is itself");
	is_int(itself.parent_fd, -1, "without a parent");
	abx_path_release(&path);
	is_int(abx_path_resolve(&all, "/abx-nosuch", MISSING, &path, &err), 0, "what is missing in it");
	is_str(path.resolved, "/abx-nosuch", "has one slash");
	abx_roots_release(&all);
}

static void test_several_roots(void)
{
	struct abx_roots one = { 0 }, other = { 0 };
	struct abx_root both[2];
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_path struct abx_path path = ABX_PATH_INIT;

	abx_roots_open("base/dir", &one, &err);
	abx_roots_open("outside", &other, &err);
	both[0] = one.roots[0];
	both[1] = other.roots[0];
	struct abx_roots together = { .roots = both, .n = 2 };
	is_int(abx_path_resolve(&together, at("%/../outside/secret"), 0, &path, &err), 0, "a second root is allowed, too");
	abx_path_release(&path);
	is_int(abx_path_resolve(&together, "../../outside/secret", 0, &path, &err), 0, "also from the first one");
	abx_path_release(&path);
	is_int(abx_path_resolve(&together, "deep/file", 0, &path, &err), 0, "relative paths begin in the first");
	is_str(path.resolved, at("%/dir/deep/file"), "and only there");
	abx_path_release(&path);
	is_int(abx_path_resolve(&together, at("%/file"), 0, &path, &err), -1, "what is above and between is outside");
	abx_roots_release(&one);
	abx_roots_release(&other);
}

static void test_root_made_again(void)
{
	struct abx_roots lost = { 0 };
	struct abx_err err = ABX_ERR_INIT;
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	char absolute[PATH_MAX + 16];
	int fd;

	abx_roots_open("lost", &lost, &err);
	fd = lost.roots[0].fd;
	snprintf(absolute, sizeof(absolute), "%s/lost/x", scratch);
	rmdir("lost");
	is_int(abx_path_resolve(&lost, absolute, 0, &path, &err), -1, "with the root removed nothing is found");
	is_int(err.kind, ABX_E_NO_FILE, "which is not a matter of permission");
	is_int(abx_path_resolve(&lost, "x", PARENTS, &path, &err), -1, "and nothing is made");
	is_int(err.kind, ABX_E_NO_FILE, "for the same reason");
	is_int(abx_path_resolve(&lost, ".", 0, &path, &err), -1, "nor is the root there");
	is_int(err.kind, ABX_E_NO_FILE, "for the same reason");

	mkdir("lost", 0755);
	put("lost/x", "again");
	is_int(abx_path_resolve(&lost, absolute, 0, &path, &err), 0, "made again, it is the root again");
	is_int(lost.roots[0].fd, fd, "under the same descriptor number");
	abx_path_release(&path);
	rename("lost", "moved");
	mkdir("lost", 0755);
	is_int(abx_path_resolve(&lost, "y", MISSING, &path, &err), 0, "moved away and made again");
	struct stat st, now;
	ok(fstat(path.parent_fd, &st) == 0 && stat("lost", &now) == 0 && st.st_ino == now.st_ino, "what is made goes to the new one");
	abx_path_release(&path);
	rmdir("lost");
	make_link("outside", "lost");
	is_int(abx_path_resolve(&lost, absolute, MISSING, &path, &err) == 0 && path.fd >= 0, 0, "a link in its place is not followed");
	abx_path_release(&path);
	int rc = abx_path_resolve(&lost, "secret", 0, &path, &err);
	ok(rc < 0, "not for what is there, either");
	unlink("lost");
	abx_roots_release(&lost);
}

static void test_special_files(void)
{
	struct abx_err err = ABX_ERR_INIT;
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "base/socket" };
	abx_auto_path struct abx_path fifo = ABX_PATH_INIT, sock = ABX_PATH_INIT, link = ABX_PATH_INIT, dir = ABX_PATH_INIT, none = ABX_PATH_INIT;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	mkfifo("base/fifo", 0644);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		note("no socket: %s", strerror(errno));
	close(fd);
	is_int(abx_path_resolve(&roots, "fifo", 0, &fifo, &err), 0, "a FIFO is found");
	fd = abx_path_open(&fifo, O_RDONLY, &err);
	ok(fd >= 0, "and opening it for reading does not wait");
	close(fd);
	is_int(abx_path_open(&fifo, O_WRONLY, &err), -1, "nor for writing");
	is_int(err.os_errno, ENXIO, "which fails without a reader");
	is_int(abx_path_resolve(&roots, "socket", 0, &sock, &err), 0, "a socket is found");
	is_int(abx_path_open(&sock, O_RDONLY, &err), -1, "and cannot be opened");
	is_int(err.kind, ABX_E_ERRNO, "which is told by errno");
	is_int(abx_path_resolve(&roots, "out_file", NOFOLLOW, &link, &err), 0, "a link that leads out is found");
	is_int(abx_path_open(&link, O_RDONLY, &err), -1, "but nothing can be read through it");
	is_int(abx_path_resolve(&roots, "dir", NOFOLLOW, &dir, &err), 0, "a directory is found");
	fd = abx_path_open(&dir, O_RDONLY | O_DIRECTORY, &err);
	ok(fd >= 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) && fcntl(fd, F_GETFD) == FD_CLOEXEC, "and can be opened to be read");
	close(fd);
	is_int(abx_path_resolve(&roots, "nosuch", MISSING, &none, &err), 0, "nothing");
	is_int(abx_path_open(&none, O_RDONLY, &err), -1, "cannot be opened");
	is_int(err.os_errno, ENOENT, "because it is not there");
	unlink("base/fifo");
	unlink("base/socket");
}

static void test_permissions(void)
{
	abx_auto_path struct abx_path path = ABX_PATH_INIT;
	struct abx_err err = ABX_ERR_INIT;
	int status;

	make_dir("%/closed");
	chmod(at("%/closed"), 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(9);
		int rc = abx_path_resolve(&roots, "closed/x", 0, &path, &err);
		_exit(rc < 0 && err.kind == ABX_E_ERRNO && err.os_errno == EACCES ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "a directory that may not be searched is told by errno");
	rmdir(at("%/closed"));
}

int main(int argc, char **argv)
{
	int fds;

	(void)argv;
	tree_open();
	fds = count_fds();
	test_open_roots();
	test_permissions();
	test_table();
	test_no_oracle();
	test_parents();
	test_lengths();
	test_names();
	test_root_itself();
	test_slash_root();
	test_several_roots();
	test_root_made_again();
	test_special_files();
	test_deep();
	is_int(count_fds(), fds, "no descriptor is left open");
	abx_roots_release(&roots);
	if (argc < 2)
		test_without_openat2();
	return done_testing();
}
