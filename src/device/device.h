/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device: the nodes below the container's /dev (and wherever else linux.devices puts one).
 *
 * Takes: linux.devices, and the default devices of config-linux.md (null, zero, full, random,
 * urandom, tty). /dev/console is the tty room's, /dev/ptmx and the other links are the rootfs
 * room's, which device may open a node the devrule room's.
 *
 * A node is made by mknod(2) and checked afterwards: type and number must be those asked for,
 * whoever else writes to the directory, and mode and owner, whatever its ACL says. What exists and
 * matches stays; what exists and does not is an error, as the specification demands. A user
 * namespace may not make devices, nor may a process that a device cgroup or a dropped CAP_MKNOD
 * forbids it: there the host's device of that number is bound onto an empty file. For a user
 * namespace, what linux.devices lists is made by the runtime itself, and bound.
 */
#ifndef LR_DEVICE_H
#define LR_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

struct lr_device_opts {
	bool userns;    /* the container has a user namespace: bind, do not mknod */
	bool needs_dev; /* lr_device_needs_dev(); false: the plan is empty */
	const struct oci_id_mappings *uid_map, *gid_map; /* of that namespace; NULL: not known */
};

struct lr_device {
	const char *path; /* absolute, clean: in the container, and on the host if bound */
	const char *dir;  /* its directory below /dev or below the root; "": right there */
	const char *name; /* last component */
	bool in_dev;      /* `dir` is below /dev */
	mode_t mode;      /* type and permissions */
	dev_t rdev;
	uid_t uid;
	gid_t gid;
	ssize_t index; /* in linux.devices; -1: a default device */
	bool ours;     /* lr_device_prepare makes it, for these ids of the host's: */
	uid_t host_uid;
	gid_t host_gid;
};

struct lr_device_plan {
	const struct lr_device *v;
	size_t n;
	bool bind;
};

/*
 * Pure: does the container get its own /dev? Not if the config binds one from the host: then
 * neither devices nor links are made in it, as runc does it.
 */
bool lr_device_needs_dev(const struct oci_mounts *mounts);

/* Pure. `devices` may be NULL. -EINVAL (with the place), -EEXIST (two different devices at one
 * path) or -ENOMEM. */
int lr_device_plan(const struct oci_devices *devices, const struct lr_device_opts *opts,
		   struct lr_arena *arena, const struct lr_device_plan **ret,
		   struct lr_err *err) LR_MUST_CHECK;

/*
 * Parent of a container with a user namespace: what the config lists is made on a file system of
 * its own, as the child may not make it, and the host may have another there or none. *ret: that
 * file system, detached, or LR_NOFD: nothing to make, or not allowed to; then the host's devices
 * have to do.
 */
int lr_device_prepare(const struct lr_device_plan *plan, int *ret,
		      struct lr_err *err) LR_MUST_CHECK;

/* Child, before lr_device_apply: binds what prepare made to where it belongs. The working directory
 * is kept. */
int lr_device_place(const struct lr_device_plan *plan, int made, int rootfd, int devfd,
		    struct lr_err *err) LR_MUST_CHECK;

/*
 * System calls only. rootfd: the container's root; devfd: its /dev, opened without following
 * links (lr_rootfs_open_dev). Called before pivot, while the host's devices can be reached by path,
 * by root with a umask of 0. fresh: devfd is a tmpfs that was just made and that nobody else sees;
 * what mknod(2) makes right in it needs no check.
 */
int lr_device_apply(const struct lr_device_plan *plan, int rootfd, int devfd, bool fresh,
		    struct lr_err *err) LR_MUST_CHECK;

#endif
