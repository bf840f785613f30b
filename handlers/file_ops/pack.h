/* Archives: trees into tar.gz or zip, by libarchive. */
#ifndef ABX_FILE_OPS_PACK_H
#define ABX_FILE_OPS_PACK_H

#include <archive.h>
#include <archive_entry.h>

#include "common/request.h"

enum pack_format { PACK_TAR_GZ, PACK_ZIP };

struct pack {
	struct abx_request *req;
	int64_t max_files, max_bytes; /* of the archive; more is ABX_E_VALUE and ABX_E_TOO_LARGE */
	/* Takes the bytes of the archive. 0, or -1 with *err. */
	int (*put)(void *ctx, const void *data, size_t len, struct abx_err *err);
	void *ctx;
	/* private */
	struct archive *archive;
	struct archive_entry *entry;
	bool text_names;
	struct abx_strbuf member; /* the name of the current one */
	size_t top_len;           /* of the given path's last component in it */
	int64_t files, bytes;
	char *piece;
	struct abx_err *err;
};

/* Begin an archive; the members above "private" are set. Release it in any case. */
int pack_begin(struct pack *pack, enum pack_format format, struct abx_err *err);

/* Count what pack_add would add: -1 when it is too much, or cannot be read. Nothing else is done. */
int pack_count(struct pack *pack, const struct abx_path *path, struct abx_err *err);

/* Add what the path stands for, and everything below it, under `name`. */
int pack_add(struct pack *pack, const struct abx_path *path, const char *name, struct abx_err *err);

/* Write what is still to be written. */
int pack_end(struct pack *pack, struct abx_err *err);
void pack_release(struct pack *pack);
#define auto_pack __attribute__((cleanup(pack_release)))

#endif
