/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the mounts that criu restores a container from, in criu's process, before it is
 * executed: in a mount namespace that ends with it, so that no killing of anybody leaves one
 * behind.
 */
#define LR_ROOM "restore"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

/* Before Linux 5.12; then there are no trees of attributes either. */
static int set_by_mount2(const char *path, uint64_t set)
{
	const unsigned long flags = (set & MOUNT_ATTR_RDONLY ? MS_RDONLY : 0) |
				    (set & MOUNT_ATTR_NOSUID ? MS_NOSUID : 0) |
				    (set & MOUNT_ATTR_NODEV ? MS_NODEV : 0) |
				    (set & MOUNT_ATTR_NOEXEC ? MS_NOEXEC : 0) |
				    (set & MOUNT_ATTR_NOSYMFOLLOW ? MS_NOSYMFOLLOW : 0);

	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | flags, NULL) < 0 ? -errno : 0;
}

static int set_attributes(const struct lr_restore_bind *b)
{
	struct mount_attr attr = {.attr_set = b->set};

	if (!b->set)
		return 0;
	int r = lr_mount_setattr(AT_FDCWD, b->at, b->rec ? AT_RECURSIVE : 0, &attr);
	return lr_not_offered(r) ? set_by_mount2(b->at, b->set) : r;
}

static int fail(const struct lr_restore_bind *b, int why, const char *what, struct lr_err *err)
{
	lr_fail(err, why, "%s %s", what, b->source);
	if (b->destination)
		lr_err_hint(err, "config.json mounts it on %.160s", b->destination);
	return -why;
}

static int prepare(const struct lr_restore_bind *b, struct lr_err *err)
{
	struct stat st;

	if (stat(b->source, &st) < 0)
		return fail(b, errno, "find the source of a bind mount,", err);
	if (b->null && (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)))
		return lr_refuse(err, EPERM, "%s, which masks files, is not the null device",
				 b->source);
	int made = S_ISDIR(st.st_mode) ? mkdir(b->at, 0700) : mknod(b->at, S_IFREG | 0600, 0);
	if (made < 0)
		return fail(b, errno, "make a place for", err);
	if (mount(b->source, b->at, NULL, MS_BIND | MS_REC, NULL) < 0)
		return fail(b, errno, "bind", err);
	int r = set_attributes(b);
	return r < 0 ? fail(b, -r, "set the attributes of a mount of", err) : 0;
}

int lr_restore_stage(const struct lr_restore_job *job, const struct lr_restore_plan *plan,
		     struct lr_err *err)
{
	const char *root = plan->opts.root;

	int r = lr_unshare(CLONE_NEWNS);
	if (r < 0)
		return lr_fail(err, -r, "make a mount namespace for criu");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return lr_fail(err, errno, "keep criu's mounts from the host");
	if (mount("tmpfs", job->stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") < 0)
		return lr_fail(err, errno, "mount a tmpfs on %s", job->stage);
	/* The root has to be a mount point, with nothing mounted on its parent. */
	if (mkdir(root, 0700) < 0 || mount(job->rootfs, root, NULL, MS_BIND, NULL) < 0)
		return lr_fail(err, errno, "bind %s for criu", job->rootfs);
	if (mount(NULL, root, NULL, MS_PRIVATE, NULL) < 0)
		return lr_fail(err, errno, "keep the container's mounts from the host");
	for (size_t i = 0; i < plan->n && r >= 0; i++)
		r = prepare(&plan->binds[i], err);
	return r;
}
