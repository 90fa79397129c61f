/* SPDX-License-Identifier: Apache-2.0 */
/* tree: the plans of the rooms that it is made of. */
#define LR_ROOM "config" /* what it has to say is about that */
#include "src/tree/tree.h"

#include "src/base/fd.h"

int lr_tree_plan(const struct oci_root *root, const struct oci_linux *l,
		 const struct lr_tree_opts *o, struct lr_arena *a, struct lr_tree *ret,
		 struct lr_err *err)
{
	struct lr_tree t = LR_TREE_NONE;
	const struct lr_rootfs_opts root_opts = {
		.bundle = o->bundle,
		.mount_label = l->mount_label,
		.mounts = o->all,
		.no_pivot = o->no_pivot,
		.new_mount_ns = o->new_mount_ns,
		.userns = o->userns,
		.prepared = o->kind == LR_TREE_FROM_TEMPLATE,
	};
	struct lr_mount_opts mount_opts = {
		.bundle = o->bundle,
		.mount_label = l->mount_label,
		.mount_context_type = o->mount_context_type,
		.rootfs_propagation = o->propagation,
		.no_fallback = o->no_fallback,
		.userns = o->userns,
		.cgroupns = o->cgroupns,
		.netns = o->netns,
		.uid_map = &l->uid_mappings,
		.gid_map = &l->gid_mappings,
		.userns_path = o->userns_path,
		.elsewhere = o->kind == LR_TREE_FROM_TEMPLATE,
	};

	bool protects = o->kind != LR_TREE_TEMPLATE;
	int r = lr_rootfs_plan(root, o->propagation, protects ? &l->masked_paths : NULL,
			       protects ? &l->readonly_paths : NULL, &root_opts, a, &t.rootfs, err);
	if (r < 0)
		return r;
	mount_opts.root = t.rootfs->path;
	r = lr_mount_plan(o->here, &mount_opts, a, &t.mounts, err);
	if (r < 0)
		return r;
	t.own_dev = o->kind != LR_TREE_FROM_TEMPLATE && lr_device_needs_dev(o->here);
	t.rootless = o->rootless;
	t.untouched = !o->looks_back;
	/* An ordinary user may have to bind the host's own file systems for want of new ones. */
	t.can_be_bare = o->kind == LR_TREE_WHOLE && !o->rootless && !o->looks_back &&
			lr_rootfs_can_be_bare(t.rootfs) && lr_mount_can_be_bare(t.mounts);
	const struct lr_device_opts dev_opts = {.userns = o->userns,
						.needs_dev = t.own_dev,
						.uid_map = &l->uid_mappings,
						.gid_map = &l->gid_mappings};
	r = lr_device_plan(&l->devices, &dev_opts, a, &t.devices, err);
	if (r >= 0)
		*ret = t;
	return r;
}

int lr_tree_copy(const struct lr_tree *t, struct lr_arena *a, struct lr_tree *ret,
		 struct lr_err *err)
{
	*ret = *t;
	ret->mounts = lr_mount_copy(t->mounts, a);
	return ret->mounts ? 0 : lr_fail(err, ENOMEM, "make the plan");
}

void lr_tree_close(struct lr_tree *t)
{
	lr_mount_release(t->mounts);
	t->made_devices = lr_close(t->made_devices);
	lr_rootfs_state_close(&t->state);
}
