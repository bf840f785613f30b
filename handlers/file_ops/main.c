#include <locale.h>
#include <stdlib.h>

#include "common/cage.h"
#include "common/responder.h"
#include "handlers/file_ops/slots.h"
#include "handlers/file_ops/spool.h"

static int add(int **fds, size_t *n, int fd, struct abx_err *err)
{
	int *grown = realloc(*fds, (*n + 1) * sizeof(*grown));

	if (!grown)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	*fds = grown;
	grown[(*n)++] = fd;
	return 0;
}

/* The trees that any endpoint may touch and the spool directory: nothing else is there for this program. */
static int confine(const struct abx_service *service, struct abx_err *err)
{
	abx_auto_free int *fds = NULL;
	size_t n = 0;

	for (size_t i = 0; i < *abx_groups[ABX_GROUP_FILE_OPS].n_rows; i++) {
		const struct abx_roots *roots = abx_service_roots(service, &abx_groups[ABX_GROUP_FILE_OPS].rows[i]);

		for (size_t k = 0; k < roots->n; k++)
			if (add(&fds, &n, roots->roots[k].fd, err) < 0)
				return -1;
	}
	if (add(&fds, &n, spool_directory(), err) < 0)
		return -1;
	abx_roots_renewed = abx_responder_outlived;
	return abx_cage_trees(fds, n, err);
}

static int init(struct abx_service *service, struct abx_err *err)
{
	/* libarchive takes names for text of the locale. */
	setlocale(LC_CTYPE, "C.UTF-8");
	if (spool_init(service->policy->spool_dir, err) < 0)
		return -1;
	return ABX_CAGES && !service->policy->cage_off[ABX_GROUP_FILE_OPS] ? confine(service, err) : 0;
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
