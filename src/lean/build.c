/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean: the container's tree without the container, in a child of ours whose mount namespace is
 * pinned when it is done. The same rooms do it that build any container's root. Masked and
 * read-only paths are not in it: where they lie is known when the container's own mounts are there.
 */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/device/device.h"
#include "src/lean/internal.h"
#include "src/mount/mount.h"
#include "src/rootfs/rootfs.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

struct tree {
	const struct lr_rootfs_plan *rootfs;
	struct lr_rootfs_state state;
	struct lr_mount_plan *mounts, *own;
	const struct lr_device_plan *devices;
};

static int plan_tree(const struct lr_lean_plan *p, const struct lr_lean_env *env,
		     struct lr_arena *a, struct tree *t, struct lr_err *err)
{
	const struct oci_linux *l = p->config->linux_;
	const struct lr_rootfs_opts root_opts = {
		.bundle = env->bundle, .mount_label = l->mount_label, .new_mount_ns = true};
	const struct lr_mount_opts mount_opts = {.bundle = env->bundle,
						 .mount_label = l->mount_label};
	const struct lr_device_opts dev_opts = {.needs_dev = true};

	*t = (struct tree){.state = LR_ROOTFS_STATE_INIT};
	int r = lr_rootfs_plan(p->config->root, "rprivate", NULL, NULL, &root_opts, a, &t->rootfs,
			       err);
	if (r >= 0)
		r = lr_mount_plan(&p->base, &mount_opts, a, &t->mounts, err);
	if (r >= 0)
		r = lr_mount_plan(&p->own, &mount_opts, a, &t->own, err);
	if (r >= 0)
		r = lr_device_plan(&l->devices, &dev_opts, a, &t->devices, err);
	return r;
}

static int fill_dev(const struct tree *t, struct lr_err *err)
{
	LR_CLEANUP_FD int dev = lr_rootfs_open_dev(t->state.rootfd, err);
	int r = dev < 0 ? dev : lr_device_apply(t->devices, t->state.rootfd, dev, false, err);

	if (r >= 0)
		r = lr_rootfs_dev_links(dev, err);
	/* What a container's terminal is bound on. */
	if (r >= 0 && mknodat(dev, "console", S_IFREG | 0600, 0) < 0 && errno != EEXIST)
		r = lr_fail(err, errno, "make /dev/console");
	return r;
}

static int close_tree(const struct lr_lean_plan *p, struct lr_err *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	bool all = p->profile.way[LR_LEAN_ROOTFS] == LR_LEAN_RO;

	/* Shared by containers: not even root of one may change it for the others. */
	int r = lr_mount_setattr(AT_FDCWD, all ? "/" : "/dev", all ? AT_RECURSIVE : 0, &attr);
	if (r == -ENOSYS)
		return lr_err_hint(
			(lr_fail(err, ENOSYS, "make the template read-only"), err),
			"templates need Linux 5.12; --lean=lean,mounts=config does without");
	return r < 0 ? lr_fail(err, -r, "make the template read-only") : 0;
}

int lr_lean_build(const struct lr_lean_plan *p, const struct lr_lean_env *env,
		  const struct lr_mount_cgroup_view *view, int netns, struct lr_arena *a,
		  struct lr_err *err)
{
	struct tree t;

	umask(0); /* of a child of ours */
	int r = plan_tree(p, env, a, &t, err);
	/* sysfs shows the network namespace of whoever mounts it. */
	if (r >= 0 && netns >= 0 && (r = lr_setns(netns, CLONE_NEWNET)) < 0)
		r = lr_fail(err, -r, "enter the shared network namespace");
	if (r >= 0 && (r = lr_unshare(CLONE_NEWNS)) < 0)
		r = lr_fail(err, -r, "make a mount namespace");
	if (r >= 0)
		r = lr_rootfs_attach(t.rootfs, &t.state, err);
	const struct lr_mount_env menv = {
		.rootfd = t.state.rootfd, .procfd = LR_NOFD, .cgroup = view, .alone = true};
	if (r >= 0)
		r = lr_mount_apply(t.mounts, &menv, err);
	if (r >= 0)
		r = fill_dev(&t, err);
	if (r >= 0)
		r = lr_mount_make_places(t.own, &menv, err);
	if (r >= 0)
		r = lr_mount_finish(t.mounts, &menv, err);
	if (r >= 0)
		r = lr_rootfs_pivot(t.rootfs, &t.state, err);
	if (r >= 0)
		r = lr_rootfs_finish(t.rootfs, err);
	return r < 0 ? r : close_tree(p, err);
}
