#include "common/responder.h"
#include "common/workdir.h"

static int init(struct abx_service *service, struct abx_err *err ABX_UNUSED)
{
	/* Temporary directories of confined commands. */
	abx_workdir_sweep(service->policy->spool_dir);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-process",
		.group = ABX_GROUP_PROCESS,
		.max_threads = 256,
		.init = init,
	};

	return abx_responder_main(argc, argv, &program);
}
