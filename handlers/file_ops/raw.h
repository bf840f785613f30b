/* Files as they are: the raw form of the download endpoints. */
#ifndef ABX_FILE_OPS_RAW_H
#define ABX_FILE_OPS_RAW_H

#include "common/transfer.h"

/* Answer with the file, a part of it, or that the caller has it already. */
int raw_send(struct abx_request *req, const struct abx_file *file, struct abx_err *err);

#endif
