/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netdev: the little of rtnetlink(7) that moving a device takes. A handle speaks to the network
 * namespace its socket was made in, whatever namespace the caller is in later.
 */
#ifndef LR_NETDEV_RTNL_H
#define LR_NETDEV_RTNL_H

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/err.h"

struct lr_rtnl {
	int fd;
	uint32_t seq;
	char why[128]; /* what the kernel said of the last failure; empty: nothing */
};

struct lr_rtnl_link {
	int index;
	unsigned flags; /* IFF_* */
};

/* One address as the kernel takes it back: a header, then attributes. */
struct lr_rtnl_addr {
	struct ifaddrmsg head;
	unsigned char local[16], peer[16], broadcast[16];
	bool has_local, has_peer, has_broadcast;
	char label[16];
	uint32_t flags, priority;
	uint8_t proto;
};

struct lr_rtnl_addrs {
	struct lr_rtnl_addr *v;
	size_t n;
};

/* All return 0 or -errno. */
int lr_rtnl_open(struct lr_rtnl *h); /* in the caller's network namespace; close h->fd */
int lr_rtnl_link_by_name(struct lr_rtnl *h, const char *name, struct lr_rtnl_link *ret);
int lr_rtnl_link_move(struct lr_rtnl *h, int index, int netns_fd, const char *name);
int lr_rtnl_link_up(struct lr_rtnl *h, int index);
/* Permanent addresses of global scope, in the kernel's order. */
int lr_rtnl_addrs(struct lr_rtnl *h, int index, struct lr_arena *arena, struct lr_rtnl_addrs *ret);
int lr_rtnl_addr_add(struct lr_rtnl *h, int index, const struct lr_rtnl_addr *a);

#endif
