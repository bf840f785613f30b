/* A service for a published policy: see struct abx_service. */
#ifndef ABX_SERVICE_H
#define ABX_SERVICE_H

#include "common/request.h"

/* Load the policy from `policy_fd`, and open what it names. Returns a service that abx_service_close frees, or NULL. */
struct abx_service *abx_service_open(enum abx_group group, int policy_fd, struct abx_board *board, struct abx_err *err);
void abx_service_close(struct abx_service *service);

#endif
