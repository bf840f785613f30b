#include "common/cage.h"
#include "common/responder.h"
#include "handlers/core/core.h"

static int init(struct abx_service *service, struct abx_err *err ABX_UNUSED)
{
	service->server_error = core_server_error;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-core",
		.group = ABX_GROUP_CORE,
		.max_threads = 64,
		.cage = ABX_CAGE_NO_EXEC | ABX_CAGE_NO_NETWORK | ABX_CAGE_NO_ADMIN,
		.init = init,
	};

	return abx_responder_main(argc, argv, &program);
}
