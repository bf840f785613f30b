#include <locale.h>
#include <stdlib.h>

#include "common/cage.h"
#include "common/responder.h"
#include "handlers/file_ops/slots.h"
#include "handlers/file_ops/spool.h"

/* The allowed trees and the spool directory: nothing else is there for this program. */
static int confine(const struct abx_service *service, struct abx_err *err)
{
	size_t n = service->roots.n;
	abx_auto_free int *fds = calloc(n + 1, sizeof(*fds));

	if (!fds)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	for (size_t i = 0; i < n; i++)
		fds[i] = service->roots.roots[i].fd;
	fds[n] = spool_directory();
	return abx_cage_trees(fds, n + 1, err);
}

static int init(struct abx_service *service, struct abx_err *err)
{
	/* libarchive takes names for text of the locale. */
	setlocale(LC_CTYPE, "C.UTF-8");
	if (spool_init(service->policy->spool_dir, err) < 0)
		return -1;
	return ABX_CAGES ? confine(service, err) : 0;
}

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-file-ops",
		.group = ABX_GROUP_FILE_OPS,
		.max_threads = FILE_OPS_THREADS,
		.cage = ABX_CAGE_NO_EXEC | ABX_CAGE_NO_NETWORK | ABX_CAGE_NO_ADMIN,
		.init = init,
	};

	return abx_responder_main(argc, argv, &program);
}
