#include "common/worker.h"

#include <string.h>

void abx_worker_header(char kind, uint32_t len, unsigned char ret_header[ABX_WORKER_HEADER])
{
	const unsigned char header[ABX_WORKER_HEADER] = { (unsigned char)len, (unsigned char)(len >> 8), (unsigned char)(len >> 16),
							  (unsigned char)(len >> 24), (unsigned char)kind };

	memcpy(ret_header, header, sizeof(header));
}

/* The bytes of the payload that a frame of this kind has at most; -1: there is no such kind. */
static int64_t longest(char kind)
{
	switch (kind) {
	case 'Z':
		return 0;
	case 'F':
	case 'H':
		return ABX_WORKER_TEXT_MAX;
	case 'R':
	case 'D':
		return UINT32_MAX;
	default:
		return -1;
	}
}

int abx_worker_parse(const unsigned char header[ABX_WORKER_HEADER], struct abx_worker_frame *ret_frame)
{
	uint32_t len = (uint32_t)header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 | (uint32_t)header[3] << 24;

	if (header[5] || header[6] || header[7] || (int64_t)len > longest((char)header[4]))
		return -1;
	*ret_frame = (struct abx_worker_frame){ .kind = (char)header[4], .len = len };
	return 0;
}
