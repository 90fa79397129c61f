/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netdev: network devices. The loopback device of a fresh network namespace, and
 * linux.netDevices (runtime-spec 1.3): devices of the host that move into the container.
 *
 * Speaks rtnetlink itself; an interface ioctl where that is one call instead of three.
 */
#ifndef LR_NETDEV_H
#define LR_NETDEV_H

#include <stdbool.h>
#include <stddef.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

/* Sets "lo" of the caller's network namespace up. Needs CAP_NET_ADMIN over it. Two system calls. *ret
 * is the socket, which the caller closes, or leaves to its execve. */
int lr_netdev_lo_up(int *ret, struct lr_err *err) LR_MUST_CHECK;

struct lr_netdev {
	const char *host_name;
	const char *name; /* in the container */
	bool is_template; /* the name holds %d: the first free number is taken */
};

struct lr_netdev_plan {
	const struct lr_netdev *v;
	size_t n;
};

/*
 * Pure. Checks names as the kernel does, that they are unique, and that there is a network
 * namespace to move devices to. `devices` may be NULL. -EINVAL or -ENOMEM; errors are at
 * linux.netDevices.<host name>.
 */
int lr_netdev_plan(const struct oci_net_devices *devices, const struct oci_namespaces *namespaces,
		   struct lr_arena *arena, const struct lr_netdev_plan **ret,
		   struct lr_err *err) LR_MUST_CHECK;

/*
 * Moves the devices from the caller's network namespace to that of `netns_fd`, renames them,
 * gives back their permanent addresses of global scope (moving takes all addresses), sets them up.
 * Call it in the runtime, not in the container: it changes the calling thread's network namespace
 * for a moment. If one fails, those that moved are brought back, as they were. Allocates from an
 * arena of its own. A name that is taken in the container is -EEXIST, a device the host does not
 * have -ENODEV, the host's own namespace -EINVAL.
 */
int lr_netdev_move(const struct lr_netdev_plan *plan, int netns_fd,
		   struct lr_err *err) LR_MUST_CHECK;

#endif
