/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs: the container's root directory, and what is covered in it.
 *
 * Takes: root, linux.rootfsPropagation, linux.maskedPaths, linux.readonlyPaths.
 *
 * In the parent, before clone:
 *
 *   lr_rootfs_prepare    for a user namespace, whose root may not reach the rootfs by its path
 *   lr_rootfs_make_bare  where the kernel can: a mount namespace with nothing in it but the rootfs
 *
 * Order in the container's first process:
 *
 *   lr_rootfs_open_null  what masks files, while nothing of the container's is mounted
 *   lr_rootfs_attach     host mounts stop propagating, the rootfs becomes a mount with a descriptor
 *     (mounts, lr_rootfs_open_dev, devices, lr_rootfs_dev_links, console, createContainer hooks)
 *   lr_rootfs_protect    masked and read-only paths
 *   lr_rootfs_pivot      it becomes "/", and the working directory; the host's tree is still there,
 *                        above it
 *   lr_rootfs_finish     the host's tree goes; root.readonly, final propagation
 *
 * Most protected paths are names that the kernel has directly in a procfs or sysfs: they are mounted
 * on by name in its root (known.c). Any other protected path is opened once, inside the root, and mounted on by descriptor: links in the
 * image resolve as the container will see them, magic links of procfs are refused, and what the
 * path leads to later does not matter. What is below /proc and /sys is looked up in the file system
 * that is mounted there, and it is an error if that is not the one of config.json: who shares the
 * rootfs may rename their mount points. That is done before the pivot: after it the host's tree
 * lies on the root, and ".." of a link would lead into that. What masks a path is never looked up
 * in the container: files are covered by the host's null device, opened first and checked to be 1:3
 * (CVE-2025-31133), directories by one empty file system, made for that; both are read-only. So
 * only the path itself may be missing, never its cover.
 *
 * Nothing else may run in the container's mount namespace, and no path of the image or the config
 * be looked up, between pivot and finish.
 *
 * A *bare* mount namespace spares the copy of all the host's mounts, and the pivot that leaves them.
 * What attach, pivot and finish would do to the host's mounts is left out then.
 *
 * A process that was put into a copy of a prepared tree (src/lean) has its root already. It goes
 * the same way: the same code protects its paths, and what is done is left out (opts.prepared).
 */
#ifndef LR_ROOTFS_H
#define LR_ROOTFS_H

#include <stdbool.h>
#include <stddef.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/base/fd.h"

struct lr_rootfs_opts {
	const char *bundle;              /* absolute path; a relative root.path starts here */
	const char *mount_label;         /* SELinux context for the empty mount, or NULL */
	const struct oci_mounts *mounts; /* of config.json, or NULL */
	bool no_pivot;                   /* --no-pivot: the host's root is a ramfs */
	bool new_mount_ns;               /* false: none, or a joined one; then chroot only */
	bool userns;                     /* the child runs in a user namespace of its own */
	bool prepared; /* "/" is the container's root, whole but for protected paths */
};

struct lr_rootfs_plan {
	const char *path;       /* of the rootfs, absolute, as the host sees it */
	const char *dir;        /* the same with "/." at its end: only a directory will do */
	const char *label;      /* of the empty tmpfs, or NULL */
	const char *empty_data; /* its options for mount(2) */
	struct oci_strv masked;
	struct oci_strv readonly_paths;
	bool has_proc, has_sys;     /* a procfs is mounted on /proc, a sysfs on /sys */
	unsigned long attach_flags; /* propagation of all the host's mounts, see propagation.c */
	unsigned long parent_flags; /* of the mount the rootfs lies on; 0: need not be touched */
	unsigned long final_flags;  /* of the container's root; 0: as it is */
	bool readonly;
	bool no_pivot;
	bool new_mount_ns;
	bool userns;
	bool prepared;
};

/* What covers masked paths: a mount that goes to the first of them; the others get copies of it. */
struct lr_rootfs_cover {
	int fd;
	/* mount(2) gives no descriptor: what it has made is at that name in that directory. NULL: there
	 * is a descriptor, or no cover yet. */
	const char *name;
	int dir;
	bool used;      /* it is in its place */
	bool by_mount2; /* the newer calls are not offered */
};

