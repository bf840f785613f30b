#include "handlers/file_ops/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tree.h"
#include "common/utf8.h"

#define PIECE ((size_t)64 << 10)

/* ---- libarchive */

static la_ssize_t put_bytes(struct archive *archive, void *ctx, const void *data, size_t len)
{
	struct pack *pack = ctx;

	pack->bytes += (int64_t)len;
	if (pack->max_bytes > 0 && pack->bytes > pack->max_bytes)
		abx_err_set(pack->err, ABX_E_TOO_LARGE, "The archive has more than %lld bytes", (long long)pack->max_bytes);
	else if (pack->put(pack->ctx, data, len, pack->err) == 0)
		return (la_ssize_t)len;
	archive_set_error(archive, EIO, "refused");
	return -1;
}

/* What libarchive says of a call; a warning is none of ours (a name that is not UTF-8 is one). */
static int check(struct pack *pack, int result)
{
	const char *why;

	if (result == ARCHIVE_OK || result == ARCHIVE_WARN)
		return 0;
	if (pack->err->kind != ABX_E_NONE)
		return -1;
	why = archive_error_string(pack->archive);
	return abx_err_set(pack->err, ABX_E_INTERNAL, "Cannot write the archive: %s", why ? why : "out of memory");
}

int pack_begin(struct pack *pack, enum pack_format format, struct abx_err *err)
{
	struct archive *archive = archive_write_new();

	pack->err = err;
	pack->archive = archive;
	pack->entry = archive_entry_new();
	pack->piece = malloc(PIECE);
	pack->member = (struct abx_strbuf)ABX_STRBUF_INIT;
	/* A tar file keeps any bytes; the names of a zip file are UTF-8, or readers refuse all of it. */
	pack->text_names = format == PACK_ZIP;
	if (!archive || !pack->entry || !pack->piece)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (format == PACK_ZIP) {
		if (check(pack, archive_write_set_format_zip(archive)) < 0)
			return -1;
	} else if (check(pack, archive_write_set_format_pax(archive)) < 0 ||
		   check(pack, archive_write_add_filter_gzip(archive)) < 0 ||
		   /* The same files make the same archive, whenever it is made. */
		   check(pack, archive_write_set_filter_option(archive, "gzip", "timestamp", NULL)) < 0) {
		return -1;
	}
	if (check(pack, archive_write_set_bytes_per_block(archive, (int)PIECE)) < 0 ||
	    check(pack, archive_write_set_bytes_in_last_block(archive, 1)) < 0)
		return -1;
	return check(pack, archive_write_open(archive, pack, NULL, put_bytes, NULL));
}

int pack_end(struct pack *pack, struct abx_err *err)
{
	pack->err = err;
	return check(pack, archive_write_close(pack->archive));
}

void pack_release(struct pack *pack)
{
	if (pack->archive) {
		/* What was begun and not ended is not to be ended now. */
		archive_write_fail(pack->archive);
		archive_write_free(pack->archive);
	}
	archive_entry_free(pack->entry);
	free(pack->piece);
	abx_strbuf_release(&pack->member);
}

/* ---- one member */

static int begin_member(struct pack *pack, const struct stat *st, const char *link)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct archive_entry *entry = archive_entry_clear(pack->entry);

	if (pack->text_names)
		abx_utf8_lossy(pack->member.buf, pack->member.len, &text);
	if (text.failed)
		return abx_err_set(pack->err, ABX_E_INTERNAL, "Out of memory");
	archive_entry_copy_pathname(entry, pack->text_names ? text.buf : pack->member.buf);
	archive_entry_set_mode(entry, st->st_mode);
	archive_entry_set_uid(entry, st->st_uid);
	archive_entry_set_gid(entry, st->st_gid);
	archive_entry_set_mtime(entry, st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	archive_entry_set_size(entry, S_ISREG(st->st_mode) ? st->st_size : 0);
	if (link)
		archive_entry_copy_symlink(entry, link);
	return check(pack, archive_write_header(pack->archive, entry));
}

static int count_file(struct pack *pack)
{
	if (pack->max_files > 0 && ++pack->files > pack->max_files)
		return abx_err_set(pack->err, ABX_E_VALUE, "There are more than %lld files", (long long)pack->max_files);
	return 0;
}

/* Work for a caller who has gone is for nobody. */
static int check_caller(struct pack *pack)
{
	struct pollfd pfd = { .fd = pack->req->io->client_fd, .events = POLLRDHUP };

	if (pfd.fd >= 0 && poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLRDHUP | POLLHUP | POLLERR)))
		return abx_err_set(pack->err, ABX_E_GONE, "The client left before the archive was made");
	return 0;
}

