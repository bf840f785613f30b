#include "common/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/auto.h"

enum answer { ANSWER_OPEN, ANSWER_CLOSED, ANSWER_ABSENT, ANSWER_UNKNOWN };

static const char *variable(char *const *params, const char *name)
{
	size_t len = strlen(name);

	for (; *params; params++)
		if (strncmp(*params, name, len) == 0 && (*params)[len] == '=')
			return *params + len + 1;
	return "";
}

/* 0 for what is no port. */
static uint16_t port_parse(const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && port <= UINT16_MAX ? htons((uint16_t)port) : 0;
}

void abx_peer_init(struct abx_peer *peer, char *const *params)
{
	const char *remote = variable(params, "REMOTE_ADDR"), *local = variable(params, "SERVER_ADDR");
	int family = strchr(remote, ':') ? AF_INET6 : AF_INET;

	*peer = (struct abx_peer){
		.id = {
			.idiag_sport = port_parse(variable(params, "SERVER_PORT")),
			.idiag_dport = port_parse(variable(params, "REMOTE_PORT")),
			.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
		},
	};
	if (peer->id.idiag_sport && peer->id.idiag_dport && inet_pton(family, local, peer->id.idiag_src) == 1 &&
	    inet_pton(family, remote, peer->id.idiag_dst) == 1)
		peer->family = family;
}

static int diag_send(int fd, const struct abx_peer *peer)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.body = {
			.sdiag_family = (uint8_t)peer->family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0U,
			.id = peer->id,
		},
	};

	return send(fd, &request, sizeof(request), 0) == (ssize_t)sizeof(request) ? 0 : -1;
}

/* A connection that is no more is looked up as far as the socket that listens. */
static enum answer answer_read(struct nlmsghdr *head, size_t len)
{
	const struct inet_diag_msg *found = NLMSG_DATA(head);
	const struct nlmsgerr *failed = NLMSG_DATA(head);

	if (!NLMSG_OK(head, (unsigned)len))
		return ANSWER_UNKNOWN;
	if (head->nlmsg_type == NLMSG_ERROR)
		return head->nlmsg_len >= NLMSG_LENGTH(sizeof(*failed)) && failed->error == -ENOENT ? ANSWER_ABSENT : ANSWER_UNKNOWN;
	if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || head->nlmsg_len < NLMSG_LENGTH(sizeof(*found)))
		return ANSWER_UNKNOWN;
	if (found->idiag_state == TCP_LISTEN)
		return ANSWER_ABSENT;
	return found->idiag_state == TCP_ESTABLISHED ? ANSWER_OPEN : ANSWER_CLOSED;
}

static enum answer ask(const struct abx_peer *peer)
{
	abx_auto_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	union {
		struct nlmsghdr head;
		char bytes[1024];
	} answer;
	ssize_t len;

	if (fd < 0 || diag_send(fd, peer) < 0)
		return ANSWER_UNKNOWN;
	/* The kernel has answered before the request's send returned. */
	len = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	return len > 0 ? answer_read(&answer.head, (size_t)len) : ANSWER_UNKNOWN;
}

bool abx_peer_has_left(struct abx_peer *peer)
{
	enum answer answer = peer->family ? ask(peer) : ANSWER_UNKNOWN;

	if (answer == ANSWER_UNKNOWN || (answer == ANSWER_ABSENT && !peer->seen))
		peer->family = 0;
	if (answer == ANSWER_OPEN)
		peer->seen = true;
	return answer == ANSWER_CLOSED || (answer == ANSWER_ABSENT && peer->seen);
}
