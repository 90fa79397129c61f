/* SPDX-License-Identifier: Apache-2.0 */
/* What tests need that read seeds by RDMA: soft-RoCE on eth0, listeners, connections. */
#pragma once
#include "lib.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

static inline struct sockaddr_in address_of(const char *name, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	CHECK(inet_pton(AF_INET, name, &a.sin_addr) == 1);
	return a;
}

static inline void attribute(struct nlmsghdr *message, int type, const char *text)
{
	struct nlattr *a = (void *)((char *)message + NLMSG_ALIGN(message->nlmsg_len));
	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + strlen(text) + 1;
	strcpy((char *)a + NLA_HDRLEN, text);
	message->nlmsg_len = NLMSG_ALIGN(message->nlmsg_len) + NLA_ALIGN(a->nla_len);
}

/* What `rdma link add rxe0 type rxe netdev eth0` does. */
static inline void add_rxe(void)
{
	union {
		struct nlmsghdr header;
		char space[512];
	} m = {.header = {.nlmsg_len = NLMSG_HDRLEN,
			  .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK}};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	CHECK(fd >= 0);
	attribute(&m.header, RDMA_NLDEV_ATTR_DEV_NAME, "rxe0");
	attribute(&m.header, RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
	attribute(&m.header, RDMA_NLDEV_ATTR_NDEV_NAME, "eth0");
	CHECK(send(fd, &m, m.header.nlmsg_len, 0) > 0);
	CHECK(recv(fd, &m, sizeof(m), 0) > 0);
	const struct nlmsgerr *answer = NLMSG_DATA(&m.header);
	errno = -answer->error;
	CHECK(answer->error == 0 || answer->error == -EEXIST);
	close(fd);
	sleep(1); /* its addresses come by a work item */
}

static inline int listen_at(const char *name, int port)
{
	struct sockaddr_in a = address_of(name, port);
	struct lean_seed_listen arg = {.address = (uintptr_t)&a, .length = sizeof(a)};
	int dev = device();
	int fd = ioctl(dev, LEAN_SEED_LISTEN, &arg);
	CHECK(fd >= 0);
	close(dev);
	return fd;
}

static inline struct lean_seed_token token_of(int seed)
{
	struct lean_seed_token token = {0};
	CHECK(ioctl(seed, LEAN_SEED_TOKEN, &token) == 0);
	return token;
}

static inline int try_connect(const char *name, int port, struct lean_seed_token token,
			      unsigned readahead)
{
	struct sockaddr_in a = address_of(name, port);
	struct lean_seed_connect arg = {.address = (uintptr_t)&a,
					.length = sizeof(a),
					.readahead = readahead,
					.timeout = 20000};
	memcpy(arg.token, token.token, sizeof(arg.token));
	int dev = device();
	int fd = ioctl(dev, LEAN_SEED_CONNECT, &arg);
	int error = errno;
	close(dev);
	errno = error;
	return fd;
}

static inline int connect_to(const char *name, int port, struct lean_seed_token token,
			     unsigned readahead)
{
	int fd = try_connect(name, port, token, readahead);
	CHECK(fd >= 0);
	return fd;
}
