/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: the mounts that criu restores a container from, in criu's process, before it is
 * executed: in a mount namespace that ends with it, so that no killing of anybody leaves one
 * behind.
 */
#define LR_ROOM "restore"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "src/sys/syscalls.h"

/* Before Linux 5.12. */
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
	int r = lr_mount_setattr(AT_FDCWD, b->at, 0, &attr);
	return lr_not_offered(r) ? set_by_mount2(b->at, b->set) : r;
}

/*
 * What was a slave of the host's mounts becomes one of its source, which has to have a peer group
 * for that, whatever the host's mount is. Nothing gets from here to the host: all is its slave.
 */
static int let_share(const char *at, struct lr_err *err)
{
	return mount(NULL, at, NULL, MS_REC | MS_SHARED, NULL) < 0
		       ? lr_fail(err, errno, "share %s", at)
		       : 0;
}

static int fail(const struct lr_restore_bind *b, int why, const char *what, struct lr_err *err)
{
	lr_fail(err, why, "%s %s", what, b->source);
	if (b->configured)
		lr_err_hint(err, "config.json mounts it on %.160s", b->name);
	return -why;
}

static int mount_of(const char *path, uint64_t *ret)
{
	struct statx st;

	int r = lr_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &st);
	if (r >= 0 && !(st.stx_mask & STATX_MNT_ID))
		r = -EOPNOTSUPP; /* before Linux 5.8 */
	*ret = r < 0 ? 0 : st.stx_mnt_id;
	return r;
}

/*
 * How much of a path, which has no links in it, leads to the root of the mount that its end is in.
 * That whole mount is what is bound: for criu to make several mounts slaves of one, it has to hold
 * what all of them show.
 */
static int find_top(const char *path, size_t *ret)
{
	size_t n = lr_streq(path, "/") ? 0 : strlen(path), up;
	uint64_t its, id;

	int r = mount_of(path, &its);
	for (; r >= 0 && n > 0; n = up) {
		char dir[PATH_MAX];
		up = (size_t)((const char *)memrchr(path, '/', n) - path);
		snprintf(dir, sizeof(dir), "%.*s", up ? (int)up : 1, path);
		r = mount_of(dir, &id);
		if (r >= 0 && id != its)
			break;
	}
	*ret = n;
	return r == -EOPNOTSUPP ? 0 : r;
}

int lr_restore_look(struct lr_restore_plan *plan, struct lr_arena *a, struct lr_err *err)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < plan->n; i++) {
		struct lr_restore_bind *b = &plan->binds[i];
		if (!realpath(b->source, path))
			return fail(b, errno, "find the source of a bind mount,", err);
		b->source = lr_strdup(a, path);
		if (!b->source)
			return lr_fail(err, ENOMEM, "restore");
		int r = find_top(path, &b->top);
		if (r < 0)
			return fail(b, -r, "find the mount of", err);
	}
	return 0;
}

static int prepare(const struct lr_restore_bind *b, struct lr_err *err)
{
	char top[PATH_MAX];
	struct stat st;

	if (b->null && stat(b->source, &st) < 0)
		return fail(b, errno, "look at", err);
	if (b->null && (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)))
		return lr_refuse(err, EPERM, "%s, which masks files, is not the null device",
				 b->source);
	snprintf(top, sizeof(top), "%.*s", b->top ? (int)b->top : 1, b->source);
	if (stat(top, &st) < 0)
		return fail(b, errno, "find the mount of", err);
	int made = S_ISDIR(st.st_mode) ? mkdir(b->at, 0700) : mknod(b->at, S_IFREG | 0600, 0);
	if (made < 0)
		return fail(b, errno, "make a place for", err);
	if (mount(top, b->at, NULL, MS_BIND, NULL) < 0)
		return fail(b, errno, "bind", err);
	int r = set_attributes(b);
	return r < 0 ? fail(b, -r, "set the attributes of a mount of", err) : let_share(b->at, err);
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
	r = let_share(root, err);
	if (r >= 0)
		r = lr_yard_bind(&plan->yard, plan->opts.cgroup_yard, err);
	for (size_t i = 0; i < plan->n && r >= 0; i++)
		r = prepare(&plan->binds[i], err);
	return r;
}
