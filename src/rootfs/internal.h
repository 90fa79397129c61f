/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: what its files share among themselves. */
#ifndef LR_ROOTFS_INTERNAL_H
#define LR_ROOTFS_INTERNAL_H

#include "src/rootfs/rootfs.h"

/* Attach leaves no mount of the host's shared: nothing that is done after it reaches the host. */
bool lr_rootfs_host_is_deaf(const struct lr_rootfs_plan *plan);

/* Whether the kernel may have begun with a root of this type (statfs(2)): one in memory. */
bool lr_rootfs_may_be_first(long type);

/* Fills the three *_flags of the plan from linux.rootfsPropagation (NULL or "": the default). */
int lr_rootfs_propagation(struct lr_rootfs_plan *plan, const char *name,
			  struct lr_err *err) LR_MUST_CHECK;

/* Detaches every proc and sysfs of the host from the caller's mount namespace, or covers those that
 * are locked; mounts below rootfd are the container's and stay. host_is_deaf: no mount of the
 * host's is shared any more, so nothing done here can reach it. */
int lr_rootfs_hide_host(int rootfd, bool host_is_deaf, struct lr_err *err) LR_MUST_CHECK;

/* ---- cover.c --------------------------------------------------------------------------------- */

/* Cover what is open as `at`. 0 or -errno; -ENOTDIR or -EINVAL: it is of the other kind. `path`
 * leads to it, and is looked up again only on kernels without move_mount(2). */
int lr_rootfs_cover_file(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
			 const char *path, int at) LR_MUST_CHECK;
int lr_rootfs_cover_dir(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
			int at) LR_MUST_CHECK;
void lr_rootfs_covers_close(struct lr_rootfs_state *s);

/* Puts a cover on `name` in the directory `at`, which is no link, or, if it is "", on `at` itself.
 * -ENOENT: there is no such name. */
int lr_rootfs_cover_put(struct lr_rootfs_cover *c, int at, const char *name) LR_MUST_CHECK;

/* Mounts an empty file system on a directory, by mount(2). 0 or -errno. */
int lr_rootfs_mount_empty(const struct lr_rootfs_plan *plan, const char *on) LR_MUST_CHECK;

/* ---- known.c --------------------------------------------------------------------------------- */

/* The root directories of the procfs and sysfs on /proc and /sys. Paths below these are looked up
 * there. */
struct lr_rootfs_tops {
	int proc, sys;       /* LR_NOFD: not opened yet */
	int cwd;             /* the one of them that is the working directory, or LR_NOFD */
	bool may_be_covered; /* a path was protected that may have led to one of them */
};

/* A protected path that the kernel has, if at all, directly in a procfs or sysfs, and never as a
 * link. */
struct lr_rootfs_known {
	int top;          /* the root directory of that file system */
	const char *name; /* the path from there: without a slash */
	bool dir;         /* it is a directory */
};

/* Whether `path` is such a one; *dir is set in any case. */
bool lr_rootfs_is_known(const char *path, bool *dir);

/* -ENOENT: this kernel does not have it. Another -errno: nothing was done, and the long way has to be
 * taken. */
int lr_rootfs_known_mask(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
			 struct lr_rootfs_tops *t, const struct lr_rootfs_known *k) LR_MUST_CHECK;
int lr_rootfs_known_readonly(const struct lr_rootfs_plan *plan, struct lr_rootfs_tops *t,
			     const struct lr_rootfs_known *k) LR_MUST_CHECK;

/* Binds `from` on `at`, read-only, by mount(2), while the host's /proc is there. mount(2) returns
 * no descriptor of the new mount, so `path` is looked up once more; if that finds something else
 * than `from`, the call fails. */
int lr_rootfs_bind_ro(int rootfd, const char *path, int from, int at,
		      unsigned long flags) LR_MUST_CHECK;

/* Makes a mount that is open read-only, and those below it if the kernel has mount_setattr(2). */
int lr_rootfs_set_ro(int mounted) LR_MUST_CHECK;

/* Remounts what is mounted at `path` read-only and keeps its other flags, without
 * mount_setattr(2). 0 or -errno. */
int lr_rootfs_remount_ro(const char *path) LR_MUST_CHECK;

#endif
