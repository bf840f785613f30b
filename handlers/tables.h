/* What the tables of all groups share. */
#ifndef ABX_TABLES_H
#define ABX_TABLES_H

#include "common/endpoint.h"

/*
 * Declare the handler of an endpoint. It is weak: NULL in the programs of other groups, which link the row but not the handler.
 */
#define ABX_HANDLER(id) abx_handler h_##id __attribute__((weak))

/* The arguments of a row. */
#define ABX_ARGS(array) .args = (array), .n_args = ABX_N(array)

/* A limit that is the setting ABX_MAX_UPLOAD_SIZE. */
#define ABX_LIMIT_UPLOAD (-1)

/* The rows of each group, in the order of the contract's section 2. */
#define ABX_TABLE(group)                                       \
	extern const struct abx_endpoint abx_rows_##group[];   \
	extern const size_t abx_n_rows_##group;                \
	extern const char *const abx_prefixes_##group[]

ABX_TABLE(core);
ABX_TABLE(commands);
ABX_TABLE(file_ops);
ABX_TABLE(process);
ABX_TABLE(terminal);
ABX_TABLE(system);
ABX_TABLE(dev_tools);
ABX_TABLE(browser);
ABX_TABLE(agents);

/* Define what ABX_TABLE declares, from the array `rows` and the prefixes that follow. */
#define ABX_TABLE_END(group) const size_t abx_n_rows_##group = ABX_N(abx_rows_##group)

#endif
