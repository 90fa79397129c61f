/* SPDX-License-Identifier: Apache-2.0 */
/* sys: the private procfs; see procfs.h. */
#define LR_ROOM "procfs"
#include "src/sys/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/sys/detached.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

#define PROC_ROOT_INO 1 /* the root of every procfs instance */

static int open_private(void)
{
	int fd = lr_detached_open("proc", NULL,
				  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	/* Since Linux 6.15 a mount of no namespace can be bound, and our descriptor be found in
	 * /proc/self/fd. (mount_setattr came with 5.12.) */
	struct mount_attr unbindable = {.propagation = MS_UNBINDABLE};
	if (fd >= 0)
		(void)!lr_mount_setattr(fd, "", AT_EMPTY_PATH, &unbindable);
	return fd;
}

static int open_host(struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open("/proc", O_DIRECTORY | O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		lr_fail(err, errno, "open /proc");
		return lr_err_hint(err, "the runtime needs a mounted procfs");
	}
	struct stat st;
	if (lr_fs_magic(fd) != PROC_SUPER_MAGIC || fstat(fd, &st) < 0 || st.st_ino != PROC_ROOT_INO)
		return lr_refuse(err, EXDEV, "/proc is not the root of a procfs");
	return lr_take_fd(&fd);
}

int lr_procfs_open(struct lr_err *err)
{
	int fd = open_private();

	return fd >= 0 ? fd : open_host(err);
}

/* Splits "self/rest": procfs' own links are the one kind of symlink that is wanted here. */
static int open_self(int procfd, const char *path, const char **rest)
{
	const char *link = lr_has_prefix(path, "self/")          ? "self"
			   : lr_has_prefix(path, "thread-self/") ? "thread-self"
								 : NULL;
	char target[64];

	*rest = path;
	if (!link)
		return LR_NOFD;
	ssize_t n = readlinkat(procfd, link, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	int fd = openat(procfd, target, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	*rest = path + strlen(link) + 1;
	return fd;
}

/*
 * Without RESOLVE_NO_XDEV: a mount on the way shows as another device, or, where one file of procfs
 * covers another, as another mount (its number is told since Linux 5.8, by statx).
 */
static int in_one_mount(int a, int b)
{
	struct statx x = {0}, y = {0};
	struct stat s, t;

	if (fstat(a, &s) < 0 || fstat(b, &t) < 0)
		return -errno;
	bool numbered = lr_statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) == 0 &&
			lr_statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) == 0 &&
			x.stx_mask & y.stx_mask & STATX_MNT_ID;
	return s.st_dev != t.st_dev || (numbered && x.stx_mnt_id != y.stx_mnt_id) ? -EXDEV : 0;
}

int lr_procfs_openat(int procfd, const char *path, int flags)
{
	LR_CLEANUP_FD int self = open_self(procfd, path, &path);
	if (self < 0 && self != LR_NOFD)
		return self;
	int base = self >= 0 ? self : procfd;

	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV |
			   RESOLVE_NO_MAGICLINKS,
	};
	int fd = lr_path_no_openat2 ? -ENOSYS : lr_openat2(base, path, &how);
	if (fd != -ENOSYS && fd != -EPERM)
		return fd;

	LR_CLEANUP_FD int walked = lr_open_in_nolinks(base, path, flags, 0);
	if (walked < 0)
		return walked;
	int r = lr_fs_magic(walked) == PROC_SUPER_MAGIC ? in_one_mount(procfd, walked) : -EXDEV;
	return r < 0 ? r : lr_take_fd(&walked);
}

int lr_procfs_write(int procfd, const char *path, const char *text, size_t len)
{
	LR_CLEANUP_FD int fd = lr_procfs_openat(procfd, path, O_WRONLY);

	return fd < 0 ? fd : lr_write_once(fd, text, len);
}

int lr_procfs_open_magic(int procfd, const char *path, int flags)
{
	/* The directory that holds the link is reached safely; only the link itself is followed. */
	const char *slash = strrchr(path, '/');
	char dir[128];

	if (!slash || (size_t)(slash - path) >= sizeof(dir))
		return -EINVAL;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	LR_CLEANUP_FD int dirfd = lr_streq(dir, "self") || lr_streq(dir, "thread-self")
					  ? openat(procfd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC)
					  : lr_procfs_openat(procfd, dir, O_PATH | O_DIRECTORY);
	if (dirfd < 0)
		return dirfd == -1 ? -errno : dirfd;
	int fd = openat(dirfd, slash + 1, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
