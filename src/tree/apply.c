/* SPDX-License-Identifier: Apache-2.0 */
/* tree: its making; tree.h has the order. */
#include "src/tree/tree.h"

#include "src/base/fd.h"

/* What can't be prepared, the child may be able to do where it sees the host's files; or it says
 * what is the matter. */
static int prepare_mounts(struct lr_tree *t, struct lr_err *err)
{
	if (t->state.bare >= 0) {
		lr_mount_go_bare(t->mounts, true);
		if (lr_mount_prepare(t->mounts, NULL) >= 0)
			return 0;
		lr_mount_go_bare(t->mounts, false);
		t->state.bare = lr_close(t->state.bare);
	}
	return lr_mount_prepare(t->mounts, err);
}

int lr_tree_prepare(struct lr_tree *t, struct lr_err *err)
{
	int r = lr_rootfs_prepare(t->rootfs, &t->state, err);

	/* On cgroup v1 the host's directories are what is bound if a hierarchy can't be mounted. */
	if (r >= 0 && t->can_be_bare && (!t->cgroup || t->cgroup->v2))
		lr_rootfs_make_bare(t->rootfs, &t->state);
	if (r >= 0)
		r = prepare_mounts(t, err);
	return r < 0 ? r : lr_device_prepare(t->devices, &t->made_devices, err);
}

int lr_tree_open(struct lr_tree *t, struct lr_err *err)
{
	return lr_rootfs_open_null(t->rootfs, &t->state, err);
}

int lr_tree_attach(struct lr_tree *t, struct lr_err *err)
{
	return lr_rootfs_attach(t->rootfs, &t->state, err);
}

static struct lr_mount_env mount_env(const struct lr_tree *t, const struct lr_tree_env *env)
{
	return (struct lr_mount_env){
		.rootfd = t->state.rootfd,
		.procfd = env->procfd >= 0 ? env->procfd : t->state.proc,
		.cgroup = t->cgroup,
		.alone = t->rootfs->new_mount_ns,
		.bench = lr_rootfs_has_bench(t->rootfs, &t->state),
		.join_cgroup = env->join_cgroup,
		.arg = env->arg,
	};
}

int lr_tree_mount(struct lr_tree *t, const struct lr_tree_env *env, struct lr_err *err)
{
	struct lr_mount_env menv = mount_env(t, env);

	int r = lr_mount_apply(t->mounts, &menv, err);
	int root = lr_mount_take_root(t->mounts);
	if (root >= 0) {
		lr_close(t->state.rootfd);
		t->state.rootfd = root;
	}
	t->state.procfs = lr_mount_take_top(t->mounts, "/proc", "proc");
	t->state.sysfs = lr_mount_take_top(t->mounts, "/sys", "sysfs");
	/* What others mount on /proc and /sys is to be protected, and these two would lead below it. */
	if (!t->untouched) {
		t->state.procfs = lr_close(t->state.procfs);
		t->state.sysfs = lr_close(t->state.sysfs);
	}
	return r;
}

int lr_tree_devices(struct lr_tree *t, const struct lr_tree_env *env, struct lr_err *err)
{
	struct lr_mount_env menv = mount_env(t, env);
	LR_CLEANUP_FD_LATE int opened = LR_NOFD;

	if (!t->own_dev)
		return 0;
	int dev = lr_mount_new_tmpfs(t->mounts, &menv, "/dev");
	/* Without root's rights mknod(2) may fail, and then what is there is to be looked at. */
	bool fresh = dev >= 0 && !t->rootless;
	if (dev < 0)
		dev = opened = lr_rootfs_open_dev(t->state.rootfd, err);
	int r = dev < 0 ? dev : 0;
	if (r >= 0 && opened >= 0)
		r = lr_mount_check_seen(t->mounts, &menv, "/dev", dev, err);
	if (r >= 0 && t->made_devices >= 0)
		r = lr_device_place(t->devices, t->made_devices, t->state.rootfd, dev, err);
	if (r >= 0)
		r = lr_device_apply(t->devices, t->state.rootfd, dev, fresh, err);
	return r < 0 ? r : lr_rootfs_dev_links(dev, err);
}

int lr_tree_make_places(struct lr_tree *t, struct lr_mount_plan *later, struct lr_err *err)
{
	const struct lr_tree_env nothing = {.procfd = LR_NOFD};
	struct lr_mount_env menv = mount_env(t, &nothing);

	return lr_mount_make_places(later, &menv, err);
}

int lr_tree_finish(struct lr_tree *t, const struct lr_tree_env *env, struct lr_err *err)
{
	struct lr_mount_env menv = mount_env(t, env);
	int r = lr_mount_finish(t->mounts, &menv, err);

	lr_mount_release(t->mounts);
	return r;
}

int lr_tree_protect(struct lr_tree *t, struct lr_err *err)
{
	return lr_rootfs_protect(t->rootfs, &t->state, err);
}

int lr_tree_pivot(struct lr_tree *t, struct lr_err *err)
{
	int r = lr_rootfs_pivot(t->rootfs, &t->state, err);

	if (r >= 0)
		r = lr_rootfs_finish(t->rootfs, &t->state, err);
	lr_rootfs_state_close(&t->state);
	return r;
}
