/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: destinations, which the image may have prepared. A destination is opened once, inside the
 * root, and mounted on by descriptor: what a link leads to later does not matter.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/path.h"

void lr_mount_dest_close(struct lr_mount_dest *d)
{
	if (d->own)
		lr_close(d->fd);
	*d = (struct lr_mount_dest){.fd = LR_NOFD};
}

bool lr_mount_dest_near(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
			const struct lr_mount_env *env, struct lr_mount_dest *ret)
{
	*ret = (struct lr_mount_dest){.fd = LR_NOFD};
	if (op->name == op->dest + 1)
		ret->fd = env->rootfd;
	else if (op->parent >= 0 && plan->ops[op->parent].mfd >= 0)
		ret->fd = plan->ops[op->parent].mfd;
	else
		return false;
	ret->name = op->name;
	return true;
}

/* A link on the way may alias a path that another mount is known by. */
static void forget_parents(struct lr_mount_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		plan->ops[i].parent = -1;
}

static int refuse(const struct lr_mount_op *op, int code, struct lr_err *err, const char *why)
{
	lr_refuse(err, code, "mount on %s is refused: %s", op->dest, why);
	lr_err_at(err, "mounts[%zu].destination", op->index);
	return -code;
}

/* A link was followed: the text of the path no longer says where it ends. */
static int check_resolved(const struct lr_mount_op *op, const struct lr_mount_env *env, int fd,
			  struct lr_err *err)
{
	struct stat root, proc, st;

	if (fstat(fd, &st) < 0 || fstat(env->rootfd, &root) < 0) {
		int r = -errno;
		lr_fail(err, -r, "stat %s", op->dest);
		return r;
	}
	if (st.st_dev == root.st_dev && st.st_ino == root.st_ino)
		return refuse(op, EPERM, err, "it leads to the root of the container");
	if (lr_has_prefix(op->dest, "/proc/")) /* the allowed ones: /proc/net/dev */
		return 0;
	if (lr_fs_magic(fd) == PROC_SUPER_MAGIC)
		return refuse(op, EPERM, err, "a symbolic link leads into a procfs");
	if (fstatat(env->rootfd, "proc", &proc, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == proc.st_dev && st.st_ino == proc.st_ino)
		return refuse(op, EPERM, err, "a symbolic link leads to /proc");
	return 0;
}

static int open_existing(struct lr_mount_plan *plan, const struct lr_mount_op *op,
			 const struct lr_mount_env *env, int flags, struct lr_err *err)
{
	flags |= O_PATH | (op->o.dest_nofollow ? O_NOFOLLOW : 0);
	/* Most paths have no link, and then need no check. */
	int fd = lr_open_in_nolinks(env->rootfd, op->dest, flags, 0);

	if (fd != -ELOOP)
		return fd;
	if (op->nolinks)
		return refuse(op, ELOOP, err, "there is a symbolic link on the way");
	fd = lr_open_in(env->rootfd, op->dest, flags, 0);
	if (fd < 0)
		return fd;
	lr_debug("mount: %s goes through a symbolic link", op->dest);
	forget_parents(plan);
	int r = check_resolved(op, env, fd, err);
	if (r < 0) {
		lr_close(fd);
		return r;
	}
	return fd;
}

static int make_missing(const struct lr_mount_op *op, const struct lr_mount_env *env, int like)
{
	struct stat st = {.st_mode = S_IFDIR};

	if (like >= 0 && fstat(like, &st) < 0)
		return -errno;
	int fd = S_ISDIR(st.st_mode) ? lr_mkdir_in(env->rootfd, op->dest, 0755)
				     : lr_mkfile_in(env->rootfd, op->dest, 0755);
	if (fd < 0)
		return fd;
	lr_close(fd); /* it followed links: opened again by the rules */
	return 0;
}

int lr_mount_dest_open(struct lr_mount_plan *plan, const struct lr_mount_op *op,
		       const struct lr_mount_env *env, int like, struct lr_mount_dest *ret,
		       struct lr_err *err)
{
	int flags = like < 0 ? O_DIRECTORY : 0;

	*ret = (struct lr_mount_dest){.fd = LR_NOFD};
	lr_err_clear(err);
	int fd = open_existing(plan, op, env, flags, err);
	if (fd == -ENOENT) {
		int r = make_missing(op, env, like);
		fd = r < 0 ? r : open_existing(plan, op, env, flags, err);
		ret->made = true;
	}
	if (fd < 0) {
		if (!err || !err->code) {
			lr_fail(err, -fd, "open %s in the container's root", op->dest);
			lr_err_at(err, "mounts[%zu].destination", op->index);
			if (fd == -EROFS)
				lr_err_hint(err, "the mount point is missing and the file system "
						 "is read-only: create it in the image");
		}
		return fd;
	}
	ret->fd = fd;
	ret->own = true;
	return 0;
}

/* False if both are known to be in one mount. */
static bool is_another_mount(int a, int b)
{
	struct statx x, y;

	if (statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0 ||
	    statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) < 0)
		return true;
	/* Before Linux 5.8 there is no such id. */
	return !(x.stx_mask & y.stx_mask & STATX_MNT_ID) || x.stx_mnt_id != y.stx_mnt_id;
}

int lr_mount_dest_reopen(struct lr_mount_plan *plan, const struct lr_mount_op *op,
			 const struct lr_mount_env *env, int below, struct lr_err *err)
{
	lr_err_clear(err);
	/* What was bound may be a link itself. */
	LR_CLEANUP_FD int fd =
		open_existing(plan, op, env, op->o.src_nofollow ? O_NOFOLLOW : 0, err);
	if (fd >= 0 && below >= 0 && !is_another_mount(fd, below))
		return refuse(op, ESTALE, err, "the path was changed meanwhile");
	if (fd < 0 && (!err || !err->code)) {
		lr_fail(err, -fd, "open %s in the container's root", op->dest);
		lr_err_at(err, "mounts[%zu].destination", op->index);
	}
	return lr_take_fd(&fd);
}
