#include "common/responder.h"
#include "handlers/commands/commands.h"

static int load(struct abx_service *service, struct abx_err *err)
{
	return command_registry_load(service, err);
}

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-commands",
		.group = ABX_GROUP_COMMANDS,
		.max_threads = 256,
		.stack_size = (size_t)1 << 20, /* native commands are promised that much (abx/command.h) */
		.init = load,
	};

	return abx_responder_main(argc, argv, &program);
}
