#include "handlers/file_ops/slots.h"

#include <stdatomic.h>

static atomic_int taken;

int slot_take(struct abx_err *err)
{
	if (atomic_fetch_add(&taken, 1) < FILE_OPS_SLOTS)
		return 0;
	atomic_fetch_sub(&taken, 1);
	return abx_err_set(err, ABX_E_TABLE_FULL, "%d transfers and watches are running: try again when some have ended",
			   FILE_OPS_SLOTS);
}

void slot_release(const int *slot)
{
	if (*slot >= 0)
		atomic_fetch_sub(&taken, 1);
}
