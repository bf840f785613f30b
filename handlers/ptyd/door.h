/*
 * The door: connections to the pty port until it is known what they want. Their head is peeked at, judged by the policy, and taken off the socket; then it is
 * either answered with an error or handed over as a WebSocket (client.h).
 */
#ifndef PTYD_DOOR_H
#define PTYD_DOOR_H

#include "handlers/ptyd/loop.h"
#include "policy/policy.h"

/* Connections whose head has not come. When one more knocks, the oldest is given up. */
#define PTY_KNOCKING_MAX 128

/* How long a head may take. */
#define PTY_HEAD_MS 10000

/* Takes the policy over. */
int pty_door_open(struct abx_policy *policy, struct abx_err *err);

/* From now on judge by the policy that was published as `fd`. -1: it cannot be read, and the old one stays. */
int pty_door_follow(int fd, struct abx_err *err);
int64_t pty_door_tick(int64_t now_ms);

#endif