static int add_bytes(struct pack *pack, int fd, const struct stat *st)
{
	int64_t left = st->st_size;

	while (left > 0) {
		ssize_t n = read(fd, pack->piece, left < (int64_t)PIECE ? (size_t)left : PIECE);

		if (n < 0)
			return abx_err_errno(pack->err, errno, "Cannot read %s", pack->member.buf);
		if (n == 0)
			return abx_err_set(pack->err, ABX_E_INTERNAL, "The file became shorter while it was read: %s",
					   pack->member.buf);
		if (archive_write_data(pack->archive, pack->piece, (size_t)n) != n)
			return check(pack, ARCHIVE_FATAL);
		left -= n;
		if (left % ((int64_t)64 * (int64_t)PIECE) == 0 && check_caller(pack) < 0)
			return -1;
	}
	return 0;
}

/* Takes over `fd`, the file opened for reading. */
static int add_file(struct pack *pack, int fd)
{
	abx_auto_fd int file = fd;
	struct stat st;

	if (file < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO))
		return 0;
	if (file < 0 || fstat(file, &st) < 0)
		return abx_err_errno(pack->err, errno, "Cannot read %s", pack->member.buf);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (count_file(pack) < 0 || check_caller(pack) < 0 || begin_member(pack, &st, NULL) < 0)
		return -1;
	return add_bytes(pack, file, &st);
}

/* A link that stays inside is kept, whether or not something is there. */
static bool stays_inside(const struct pack *pack, const struct abx_tree_entry *entry)
{
	abx_auto_path struct abx_path target = ABX_PATH_INIT;
	struct abx_err unused = ABX_ERR_INIT;

	return abx_path_resolve(pack->req->roots, entry->path, ABX_PATH_MISSING, &target, &unused) == 0;
}

static int add_link(struct pack *pack, const struct abx_tree_entry *entry)
{
	char text[PATH_MAX];
	ssize_t n;

	if (!stays_inside(pack, entry))
		return 0;
	n = readlinkat(entry->dir_fd, entry->name, text, sizeof(text) - 1);
	if (n < 0)
		return 0;
	text[n] = '\0';
	return count_file(pack) < 0 ? -1 : begin_member(pack, &entry->st, text);
}

static int add_entry(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err)
{
	struct pack *pack = ctx;

	pack->err = err;
	abx_strbuf_truncate(&pack->member, pack->top_len);
	abx_strbuf_addc(&pack->member, '/');
	abx_strbuf_adds(&pack->member, entry->relative);
	if (pack->member.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (S_ISDIR(entry->st.st_mode))
		return begin_member(pack, &entry->st, NULL);
	if (S_ISREG(entry->st.st_mode))
		return add_file(pack, abx_open_entry(entry->dir_fd, entry->name, O_RDONLY));
	if (S_ISLNK(entry->st.st_mode))
		return add_link(pack, entry);
	return 0;
}

static int count_entry(void *ctx, const struct abx_tree_entry *entry, struct abx_err *err)
{
	struct pack *pack = ctx;

	pack->err = err;
	if (S_ISREG(entry->st.st_mode) || (S_ISLNK(entry->st.st_mode) && stays_inside(pack, entry)))
		return count_file(pack);
	return 0;
}

int pack_count(struct pack *pack, const struct abx_path *path, struct abx_err *err)
{
	const struct abx_tree tree = {
		.top = path,
		.roots = pack->req->roots,
		.flags = ABX_TREE_STAT | ABX_TREE_STRICT,
		.visit = count_entry,
		.ctx = pack,
	};

	pack->err = err;
	if (S_ISREG(path->st.st_mode))
		return count_file(pack);
	return S_ISDIR(path->st.st_mode) ? abx_tree_walk(&tree, err) : 0;
}

int pack_add(struct pack *pack, const struct abx_path *path, const char *name, struct abx_err *err)
{
	const struct abx_tree tree = {
		.top = path,
		.roots = pack->req->roots,
		.flags = ABX_TREE_STAT | ABX_TREE_STRICT,
		.visit = add_entry,
		.ctx = pack,
	};

	pack->err = err;
	abx_strbuf_reset(&pack->member);
	abx_strbuf_adds(&pack->member, name);
	pack->top_len = pack->member.len;
	if (S_ISREG(path->st.st_mode)) {
		int fd = abx_path_open(path, O_RDONLY, err);

		return fd < 0 ? -1 : add_file(pack, fd);
	}
	if (!S_ISDIR(path->st.st_mode))
		return 0;
	if (begin_member(pack, &path->st, NULL) < 0)
		return -1;
	return abx_tree_walk(&tree, err);
}
