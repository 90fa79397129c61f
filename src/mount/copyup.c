/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: tmpcopyup: what a tmpfs is about to cover is copied into it: owners, modes, times, links,
 * devices, extended attributes. A walk by descriptors with small buffers on the stack and no heap;
 * the depth is bounded. Hard links become separate files. What is mounted below is not copied.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"

#define DEPTH_MAX 200 /* two descriptors and 2.5 KiB of stack each */
#define CHUNK     (1 << 20)

static int copy_dir(int from, int to, int depth);

static int copy_data(int from, int to)
{
	for (;;) {
		ssize_t n = sendfile(to, from, NULL, CHUNK);
		if (n == 0)
			return 0;
		if (n < 0 && errno == EINVAL) /* the file system has no splice */
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	for (;;) {
		char buf[4096];
		ssize_t n = read(from, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		ssize_t w = lr_write_full(to, buf, (size_t)n);
		if (w < 0)
			return (int)w;
	}
}

/* Best effort: tmpfs has some attributes only in some kernels, and others need privileges. */
static void copy_xattrs(int from, int to)
{
	char names[1024], value[1024];
	ssize_t len = flistxattr(from, names, sizeof(names));

	for (char *p = names; len > 0 && p < names + len; p += strlen(p) + 1) {
		ssize_t n = fgetxattr(from, p, value, sizeof(value));
		if (lr_streq(p, "security.selinux")) /* the tmpfs has its own label */
			continue;
		if (n < 0 || fsetxattr(to, p, value, (size_t)n, 0) < 0)
			lr_debug("mount: tmpcopyup: attribute %s is not copied: %s", p,
				 lr_strerror(errno));
	}
}

/* Owner first: chown(2) takes set-id bits and file capabilities away. */
static int copy_meta(int from, int to, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (fchown(to, st->st_uid, st->st_gid) < 0 && errno != EPERM && errno != EINVAL)
		return -errno;
	if (fchmod(to, st->st_mode & 07777) < 0)
		return -errno;
	copy_xattrs(from, to);
	return futimens(to, times) < 0 ? -errno : 0;
}

static int copy_file(int dir, const char *name, int to_dir, const struct stat *st)
{
	LR_CLEANUP_FD int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return -errno;
	LR_CLEANUP_FD int to =
		openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	int r = copy_data(from, to);
	return r < 0 ? r : copy_meta(from, to, st);
}

static int copy_subdir(int dir, const char *name, int to_dir, const struct statx *sx,
		       const struct stat *st, int depth)
{
	if (mkdirat(to_dir, name, 0700) < 0)
		return -errno;
	LR_CLEANUP_FD int from = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	LR_CLEANUP_FD int to =
		openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || to < 0)
		return -errno;
	bool mounted = sx->stx_attributes & STATX_ATTR_MOUNT_ROOT;
	int r = mounted ? 0 : copy_dir(from, to, depth + 1);
	return r < 0 ? r : copy_meta(from, to, st);
}

/* Links, devices, pipes and sockets: made by name, with nothing inside. */
static int copy_special(int dir, const char *name, int to_dir, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (S_ISLNK(st->st_mode)) {
		char target[PATH_MAX];
		ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		if (symlinkat(target, to_dir, name) < 0)
			return -errno;
	} else if (mknodat(to_dir, name, st->st_mode, st->st_rdev) < 0) {
		if (errno != EPERM)
			return -errno;
		lr_warn("tmpcopyup: device %s is left out: not allowed in a user namespace", name);
		return 0;
	}
	if (fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != EPERM && errno != EINVAL)
		return -errno;
	/* The umask may have taken bits from mknod; a link has no mode. */
	if (!S_ISLNK(st->st_mode) && fchmodat(to_dir, name, st->st_mode & 07777, 0) < 0)
		return -errno;
	return utimensat(to_dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_entry(int dir, const char *name, int to_dir, int depth)
{
	struct statx sx;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return copy_file(dir, name, to_dir, &st);
	if (!S_ISDIR(st.st_mode))
		return copy_special(dir, name, to_dir, &st);
	if (lr_statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &sx) < 0)
		sx.stx_attributes = 0;
	return copy_subdir(dir, name, to_dir, &sx, &st, depth);
}

struct entry { /* struct linux_dirent64 */
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static int copy_dir(int from, int to, int depth)
{
	_Alignas(struct entry) char buf[1024];
	long n;

	if (depth > DEPTH_MAX)
		return -ENAMETOOLONG;
	while ((n = syscall(SYS_getdents64, from, buf, sizeof(buf))) > 0) {
		for (long i = 0; i < n;) {
			struct entry *e = (struct entry *)(buf + i);
			i += e->len;
			if (lr_streq(e->name, ".") || lr_streq(e->name, ".."))
				continue;
			int r = copy_entry(from, e->name, to, depth);
			if (r < 0) {
				lr_debug("mount: tmpcopyup: %s: error %d", e->name, -r);
				return r;
			}
		}
	}
	return n < 0 ? -errno : 0;
}

int lr_mount_copyup(int from, int to, struct lr_err *err)
{
	int r = copy_dir(from, to, 0);

	if (r < 0) {
		lr_fail(err, -r, "tmpcopyup");
		if (r == -ENOSPC)
			lr_err_hint(err, "the tmpfs is smaller than what the image has there: "
					 "raise \"size\"");
	}
	return r;
}
