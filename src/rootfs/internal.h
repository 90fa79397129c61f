/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: what its files share among themselves. */
#ifndef LR_ROOTFS_INTERNAL_H
#define LR_ROOTFS_INTERNAL_H

#include "src/rootfs/rootfs.h"

/* The kernel, or a filter over it, does not offer a newer mount call: use the older one. */
static inline bool lr_rootfs_not_offered(int r)
{
	return r == -ENOSYS || r == -EPERM;
}

/* Fills the three *_flags of the plan from linux.rootfsPropagation (NULL or "": the default). */
int lr_rootfs_propagation(struct lr_rootfs_plan *plan, const char *name,
			  struct lr_err *err) LR_MUST_CHECK;

/* Detaches every proc and sysfs of the host from the caller's mount namespace, or covers those that
 * are locked; mounts below rootfd are the container's and stay. host_is_deaf: no mount of the
 * host's is shared any more, so nothing done here can reach it. */
int lr_rootfs_hide_host(int rootfd, bool host_is_deaf, struct lr_err *err) LR_MUST_CHECK;

/* The plan's read-only paths, once the host's tree is gone. */
int lr_rootfs_readonly_all(const struct lr_rootfs_plan *plan, struct lr_err *err) LR_MUST_CHECK;

/* Remounts what is mounted at `path` read-only and keeps its other flags, without
 * mount_setattr(2). 0 or -errno. */
int lr_rootfs_remount_ro(const char *path) LR_MUST_CHECK;

#endif
