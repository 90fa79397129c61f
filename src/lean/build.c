/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean: makes a template, the container's tree before there is a container, in a child of ours
 * whose mount namespace is pinned when it is done. The same rooms do it that make any container's
 * root. Masked and read-only paths are left out: what they lead to is known only when the
 * container's own mounts are there.
 */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/lean/internal.h"
#include "src/sys/syscalls.h"
#include "src/tree/tree.h"

static int plan_tree(const struct lr_lean_plan *p, const struct lr_lean_env *env,
		     const struct lr_mount_cgroup_view *view, struct lr_arena *a, struct lr_tree *t,
		     struct lr_mount_plan **own, struct lr_err *err)
{
	const struct oci_linux *l = p->config->linux_;
	const struct lr_tree_opts opts = {.bundle = env->bundle,
					  .here = &p->base,
					  .propagation = "rprivate",
					  .new_mount_ns = true,
					  .kind = LR_TREE_TEMPLATE};
	const struct lr_mount_opts later = {.bundle = env->bundle, .mount_label = l->mount_label};

	int r = lr_tree_plan(p->config->root, l, &opts, a, t, err);
	t->cgroup = view;
	return r < 0 ? r : lr_mount_plan(&p->own, &later, a, own, err);
}

/* The file that a container's terminal is bound on. */
static int make_console(const struct lr_tree *t, struct lr_err *err)
{
	LR_CLEANUP_FD int dev = lr_rootfs_open_dev(t->state.rootfd, err);

	if (dev < 0)
		return dev;
	return mknodat(dev, "console", S_IFREG | 0600, 0) < 0 && errno != EEXIST
		       ? lr_fail(err, errno, "make /dev/console")
		       : 0;
}

static int close_tree(const struct lr_lean_plan *p, struct lr_err *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	bool all = p->profile.way[LR_LEAN_ROOTFS] == LR_LEAN_RO;

	/* Read-only, as containers share it: not even root of one may change it for the others. */
	int r = lr_mount_setattr(AT_FDCWD, all ? "/" : "/dev", all ? AT_RECURSIVE : 0, &attr);
	if (r == -ENOSYS)
		return lr_err_hint(
			(lr_fail(err, ENOSYS, "make the template read-only"), err),
			"templates need Linux 5.12; --lean=lean,mounts=config does without");
	return r < 0 ? lr_fail(err, -r, "make the template read-only") : 0;
}

/* The slot is kept for containers of the root that the plan has seen. */
static int check_root(const struct lr_lean_plan *p, const struct lr_tree *t, struct lr_err *err)
{
	struct statx st;

	if (p->image)
		return 0; /* its mount is named by what the file was */
	int r = lr_statx(t->state.rootfd, "", AT_EMPTY_PATH, STATX_INO, &st);
	if (r < 0)
		return lr_fail(err, -r, "look at %s", p->rootfs);
	if (st.stx_ino == p->seen.ino &&
	    ((uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor) == p->seen.dev)
		return 0;
	lr_refuse(err, EAGAIN, "%s was replaced by another directory while a template was made",
		  p->rootfs);
	return lr_err_at(err, "root.path");
}

int lr_lean_build(const struct lr_lean_plan *p, const struct lr_lean_env *env,
		  const struct lr_mount_cgroup_view *view, int netns, struct lr_arena *a,
		  struct lr_err *err)
{
	struct lr_tree t = LR_TREE_NONE;
	const struct lr_tree_env tenv = {.procfd = LR_NOFD};
	struct lr_mount_plan *own;

	umask(0); /* our child's */
	int r = plan_tree(p, env, view, a, &t, &own, err);
	/* sysfs shows the network namespace of the process that mounts it. */
	if (r >= 0 && netns >= 0 && (r = lr_setns(netns, CLONE_NEWNET)) < 0)
		r = lr_fail(err, -r, "enter the shared network namespace");
	if (r >= 0 && (r = lr_unshare(CLONE_NEWNS)) < 0)
		r = lr_fail(err, -r, "make a mount namespace");
	if (r >= 0)
		r = lr_tree_attach(&t, err);
	if (r >= 0)
		r = check_root(p, &t, err);
	if (r >= 0)
		r = lr_tree_mount(&t, &tenv, err);
	if (r >= 0)
		r = lr_tree_devices(&t, &tenv, err);
	if (r >= 0)
		r = make_console(&t, err);
	if (r >= 0)
		r = lr_tree_make_places(&t, own, err);
	if (r >= 0)
		r = lr_tree_finish(&t, &tenv, err);
	if (r >= 0)
		r = lr_tree_pivot(&t, err);
	return r < 0 ? r : close_tree(p, err);
}
