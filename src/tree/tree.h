/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: the root file system of a container as one thing: its root, mounts, /dev, protected paths.
 *
 * The rooms rootfs, mount and device know their parts; this one knows the order in which a tree is
 * made of them. Whoever makes one comes here: the first process of a container goes through all
 * that is below. A template of the lean profile (src/lean) goes through what comes before `open`
 * and `protect`; a container that starts from it through all, and what is there already is left out
 * by the plan (opts.kind).
 *
 *   plan      pure
 *   prepare   in the parent, before clone: what only the host's view can do
 *   then, in the new mount namespace, in this order:
 *   open      what masks files is opened, while nothing of the container's is mounted
 *     (whoever starts from a template enters it here)
 *   attach    the root becomes a mount; tree->state.rootfd is its descriptor
 *   mount     config.json's mounts
 *   devices   /dev is filled, if it is the container's own
 *     (sysctls, the terminal, hooks)
 *   finish    what had to be writable until now becomes read-only
 *   protect   masked and read-only paths
 *   pivot     it becomes "/", and the host's tree goes
 *
 * What comes after prepare makes system calls only, and allocates nothing.
 */
#ifndef LR_TREE_TREE_H
#define LR_TREE_TREE_H

#include <stdbool.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/device/device.h"
#include "src/mount/mount.h"
#include "src/rootfs/rootfs.h"

struct lr_tree_opts {
	const char *bundle;             /* absolute; relative paths begin here */
	const struct oci_mounts *all;   /* that the container will have in the end */
	const struct oci_mounts *here;  /* that this tree gets */
	const char *propagation;        /* of the root, or NULL */
	const char *mount_context_type; /* as for struct lr_mount_opts, or NULL */
	const char *userns_path;        /* namespace to be joined, or NULL */
	bool no_pivot;
	bool no_fallback;
	bool new_mount_ns;
	bool userns, cgroupns, netns; /* are the container's own */
	enum lr_tree_kind {
		LR_TREE_WHOLE,
		LR_TREE_TEMPLATE,      /* no container's: nothing in it is protected yet */
		LR_TREE_FROM_TEMPLATE, /* "/" is a copy of one, with all but `here` */
	} kind;
	bool rootless;
	bool looks_back; /* hooks look at the host's files from the new mount namespace */
};

struct lr_tree {
	const struct lr_rootfs_plan *rootfs;
	struct lr_mount_plan *mounts;
	const struct lr_device_plan *devices;
	const struct lr_mount_cgroup_view *cgroup; /* what a cgroup mount shows: the caller's */
	bool own_dev;                              /* /dev is the tree's own: it is filled */
	bool rootless;
	bool untouched;   /* nobody else mounts anything in it before it is protected */
	bool can_be_bare; /* nothing of the host is looked at from inside; see rootfs.h */
	struct lr_rootfs_state state;
	int made_devices; /* by prepare, or LR_NOFD */
};
#define LR_TREE_NONE                                                                               \
	{                                                                                          \
		.state = LR_ROOTFS_STATE_INIT, .made_devices = LR_NOFD                             \
	}

/* What the tree's rooms need of the process that applies it. */
struct lr_tree_env {
	int procfd; /* private procfs, or LR_NOFD */
	/* See struct lr_mount_env. */
	int (*join_cgroup)(void *arg, struct lr_err *err);
	void *arg;
};

/* Pure. The plan keeps pointers into the specification. */
int lr_tree_plan(const struct oci_root *root, const struct oci_linux *l,
		 const struct lr_tree_opts *opts, struct lr_arena *arena, struct lr_tree *ret,
		 struct lr_err *err) LR_MUST_CHECK;
/* The same, with a mount plan of its own; the descriptors are the same ones. -ENOMEM. */
int lr_tree_copy(const struct lr_tree *t, struct lr_arena *arena, struct lr_tree *ret,
		 struct lr_err *err) LR_MUST_CHECK;
void lr_tree_close(struct lr_tree *t); /* descriptors; may be called twice */

int lr_tree_prepare(struct lr_tree *t, struct lr_err *err) LR_MUST_CHECK;

int lr_tree_open(struct lr_tree *t, struct lr_err *err) LR_MUST_CHECK;
int lr_tree_attach(struct lr_tree *t, struct lr_err *err) LR_MUST_CHECK;
int lr_tree_mount(struct lr_tree *t, const struct lr_tree_env *env,
		  struct lr_err *err) LR_MUST_CHECK;
int lr_tree_devices(struct lr_tree *t, const struct lr_tree_env *env,
		    struct lr_err *err) LR_MUST_CHECK;
/* For mounts that come later, when the tree may be read-only: their places. */
int lr_tree_make_places(struct lr_tree *t, struct lr_mount_plan *later,
			struct lr_err *err) LR_MUST_CHECK;
int lr_tree_finish(struct lr_tree *t, const struct lr_tree_env *env,
		   struct lr_err *err) LR_MUST_CHECK;
int lr_tree_protect(struct lr_tree *t, struct lr_err *err) LR_MUST_CHECK;
int lr_tree_pivot(struct lr_tree *t, struct lr_err *err) LR_MUST_CHECK;

#endif
