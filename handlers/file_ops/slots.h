/*
 * Calls that may last as long as their caller likes (streams, transfers at the caller's speed) may not take all threads: what is quick always
 * finds one.
 */
#ifndef ABX_FILE_OPS_SLOTS_H
#define ABX_FILE_OPS_SLOTS_H

#include "common/err.h"

/* Threads of the responder, and how many of them long calls can have. */
#define FILE_OPS_THREADS 256
#define FILE_OPS_SLOTS   192

/* 0, or -1: ABX_E_TABLE_FULL. */
int slot_take(struct abx_err *err);
void slot_release(const int *slot);
#define auto_slot __attribute__((cleanup(slot_release)))

#endif