/* Descriptors of one set-up; all O_PATH and close-on-exec. */
struct lr_rootfs_state {
	int rootfd; /* the container's root: what other rooms work below */
	int tree;   /* from prepare: the rootfs as a detached mount */
	int bare;   /* a mount namespace for attach to enter: the process was born without one */
	int proc;   /* the host's, where attach has left its files, or LR_NOFD */
	/* The root directories of the procfs and sysfs on /proc and /sys, open since they were mounted;
	 * or LR_NOFD. */
	int procfs, sysfs;
	bool over; /* attach put it over "/", for want of a way to its own path */
	struct lr_rootfs_cover null, empty;
};
#define LR_ROOTFS_STATE_INIT                                                                       \
	{                                                                                          \
		.rootfd = LR_NOFD, .tree = LR_NOFD, .bare = LR_NOFD, .proc = LR_NOFD,              \
		.procfs = LR_NOFD, .sysfs = LR_NOFD, .null.fd = LR_NOFD, .empty.fd = LR_NOFD       \
	}

void lr_rootfs_state_close(struct lr_rootfs_state *s); /* NULL-safe; keeps errno */

/*
 * Pure. Any of masked, readonly and propagation may be NULL. The plan keeps pointers into the
 * specification, whose arena must live as long. Paths count from the root, with or without a slash
 * in front. -EINVAL (unknown propagation, protected paths without a mount namespace) or -ENOMEM.
 */
int lr_rootfs_plan(const struct oci_root *root, const char *propagation,
		   const struct oci_strv *masked, const struct oci_strv *readonly,
		   const struct lr_rootfs_opts *opts, struct lr_arena *arena,
		   const struct lr_rootfs_plan **ret, struct lr_err *err) LR_MUST_CHECK;

/* Parent: with its rights the rootfs is found below directories that the container's root may not
 * search. Nothing to do without a user namespace, or without the right to clone mounts. */
int lr_rootfs_prepare(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		      struct lr_err *err) LR_MUST_CHECK;

/* Whether a bare namespace will do: nothing of the host's mounts is to reach the container's root,
 * or the other way. */
bool lr_rootfs_can_be_bare(const struct lr_rootfs_plan *plan);
/* Parent: fills state->bare, or leaves it alone: the usual way is always open (before Linux 7.0, and
 * where something else is the matter, which will be said there). */
void lr_rootfs_make_bare(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state);

/* All of the following make system calls only, allocate nothing, and run in the container's first
 * process, as root of the user namespace that owns its mount namespace. */

/* While "/" is the host's and nothing of the container's is mounted: opens and checks what masks
 * files. */
int lr_rootfs_open_null(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
			struct lr_err *err) LR_MUST_CHECK;

/* Fills state->rootfd. Every mount of the namespace stops propagating to the host, unless
 * linux.rootfsPropagation asks for it. */
int lr_rootfs_attach(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		     struct lr_err *err) LR_MUST_CHECK;

/* Whether a mount that is made on a directory of the host's now shows in this process's mount
 * namespace alone. */
bool lr_rootfs_has_bench(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state);

/* A close-on-exec O_PATH descriptor of the container's /dev, made if missing. A symbolic link
 * there is refused (CVE-2026-41579). The caller closes it. */
int lr_rootfs_open_dev(int rootfd, struct lr_err *err) LR_MUST_CHECK;

/* /dev/fd, stdin, stdout, stderr, core (if the kernel has /proc/kcore) and ptmx. What exists stays,
 * but for ptmx, which must lead to the container's own devpts. Only when the config does not bind
 * a /dev of the host's: lr_device_needs_dev. */
int lr_rootfs_dev_links(int devfd, struct lr_err *err) LR_MUST_CHECK;

/* Covers plan->masked, and makes plan->readonly_paths read-only with everything below them; those
 * that do not exist are passed over. The working directory is anywhere afterwards. */
int lr_rootfs_protect(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
		      struct lr_err *err) LR_MUST_CHECK;

/* Makes state->rootfd "/"; the working directory is "/" then. */
int lr_rootfs_pivot(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state,
		    struct lr_err *err) LR_MUST_CHECK;

/* The host's mounts are out of reach from here on. */
int lr_rootfs_finish(const struct lr_rootfs_plan *plan, const struct lr_rootfs_state *state,
		     struct lr_err *err) LR_MUST_CHECK;

#endif
