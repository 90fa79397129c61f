/* SPDX-License-Identifier: Apache-2.0 */
/* device: nodes that the runtime makes for a user namespace, on a tmpfs of the host's; see
 * device.h. */
#define LR_ROOM "device"
#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/device/internal.h"
#include "src/sys/detached.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

#define NAME_SIZE 24

static const char *name_of(char buf[NAME_SIZE], size_t i)
{
	snprintf(buf, NAME_SIZE, "%zu", i);
	return buf;
}

static bool any_ours(const struct lr_device_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->v[i].ours)
			return true;
	return false;
}

/* 0 or -errno. */
static int make_node(int dir, const struct lr_device *d, const char *name)
{
	if (mknodat(dir, name, d->mode, d->rdev) < 0 ||
	    fchownat(dir, name, d->host_uid, d->host_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(dir, name, d->mode & 07777, 0) < 0) /* the umask took some; chown, too */
		return -errno;
	return 0;
}

int lr_device_prepare(const struct lr_device_plan *plan, int *ret, struct lr_err *err)
{
	char name[NAME_SIZE];

	if (!any_ours(plan))
		return 0;
	LR_CLEANUP_FD int dir = lr_detached_open("tmpfs", "711", 0);
	int r = dir < 0 ? dir : 0;
	for (size_t i = 0; i < plan->n && r == 0; i++)
		r = plan->v[i].ours ? make_node(dir, &plan->v[i], name_of(name, i)) : 0;
	/* Not without CAP_SYS_ADMIN and CAP_MKNOD on the host, nor before Linux 5.2. */
	if (r == -EPERM || r == -ENOSYS) {
		lr_debug("device: none can be made for the user namespace");
		return 0;
	}
	if (r < 0)
		return lr_fail(err, -r, "making devices for the user namespace");
	*ret = lr_take_fd(&dir);
	return 0;
}

static int place_one(const struct lr_device *d, int made, const char *name, int rootfd, int devfd,
		     struct lr_err *err)
{
	int base = d->in_dev ? devfd : rootfd;
	LR_CLEANUP_FD int dir = d->dir[0] ? lr_mkdir_in(base, d->dir, 0755) : LR_NOFD;
	LR_CLEANUP_FD int target = LR_NOFD;

	if (d->dir[0] && dir < 0)
		return lr_fail(err, -dir, "making the directory of %s", d->path);
	int r = lr_device_target(dir >= 0 ? dir : base, d, &target, err);
	if (r < 0 || target < 0)
		return r;
	LR_CLEANUP_FD int tree = lr_open_tree(made, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = tree < 0 ? tree
		     : lr_move_mount(tree, "", target, "",
				     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	return r < 0 ? lr_fail(err, -r, "binding a device to %s", d->path) : 0;
}

/* Only an attached file system can be cloned from before Linux 6.15: it is over /dev meanwhile,
 * which is at hand by its descriptor. */
int lr_device_place(const struct lr_device_plan *plan, int made, int rootfd, int devfd,
		    struct lr_err *err)
{
	char name[NAME_SIZE];
	LR_CLEANUP_FD int cwd = lr_open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = lr_move_mount(made, "", devfd, "",
			      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);

	if (r < 0)
		return lr_fail(err, -r, "attaching the devices of the user namespace");
	for (size_t i = 0; i < plan->n && r == 0; i++) {
		const struct lr_device *d = &plan->v[i];
		if (d->ours)
			r = place_one(d, made, name_of(name, i), rootfd, devfd, err);
		if (r < 0)
			lr_err_add_path(err, "linux.devices[%zd]", d->index);
	}
	if (fchdir(made) < 0 || umount2(".", MNT_DETACH) < 0 ||
	    (cwd < 0 ? chdir("/") : fchdir(cwd)) < 0)
		return r < 0 ? r : lr_fail(err, errno, "detaching the devices");
	return r;
}
