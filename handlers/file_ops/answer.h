/* Members of answers that several endpoints have. */
#ifndef ABX_FILE_OPS_ANSWER_H
#define ABX_FILE_OPS_ANSWER_H

#include <sys/stat.h>

#include "common/json.h"

/* A path or name under `key`, and as bytes under "<key>_base64" too where it is not UTF-8. */
void answer_path(struct abx_json_writer *jw, const char *key, const char *path);

/* A time in ISO 8601. */
void answer_time(struct abx_json_writer *jw, const char *key, struct timespec ts);

/* "directory" or "file": what is no directory is a file to lists (contract: a symbolic link too). */
const char *answer_list_type(mode_t mode);

#endif
