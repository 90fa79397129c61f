/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean: a root file system in a file. Mounted once, read-only, on img/<what the file is>, for all
 * containers of this root: the slots' trees are made from there, and containers without one are
 * attached to it as to any directory. Each of them has a slot, and as long as there are slots the
 * mount stays. The loop device goes with the last mount of it (LO_FLAGS_AUTOCLEAR), whoever is
 * killed when.
 */
#define LR_ROOM "lean"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/internal.h"
#include "src/sys/syscalls.h"

#define DIR_OF_IMAGES "img"
#define LOOP_TRIES    64

/* ---- which file system -------------------------------------------------------------------- */

static const struct {
	const char *type, *options;
	size_t offset;
	const char *magic;
	size_t len;
} kinds[] = {
	{"squashfs", "", 0, "hsqs", 4},
	{"erofs", "", 1024, "\xe2\xe1\xf5\xe0", 4},
	/* A journal that was not closed cannot be replayed on a read-only device. */
	{"ext4", "noload", 1024 + 0x38, "\x53\xef", 2},
};

static int kind_of(int fd, const char *path, size_t *kind, struct lr_err *err)
{
	char head[2048] = {0};

	if (pread(fd, head, sizeof(head), 0) < 0)
		return lr_fail(err, errno, "read %s", path);
	for (size_t i = 0; i < LR_ARRAY_SIZE(kinds); i++)
		if (memcmp(head + kinds[i].offset, kinds[i].magic, kinds[i].len) == 0) {
			*kind = i;
			return 0;
		}
	lr_refuse(err, EINVAL, "%s is no image of a file system", path);
	return lr_err_hint(err, "known are squashfs, erofs and ext4");
}

/* ---- loop devices ------------------------------------------------------------------------- */

/* /dev/loopN, or, where no devtmpfs makes it, a node of our own. */
static int open_loop(const struct lr_lean_home *h, int n)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/loop%d", n);
	int fd = lr_open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	snprintf(path, sizeof(path), "loop%d.%d", n, getpid());
	if (mknodat(h->fd, path, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned)n)) < 0)
		return -errno;
	fd = openat(h->fd, path, O_RDWR | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd;
	(void)unlinkat(h->fd, path, 0);
	return r;
}

static int configure(int loop, int image, const char *path)
{
	struct loop_config c = {
		.fd = (unsigned)image,
		.info = {.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR},
	};

	snprintf((char *)c.info.lo_file_name, sizeof(c.info.lo_file_name), "%s", path);
	if (ioctl(loop, LOOP_CONFIGURE, &c) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOTTY)
		return -errno;
	/* Before Linux 5.8, in two steps. */
	if (ioctl(loop, LOOP_SET_FD, image) < 0)
		return -errno;
	if (ioctl(loop, LOOP_SET_STATUS64, &c.info) == 0)
		return 0;
	int r = -errno;
	ioctl(loop, LOOP_CLR_FD, 0);
	return r;
}

/* A configured device; it is free again when the last mount or descriptor of it is closed. */
static int attach(const struct lr_lean_home *h, int image, const char *path, int *number,
		  struct lr_err *err)
{
	LR_CLEANUP_FD int control = lr_open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int r = control < 0 ? -errno : 0;

	for (int i = 0; r >= 0 && i < LOOP_TRIES; i++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);
		LR_CLEANUP_FD int loop = n < 0 ? -errno : open_loop(h, n);
		r = loop < 0 ? loop : configure(loop, image, path);
		if (r >= 0) {
			*number = n;
			return lr_take_fd(&loop);
		}
		if (r == -EBUSY) /* somebody was faster */
			r = 0;
	}
	lr_fail(err, r < 0 ? -r : EBUSY, "get a loop device for %s", path);
	return lr_err_hint(err, "the kernel's loop driver, and /dev/loop-control, are needed");
}

static int mount_device(const char *device, const char *target, const char *type,
			const char *options)
{
	return mount(device, target, type, MS_RDONLY | MS_NODEV, options) < 0 ? -errno : 0;
}

