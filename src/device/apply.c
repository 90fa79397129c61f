/* SPDX-License-Identifier: Apache-2.0 */
/* device: making the nodes; see device.h. */
#define LR_ROOM "device"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/str.h"
#include "src/device/internal.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6; the same number everywhere but on alpha */
#endif

#define FD_PATH_MAX  32
#define OVERFLOW_UID 65534 /* /proc/sys/kernel/overflowuid, which nobody changes */

static char *fd_path(char buf[FD_PATH_MAX], int fd)
{
	snprintf(buf, FD_PATH_MAX, "/proc/self/fd/%d", fd);
	return buf;
}

static bool is_asked(const struct lr_device *d, const struct stat *st)
{
	return (st->st_mode & S_IFMT) == (d->mode & S_IFMT) &&
	       (S_ISFIFO(d->mode) || st->st_rdev == d->rdev);
}

static bool is_settled(const struct lr_device *d, const struct stat *st)
{
	return (st->st_mode & 07777) == (d->mode & 07777) && st->st_uid == d->uid &&
	       st->st_gid == d->gid;
}

static int refuse_other(const struct lr_device *d, const struct stat *st, struct lr_err *err)
{
	char have[48] = "no device";

	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		snprintf(have, sizeof(have), "%s device %u:%u",
			 S_ISCHR(st->st_mode) ? "character" : "block", major(st->st_rdev),
			 minor(st->st_rdev));
	else if (S_ISLNK(st->st_mode))
		snprintf(have, sizeof(have), "a symbolic link");
	lr_refuse(err, EEXIST, "%s exists and is %s, not the device asked for", d->path, have);
	return lr_err_hint(err, "remove it from the image or from the mounts of the config");
}

/* An O_PATH descriptor takes neither fchmod(2) nor, before 6.6, fchmodat(2). */
static int chmod_fd(int fd, mode_t mode)
{
	char path[FD_PATH_MAX];

	if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	return chmod(fd_path(path, fd), mode) < 0 ? -errno : 0;
}

/* A device that was bound here is the host's: its owner and mode are not ours to change. */
static bool is_mount(int fd, int dirfd)
{
	struct statx stx;
	struct stat st, dir;

	if (lr_statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, 0, &stx) == 0 &&
	    stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
		return stx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	/* Before Linux 5.8, or under a filter: from another file system, at least. */
	return fstat(fd, &st) < 0 || fstat(dirfd, &dir) < 0 || st.st_dev != dir.st_dev;
}

