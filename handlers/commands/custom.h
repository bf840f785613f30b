/* What manifest and native commands share: arguments in, result out, and the files of their directory. */
#ifndef ABX_COMMANDS_CUSTOM_H
#define ABX_COMMANDS_CUSTOM_H

#include "handlers/commands/commands.h"

/* ---- coerce.c */

/* The type of this name ("string", "int", …): 0 and *ret_type, or -1. */
int command_arg_type(const char *name, enum abx_arg_type *ret_type);

/* The names that command_arg_type knows, NULL-terminated. */
extern const char *const command_arg_type_names[];

/*
 * Append the call's arguments as one JSON object: coerced to their types, defaults filled in, what the command does not know left out, null as it was sent. ABX_E_VALUE for a value that
 * cannot be coerced and a required one that is missing.
 */
int command_arguments(const struct abx_request *req, const struct command *command, struct abx_strbuf *out, struct abx_err *err);

/* ---- result.c */

/* Answer {"result": …} with `text`, which has to be one JSON value, or nothing (null). ABX_E_INTERNAL when it is something else. */
int command_result(struct abx_request *req, const struct command *command, const char *text, size_t len, struct abx_err *err);

/* Fail with a message of any length, and bytes. Returns -1. */
int command_fail(struct abx_request *req, const char *message, size_t len, struct abx_err *err);

/* ---- files.c */

/*
 * The files of the directory of commands whose names end in one of `endings` (NULL-terminated), as paths in the order of their names; hidden ones are left out. *ret_files is
 * a NULL-terminated list for abx_list_free: an empty one when there is no such directory. ABX_E_VALUE when it cannot be read.
 */
int command_files(const char *dir, const char *const *endings, char ***ret_files, struct abx_err *err);

/* ---- the kinds */

int command_load_manifests(const struct abx_service *service, struct abx_err *err);
int command_load_natives(const struct abx_service *service, struct abx_err *err);

#endif
