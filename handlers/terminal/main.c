#include "common/cage.h"
#include "common/responder.h"

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-terminal",
		.group = ABX_GROUP_TERMINAL,
		.max_threads = 256,
		.cage = ABX_CAGE_NO_EXEC | ABX_CAGE_NO_NETWORK | ABX_CAGE_NO_ADMIN,
	};

	return abx_responder_main(argc, argv, &program);
}
