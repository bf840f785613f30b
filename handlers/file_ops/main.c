#include <locale.h>

#include "common/cage.h"
#include "common/responder.h"
#include "handlers/file_ops/slots.h"
#include "handlers/file_ops/spool.h"

static int init(struct abx_service *service, struct abx_err *err)
{
	/* libarchive takes names for text of the locale. */
	setlocale(LC_CTYPE, "C.UTF-8");
	return spool_init(service->policy->spool_dir, err);
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
