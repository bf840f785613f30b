#include "common/cage.h"
#include "common/responder.h"
#include "handlers/file_ops/slots.h"

int main(int argc, char **argv)
{
	static const struct abx_program program = {
		.name = "abx-file-ops",
		.group = ABX_GROUP_FILE_OPS,
		.max_threads = FILE_OPS_THREADS,
		.cage = ABX_CAGE_NO_EXEC | ABX_CAGE_NO_NETWORK | ABX_CAGE_NO_ADMIN,
	};

	return abx_responder_main(argc, argv, &program);
}
