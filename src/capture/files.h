/* SPDX-License-Identifier: Apache-2.0 */
/* capture: descriptors of others. */
#ifndef LR_CAPTURE_FILES_H
#define LR_CAPTURE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/seed/format.h"

/* A descriptor of ours for the same open file, or a negative errno. */
int cap_borrow(pid_t pid, int fd);

/* What the network namespace of that process says of a Unix socket: the inode of its other end (0: it has none,
 * or a name, or it can't be known), and what is shut down (bit 0: it reads no more; bit 1: it writes no more). */
struct cap_unix {
	uint64_t peer;
	uint8_t shut;
	bool unconnected; /* it never had another end */
};
struct cap_unix cap_unix_look(pid_t pid, uint64_t inode);

/* How many may wait to be accepted at a Unix socket that listens there, or a negative errno. */
int64_t cap_unix_backlog(pid_t pid, uint64_t inode);

/* Whether a TCP socket that listens there takes only what is signed (TCP_MD5SIG); or a negative errno, and nobody
 * knows. The port is as the network has it. */
int cap_tcp_is_signed(pid_t pid, uint64_t inode, uint32_t domain, uint16_t port);

/* Whether it has sockets with a policy of IPsec of their own (IP_XFRM_POLICY): the kernel counts them, and does not
 * tell which they are. Or a negative errno. */
int cap_net_has_policies(pid_t pid);

/* The congestion control that a new TCP socket there begins with; 0 or a negative errno. */
int cap_net_congestion(pid_t pid, char ret[LR_SEED_NAME]);

struct cap;
struct cap_file;
struct cap_endpoint;
/* sockets.c: a socket that is of no pair, by a descriptor of ours. Returns why it can't be carried, or
 * NULL. */
const char *cap_endpoint_look(struct cap *c, struct cap_file *f, int fd);
/* The same of one that can't be asked. */
const char *cap_socket_failed(struct cap *c, int code);
/* Whether the error says that this kernel does not have that option, or such a socket. */
bool cap_socket_lacks(int code);
/* named.c: the name of a Unix socket that listens, its file, and how many may wait. The same. */
const char *cap_named_look(struct cap *c, const struct cap_file *f, int fd, struct cap_endpoint *e);

#endif