static int mount_by_loop(const struct lr_lean_home *h, int image, const char *path, size_t kind,
			 const char *target, struct lr_err *err)
{
	char device[64];
	int n;
	LR_CLEANUP_FD int loop = attach(h, image, path, &n, err);

	if (loop < 0)
		return loop;
	snprintf(device, sizeof(device), "/dev/loop%d", n);
	if (access(device, F_OK) < 0) /* open_loop had to make a node, and it is gone */
		snprintf(device, sizeof(device), "/proc/self/fd/%d", loop);
	int r = mount_device(device, target, kinds[kind].type, "");
	if (r < 0 && kinds[kind].options[0])
		r = mount_device(device, target, kinds[kind].type, kinds[kind].options);
	if (r < 0)
		lr_fail(err, -r, "mount %s (%s)", path, kinds[kind].type);
	if (r == -ENODEV)
		lr_err_hint(err, "this kernel does not have %s", kinds[kind].type);
	return r;
}

/* ---- mounting ------------------------------------------------------------------------------- */

bool lr_lean_image_mounted(const char *path)
{
	struct statx st;

	return lr_statx(AT_FDCWD, path, 0, 0, &st) >= 0 &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int mount_image(const struct lr_lean_home *h, const char *path, const char *target,
		       struct lr_err *err)
{
	size_t kind;
	LR_CLEANUP_FD int image = lr_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (image < 0)
		return lr_fail(err, errno, "%s", path);
	int r = kind_of(image, path, &kind, err);
	if (r < 0)
		return r;
	/* Linux 6.12 reads an erofs right from its file. */
	if (lr_streq(kinds[kind].type, "erofs") &&
	    mount(path, target, "erofs", MS_RDONLY | MS_NODEV, NULL) == 0)
		return 0;
	return mount_by_loop(h, image, path, kind, target, err);
}

const char *lr_lean_image_dir(const char *home, const struct statx *st, struct lr_arena *a)
{
	/* A file that changed is another image. */
	return lr_strf(a, "%s/" DIR_OF_IMAGES "/%x.%x.%llx.%llx.%llx", home, st->stx_dev_major,
		       st->stx_dev_minor, (unsigned long long)st->stx_ino,
		       (unsigned long long)st->stx_size,
		       (unsigned long long)st->stx_mtime.tv_sec * 1000000000 +
			       st->stx_mtime.tv_nsec);
}

int lr_lean_image_mount(struct lr_lean_home *h, const char *path, const char *target,
			struct lr_err *err)
{
	int r = lr_lean_home_fit(h, err);
	LR_CLEANUP_FD int lock = r < 0 ? r : lr_lean_home_lock(h, LOCK_EX, err);
	if (lock < 0)
		return lock;
	if (lr_lean_image_mounted(target))
		return 0; /* somebody was faster */
	if ((mkdirat(h->fd, DIR_OF_IMAGES, 0700) < 0 && errno != EEXIST) ||
	    (mkdir(target, 0700) < 0 && errno != EEXIST))
		return lr_fail(err, errno, "make %s", target);
	r = mount_image(h, path, target, err);
	if (r >= 0)
		lr_debug("lean: %s mounted on %s", path, target);
	return r < 0 ? lr_err_at(err, "root.path") : 0;
}

int lr_lean_image_forget(const struct lr_lean_home *h, struct lr_err *err)
{
	int fd = openat(h->fd, DIR_OF_IMAGES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	LR_CLEANUP_DIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char path[PATH_MAX];

	if (!d) {
		lr_close(fd);
		return errno == ENOENT ? 0 : lr_fail(err, errno, "open %s/" DIR_OF_IMAGES, h->path);
	}
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		int n = snprintf(path, sizeof(path), "%s/" DIR_OF_IMAGES "/%s", h->path, e->d_name);
		if (n >= (int)sizeof(path))
			return lr_fail(err, ENAMETOOLONG, "unmount %s", e->d_name);
		int busy = lr_lean_unmount(path);
		if (rmdir(path) < 0 && errno != ENOENT)
			return lr_fail(err, errno == EBUSY ? busy : errno, "remove %s", path);
	}
	return 0;
}
