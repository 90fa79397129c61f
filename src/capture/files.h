/* SPDX-License-Identifier: Apache-2.0 */
/* capture: descriptors of others. */
#ifndef LR_CAPTURE_FILES_H
#define LR_CAPTURE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "src/base/arena.h"
#include "src/seed/format.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* A descriptor of ours for the same open file, or a negative errno. */
int cap_borrow(pid_t pid, int fd);

/* What the network namespace of a process says of one of its sockets. */
struct cap_socket {
	uint32_t inode;
	uint32_t
		backlog; /* of one that listens: how many may wait to be accepted; UINT32_MAX: it is not told */
	uint64_t peer;    /* the inode of its other end; 0: it has none, or it can't be known */
	uint8_t shut;     /* bit 0: it reads no more; bit 1: it writes no more */
	bool named;       /* it has a name: also one that was accepted, that of who listened */
	bool unconnected; /* it never had another end */
	bool is_signed;   /* it takes only what is signed (TCP_MD5SIG) */
};

/* The kinds that it lists: all Unix sockets; of TCP those that listen, and only whether they are signed. */
enum cap_kind { CAP_UNIX, CAP_TCP4, CAP_TCP6, CAP_KINDS };

/* All of a kind, by inode. To be told of one, the kernel has to be asked for all (TCP), or looks through all (Unix). */
struct cap_sockets {
	struct cap_socket *v;
	size_t n;
	unsigned asked; /* how often */
};

/* The kernel is asked anew if it is not in the list, a few times at the most. Returns a negative errno; -ENOENT: the
 * namespace has none with that inode. */
int cap_socket_find(struct lr_arena *a, pid_t pid, enum cap_kind kind, struct cap_sockets *all,
		    uint64_t inode, struct cap_socket *ret);

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
/* What is told of a socket of the container's network namespace; as cap_socket_find. */
int cap_socket_told(struct cap *c, enum cap_kind kind, uint64_t inode, struct cap_socket *ret);
/* Why one can't be carried that can't be asked. */
const char *cap_socket_failed(struct cap *c, int code);
/* Whether the error says that this kernel does not have that option, or such a socket. */
bool cap_socket_lacks(int code);
/* What was set of one of that domain, or LR_SEED_OF_PAIR, as a seed has it. Returns why it can't be carried, or
 * NULL. */
const char *cap_socket_options(struct cap *c, int fd, uint32_t domain, uint32_t *set,
			       int32_t *options);
/* An option that is not carried, its value as long as nobody sets it, and what one is that has another. */
struct cap_other {
	int level, name, usual;
	const char *what;
};
/* What the first one is that was set, or why that can't be told; NULL: none was. */
const char *cap_socket_other(struct cap *c, int fd, const struct cap_other *v, size_t n);
/* Whether it has a filter (SO_ATTACH_FILTER, SO_ATTACH_BPF). */
bool cap_socket_has_filter(int fd);
/* named.c: the name of a Unix socket that listens, its file, and how many may wait. The same. */
const char *cap_named_look(struct cap *c, const struct cap_file *f, int fd, struct cap_endpoint *e);

#endif
