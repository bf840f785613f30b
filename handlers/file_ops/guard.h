/* Checks of paths that several endpoints make before they work. */
#ifndef ABX_FILE_OPS_GUARD_H
#define ABX_FILE_OPS_GUARD_H

#include "common/request.h"

/* Resolve the argument `name` to a directory. What is none, or missing, is ABX_E_NO_FILE. */
int guard_directory(struct abx_request *req, const char *name, struct abx_path *ret_path, struct abx_err *err);

/*
 * Whether the tree may be taken away from where it is: ABX_E_PATH for an allowed tree itself (the base directory above all), for what holds
 * one, and for what holds a denied path.
 */
int guard_removal(const struct abx_request *req, const struct abx_path *path, struct abx_err *err);

/* A refusal by a deny glob, met in the middle of the work, names the rule. Returns -1. */
int guard_denied(const struct abx_request *req, struct abx_err *err);

#endif
