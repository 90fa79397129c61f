/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lean: a root file system in a file. It is mounted once, read-only, on img/<what the file is>, for
 * all containers of this root: templates are made from there, and for containers without one it is
 * a directory like any other. Each of them has a slot, and the mount stays as long as there are
 * slots.
 */
#define LR_ROOM "lean"
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/lean/internal.h"
#include "src/sys/syscalls.h"
#include "src/sys/tool.h"

#define DIR_OF_IMAGES "img"

bool lr_lean_image_mounted(const char *path)
{
	struct statx st;

	return lr_statx(AT_FDCWD, path, 0, 0, &st) >= 0 &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* Linux 6.12 and newer read an erofs right from its file. */
static bool mount_erofs(const char *path, const char *target)
{
	LR_CLEANUP_FD int image = lr_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	uint32_t magic;

	return image >= 0 && pread(image, &magic, sizeof(magic), 1024) == sizeof(magic) &&
	       le32toh(magic) == EROFS_SUPER_MAGIC_V1 &&
	       mount(path, target, "erofs", MS_RDONLY | MS_NODEV, NULL) == 0;
}

/*
 * mount(8) knows file systems by their contents, and takes a loop device that the kernel frees with
 * the last mount. It keeps our lock, so that nobody removes the home while it is at work, even if
 * we are killed. -i: without a helper for what the image says it is (mount.ntfs and others). That
 * one may stay, to serve a file system in user space, and would have our lock as long as it does.
 */
static int mount_by(const char *options, const char *path, const char *target, int lock,
		    char why[LR_TOOL_SAID])
{
	const char *argv[] = {"mount", "-i", "-n", "-o", options, "--", path, target, NULL};

	return lr_tool_run(argv, lock, why);
}

static int mount_image(const char *path, const char *target, int lock, struct lr_err *err)
{
	char why[LR_TOOL_SAID], again[LR_TOOL_SAID];

	if (mount_erofs(path, target))
		return 0;
	int r = mount_by("ro,nodev,loop", path, target, lock, why);
	/* It may be killed when it has. */
	if (r > 0 && lr_lean_image_mounted(target))
		return 0;
	/* The journal of an ext4 that was not closed cannot be replayed on a read-only device. */
	if (r > 0 && mount_by("ro,nodev,loop,noload", path, target, lock, again) == 0)
		r = 0;
	if (r == 0)
		return 0;
	if (r < 0) {
		lr_fail(err, -r, "run mount");
		return lr_err_hint(err, "images are mounted by mount(8) of util-linux");
	}
	lr_refuse(err, EINVAL, "%s can't be mounted%s%s", path, *why ? ": " : "", why);
	return lr_err_hint(err, "it has to be an image of a file system that this kernel has, and "
				"its loop driver and /dev/loop-control have to be there");
}

const char *lr_lean_image_dir(const char *home, const struct statx *st, struct lr_arena *a)
{
	/* A file that has changed counts as another image. */
	return lr_strf(a, "%s/" DIR_OF_IMAGES "/%x.%x.%llx.%llx.%llx", home, st->stx_dev_major,
		       st->stx_dev_minor, (unsigned long long)st->stx_ino,
		       (unsigned long long)st->stx_size,
		       (unsigned long long)st->stx_mtime.tv_sec * 1000000000 +
			       st->stx_mtime.tv_nsec);
}

/* It is mounted by its path, which may have become another file's since the plan looked. */
static int check_image(const struct lr_lean_home *h, const char *path, const char *target,
		       struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct statx st;

	int r = lr_statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &st);
	const char *now = a && r >= 0 ? lr_lean_image_dir(h->path, &st, a) : NULL;
	if (now && lr_streq(now, target))
		return 0;
	int busy = lr_lean_unmount(target);
	lr_debug("lean: %s unmounted: %s", target, lr_strerror(busy));
	if (r >= 0 && !now)
		return lr_fail(err, ENOMEM, "look at %s", path);
	return r < 0 ? lr_fail(err, -r, "look at %s", path)
		     : lr_refuse(err, EAGAIN, "%s was replaced while it was mounted", path);
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
	r = mount_image(path, target, lock, err);
	if (r >= 0)
		r = check_image(h, path, target, err);
	if (r >= 0)
		lr_debug("lean: %s mounted on %s", path, target);
	return r < 0 ? lr_err_at(err, "root.path") : 0;
}

int lr_lean_image_forget(const struct lr_lean_home *h, struct lr_err *err)
{
	LR_CLEANUP_DIR DIR *d = lr_opendir_at(h->fd, DIR_OF_IMAGES);
	char path[PATH_MAX];

	if (!d)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "open %s/" DIR_OF_IMAGES, h->path);
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
