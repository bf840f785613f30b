#include "common/responder.h"

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-skeleton",
		.group = ABX_GROUP_SYSTEM, /* a new group has a value of its own in enum abx_group */
		.max_threads = 16,
	};

	return abx_responder_main(argc, argv, &program);
}
