#include "common/responder.h"

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-commands",
		.group = ABX_GROUP_COMMANDS,
		.max_threads = 256,
	};

	return abx_responder_main(argc, argv, &program);
}
