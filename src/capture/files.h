/* SPDX-License-Identifier: Apache-2.0 */
/* capture: descriptors of others. */
#ifndef LR_CAPTURE_FILES_H
#define LR_CAPTURE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/arena.h"
#include "src/seed/format.h"

/* A descriptor of ours for the same open file, or a negative errno. */
int cap_borrow(pid_t pid, int fd);

/* What the network namespace of a process says of all its Unix sockets, by inode. The kernel looks through all of them
 * for one, too, so it is asked once. */
struct cap_unix {
	uint32_t inode;
	uint32_t
		backlog; /* of one that listens: how many may wait to be accepted; UINT32_MAX: it is not told */
	uint64_t
		peer; /* the inode of its other end; 0: it has none, or a name, or it can't be known */
	uint8_t shut;     /* bit 0: it reads no more; bit 1: it writes no more */
	bool unconnected; /* it never had another end */
};
struct cap_unixes {
	struct cap_unix *v;
	size_t n;
	unsigned asked; /* how often */
};
int cap_unix_list(struct lr_arena *a, pid_t pid, struct cap_unixes *ret); /* or a negative errno */
const struct cap_unix *cap_unix_find(const struct cap_unixes *l, uint64_t inode);

/* All TCP sockets of a domain that listen there, by inode: the kernel can't be asked for one of them. */
struct cap_listener {
	uint32_t inode;
	bool is_signed; /* it takes only what is signed (TCP_MD5SIG) */
};
struct cap_listeners {
	struct cap_listener *v;
	size_t n;
	unsigned asked;
};
/* Again, if one is not there: while they run, it may be younger. But no more often, as it may also be of another
 * namespace, as others after it. */
#define CAP_LISTS 8U
int cap_tcp_list(struct lr_arena *a, pid_t pid, uint32_t domain,
		 struct cap_listeners *ret); /* or a negative errno */
const struct cap_listener *cap_tcp_find(const struct cap_listeners *l, uint64_t inode);

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
/* A Unix socket of the container's network namespace; or a negative errno. */
int cap_unix_look(struct cap *c, uint64_t inode, struct cap_unix *ret);
/* Why one can't be carried that can't be asked. */
const char *cap_socket_failed(struct cap *c, int code);
/* Whether the error says that this kernel does not have that option, or such a socket. */
bool cap_socket_lacks(int code);
/* named.c: the name of a Unix socket that listens, its file, and how many may wait. The same. */
const char *cap_named_look(struct cap *c, const struct cap_file *f, int fd, struct cap_endpoint *e);

#endif
