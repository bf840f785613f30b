/* The handlers of the file_ops group. */
#ifndef ABX_HANDLERS_FILE_OPS_H
#define ABX_HANDLERS_FILE_OPS_H

#include "handlers/tables.h"

ABX_HANDLER(upload);
ABX_HANDLER(download);
ABX_HANDLER(files_stat);
ABX_HANDLER(files_list);
ABX_HANDLER(files_mkdir);
ABX_HANDLER(files_delete);
ABX_HANDLER(files_move);
ABX_HANDLER(files_search);
ABX_HANDLER(files_archive);
ABX_HANDLER(files_watch);
ABX_HANDLER(upload_stream);
ABX_HANDLER(download_stream);

#endif
