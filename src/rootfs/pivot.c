/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: entering the new root, and leaving the old one; see rootfs.h. */
#define LR_ROOM "rootfs"
#include <unistd.h>

#include "src/base/log.h"
#include "src/rootfs/internal.h"
#include "src/sys/syscalls.h"

bool lr_rootfs_host_is_deaf(const struct lr_rootfs_plan *plan)
{
	return plan->attach_flags & MS_REC && !(plan->attach_flags & MS_SHARED);
}

/*
 * pivot_root(".", "."): the old root ends stacked on the new one, and no directory is needed to put
 * it in (pivot_root(2), NOTES).
 */
static int pivot(const struct lr_rootfs_plan *plan, struct lr_err *err)
{
	int r = lr_pivot_root(".", ".");
	if (r < 0) {
		lr_fail(err, -r, "pivot_root to %s", plan->path);
		if (r == -EINVAL)
			lr_err_hint(err, "if the host runs from its initramfs, use --no-pivot");
		return r;
	}
	if (lr_rootfs_host_is_deaf(plan))
		return 0;
	/* Unmounting the host's tree must not reach the host. What is mounted on the root is where
	 * ".." leads from there. */
	if (chdir("/..") < 0 || mount(NULL, ".", NULL, MS_SLAVE | MS_REC, NULL) < 0 ||
	    chdir("/") < 0)
		return lr_fail(err, errno, "stopping propagation of the host's root");
	return 0;
}

/* For a root that pivot_root cannot leave. The host's tree stays mounted below, out of reach of
 * paths; its proc and sysfs, which would give power over the host, do not. */
static int move_root(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state,
		     struct lr_err *err)
{
	int r = lr_rootfs_hide_host(state->rootfd, lr_rootfs_host_is_deaf(plan), err);
	if (r < 0)
		return r;
	/* What is mounted on a shared "/" shows on the host. */
	if (!lr_rootfs_host_is_deaf(plan) && mount(NULL, "/", NULL, MS_SLAVE, NULL) < 0)
		return lr_fail(err, errno, "stopping propagation of the host's root");
	if (!state->over && mount(".", "/", NULL, MS_MOVE, NULL) < 0)
		return lr_fail(err, errno, "moving %s to the root", plan->path);
	if (chroot(".") < 0)
		return lr_fail(err, errno, "chroot to %s", plan->path);
	return 0;
}

int lr_rootfs_pivot(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state,
		    struct lr_err *err)
{
	/* That is the root already. The working directory may be below what was covered: mounts are
	 * made from there. */
	if (plan->prepared || state->bare >= 0)
		return chdir("/") < 0 ? lr_fail(err, errno, "entering %s", plan->path) : 0;
	if (fchdir(state->rootfd) < 0)
		return lr_fail(err, errno, "entering %s", plan->path);

	int r = 0;
	if (plan->new_mount_ns && plan->no_pivot)
		r = move_root(plan, state, err);
	else if (plan->new_mount_ns)
		r = pivot(plan, err);
	else if (chroot(".") < 0)
		r = lr_fail(err, errno, "chroot to %s", plan->path);
	if (r < 0)
		return lr_err_step(err, "pivot");
	lr_debug("rootfs: %s is the root", plan->path);
	return 0;
}

static int make_readonly(struct lr_err *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	int r = lr_mount_setattr(AT_FDCWD, "/", 0, &attr);

	if (lr_not_offered(r))
		r = lr_rootfs_remount_ro("/");
	if (r < 0) {
		lr_fail(err, -r, "making the root file system read-only");
		return lr_err_at(err, "root.readonly");
	}
	return 0;
}

int lr_rootfs_finish(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state,
		     struct lr_err *err)
{
	if (!plan->new_mount_ns || plan->prepared)
		return 0;
	/* The working directory is the new root, but unmounting "." takes what is on top. */
	if (!plan->no_pivot && state->bare < 0 && umount2(".", MNT_DETACH) < 0)
		return lr_fail(err, errno, "detaching the host's root");
	int r = plan->readonly ? make_readonly(err) : 0;
	if (r < 0)
		return r;
	if (plan->final_flags && mount(NULL, "/", NULL, plan->final_flags, NULL) < 0) {
		lr_fail(err, errno, "setting the propagation of the root file system");
		return lr_err_at(err, "linux.rootfsPropagation");
	}
	return 0;
}