/* Owner and mode, through a descriptor that was checked. */
static int settle(int dirfd, const struct lr_device *d, struct lr_err *err)
{
	struct stat st;

	LR_CLEANUP_FD int fd = openat(dirfd, d->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return lr_fail(err, errno, "opening %s", d->path);
	if (!is_asked(d, &st))
		return refuse_other(d, &st, err);
	if (is_mount(fd, dirfd))
		return 0;
	if ((st.st_uid != d->uid || st.st_gid != d->gid) &&
	    fchownat(fd, "", d->uid, d->gid, AT_EMPTY_PATH) < 0)
		return lr_fail(err, errno, "changing the owner of %s to %u:%u", d->path, d->uid,
			       d->gid);
	/* After chown(2), which takes setuid bits away. */
	int r = chmod_fd(fd, d->mode & 07777);
	return r < 0 ? lr_fail(err, -r, "changing the mode of %s", d->path) : 0;
}

/* The host's device: where the config says, or by its number. >= 0 or -errno. A mount of its own
 * (`detached`) or only a reference. */
static int open_host(const struct lr_device *d, bool detached)
{
	char by_number[48];
	struct stat st;

	snprintf(by_number, sizeof(by_number), "/dev/%s/%u:%u", S_ISCHR(d->mode) ? "char" : "block",
		 major(d->rdev), minor(d->rdev));
	const char *paths[] = {d->path, by_number};
	int r = -ENODEV;
	for (size_t i = 0; i < LR_ARRAY_SIZE(paths); i++) {
		LR_CLEANUP_FD int fd = LR_NOFD;
		if (detached) {
			fd = lr_open_tree(AT_FDCWD, paths[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		} else {
			fd = lr_open(paths[i], O_PATH | O_CLOEXEC);
			fd = fd < 0 ? -errno : fd;
		}
		if (lr_not_offered(fd))
			return fd;
		int why = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
		if (why == 0 && is_asked(d, &st))
			return lr_take_fd(&fd);
		if (why < 0 && why != -ENOENT)
			r = why;
	}
	return r;
}

/*
 * Could root in this container change the mode of the host's device? Yes without a user namespace,
 * or with one that maps the device's owner: then it is bound read-only, which devices can still be
 * written through. Otherwise the owner shows as the overflow uid, and the kernel refuses it anyway.
 */
static bool is_in_reach(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_uid != OVERFLOW_UID;
}

/* Before mount_setattr(2), Linux 5.12: the mount on `target`, found by its name. */
static int remount(int dirfd, const char *name, bool readonly)
{
	char path[FD_PATH_MAX + NAME_MAX + 2];
	char dir[FD_PATH_MAX];
	struct statvfs st;

	snprintf(path, sizeof(path), "%s/%.*s", fd_path(dir, dirfd), NAME_MAX, name);
	if (statvfs(path, &st) < 0)
		return -errno;
	unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NOEXEC;
	flags |= readonly || st.f_flag & ST_RDONLY ? MS_RDONLY : 0;
	flags |= st.f_flag & ST_NOATIME ? MS_NOATIME : 0;
	flags |= st.f_flag & ST_RELATIME ? MS_RELATIME : 0;
	return mount(NULL, path, NULL, flags, NULL) < 0 ? -errno : 0;
}

static int bind_by_path(const struct lr_device *d, int target, int dirfd)
{
	char from[FD_PATH_MAX], to[FD_PATH_MAX];

	LR_CLEANUP_FD int fd = open_host(d, false);
	if (fd < 0)
		return fd;
	if (mount(fd_path(from, fd), fd_path(to, target), NULL, MS_BIND, NULL) < 0)
		return -errno;
	return remount(dirfd, d->name, is_in_reach(fd));
}

/* Both by descriptor: neither path can be exchanged on the way. */
static int bind_onto(const struct lr_device *d, int target, int dirfd)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC}; /* as crun */

	LR_CLEANUP_FD int fd = open_host(d, true);
	if (lr_not_offered(fd))
		return bind_by_path(d, target, dirfd);
	if (fd < 0)
		return fd;
	if (is_in_reach(fd))
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	int r = lr_mount_setattr(fd, "", AT_EMPTY_PATH, &attr);
	if (lr_not_offered(r))
		return bind_by_path(d, target, dirfd);
	if (r < 0)
		return r;
	r = lr_move_mount(fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	return lr_not_offered(r) ? bind_by_path(d, target, dirfd) : r;
}

int lr_device_target(int dirfd, const struct lr_device *d, int *ret, struct lr_err *err)
{
	struct stat st;

	LR_CLEANUP_FD int made =
		openat(dirfd, d->name, O_CREAT | O_EXCL | O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (made < 0 && errno != EEXIST)
		return lr_fail(err, errno, "making a file to bind %s on", d->path);
	LR_CLEANUP_FD int target = openat(dirfd, d->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (target < 0 || fstat(target, &st) < 0)
		return lr_fail(err, errno, "opening %s", d->path);
	*ret = LR_NOFD;
	if (is_asked(d, &st))
		return 0;
	if (!S_ISREG(st.st_mode))
		return refuse_other(d, &st, err);
	*ret = lr_take_fd(&target);
	return 0;
}

static int bind_host(int dirfd, const struct lr_device *d, struct lr_err *err)
{
	LR_CLEANUP_FD int target = LR_NOFD;
	struct stat st;
	int r = lr_device_target(dirfd, d, &target, err);

	if (r < 0 || target < 0)
		return r;
	r = bind_onto(d, target, dirfd);
	if (r == -ENODEV || r == -ENOENT) {
		lr_refuse(err, ENODEV,
			  "%s can only be bound from the host, which has no %s device "
			  "%u:%u there",
			  d->path, S_ISCHR(d->mode) ? "character" : "block", major(d->rdev),
			  minor(d->rdev));
		return lr_err_hint(err, "devices cannot be made in a user namespace or without "
					"CAP_MKNOD");
	}
	if (r < 0)
		return lr_fail(err, -r, "binding the host's device to %s", d->path);
	if (fstatat(dirfd, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return lr_fail(err, errno, "checking %s", d->path);
	return is_asked(d, &st) ? 0 : refuse_other(d, &st, err);
}

/* fresh: see lr_device_apply. */
static int make(int dirfd, const struct lr_device *d, bool bind, bool fresh, struct lr_err *err)
{
	struct stat st;

	if (bind && !S_ISFIFO(d->mode))
		return bind_host(dirfd, d, err);
	if (mknodat(dirfd, d->name, d->mode, d->rdev) == 0) {
		if (fresh && d->uid == 0 && d->gid == 0)
			return 0;
	} else if (errno != EEXIST) {
		if (errno == EPERM && !S_ISFIFO(d->mode))
			return bind_host(dirfd, d, err);
		return lr_fail(err, errno, "making %s", d->path);
	}
	if (fstatat(dirfd, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return lr_fail(err, errno, "checking %s", d->path);
	if (!is_asked(d, &st))
		return refuse_other(d, &st, err);
	return is_settled(d, &st) ? 0 : settle(dirfd, d, err);
}

static int apply_one(const struct lr_device_plan *plan, const struct lr_device *d, int rootfd,
		     int devfd, bool fresh, struct lr_err *err)
{
	int base = d->in_dev ? devfd : rootfd;

	if (!d->dir[0])
		return make(base, d, plan->bind, fresh && d->in_dev, err);
	LR_CLEANUP_FD int dirfd = lr_mkdir_in(base, d->dir, 0755);
	if (dirfd < 0)
		return lr_fail(err, -dirfd, "making the directory of %s", d->path);
	return make(dirfd, d, plan->bind, false, err);
}

int lr_device_apply(const struct lr_device_plan *plan, int rootfd, int devfd, bool fresh,
		    struct lr_err *err)
{
	int r = 0;

	for (size_t i = 0; i < plan->n && r == 0; i++) {
		r = apply_one(plan, &plan->v[i], rootfd, devfd, fresh, err);
		if (r < 0 && plan->v[i].index >= 0)
			lr_err_add_path(err, "linux.devices[%zd]", plan->v[i].index);
	}
	if (r == 0)
		lr_debug("device: %zu devices %s", plan->n, plan->bind ? "bound" : "made");
	return r;
}
