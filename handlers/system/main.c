#include "common/cage.h"
#include "common/responder.h"

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-system",
		.group = ABX_GROUP_SYSTEM,
		.max_threads = 256, /* pip and npm are waited for */
		.cage = ABX_CAGE_NO_NETWORK | ABX_CAGE_SOCK_DIAG | ABX_CAGE_NO_ADMIN,
	};

	return abx_responder_main(argc, argv, &program);
}
