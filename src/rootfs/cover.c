/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: what masked paths are covered with; see rootfs.h for why it is opened so early. */
#define LR_ROOM "rootfs"
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

#define NULL_FILE "/dev/null" /* the host's */
#define BY_FD     40

/* -ENODEV: it is something else. */
static int check_null(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3) ? 0 : -ENODEV;
}

/*
 * A copy of the null device's mount, read-only: it can be written to as ever, but root in the
 * container cannot change its mode, owner or times through a masked path, and with them those of
 * the host's /dev/null. Private, because the host's mounts are not cut off from ours yet: a peer of
 * the host's /dev would carry what the container mounts on a masked path to the host's /dev/null.
 */
static int null_tree(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE};
	LR_CLEANUP_FD int tree = lr_open_tree(
		AT_FDCWD, NULL_FILE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	int r = tree < 0 ? tree : lr_mount_setattr(tree, "", AT_EMPTY_PATH, &attr);

	return r < 0 ? r : lr_take_fd(&tree);
}

static int null_file(void)
{
	int fd = lr_open(NULL_FILE, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int lr_rootfs_open_null(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *state,
			struct lr_err *err)
{
	if (!plan->masked.n)
		return 0;
	int fd = null_tree();
	bool by_mount2 = lr_not_offered(fd);

	if (by_mount2 && plan->prepared) {
		lr_fail(err, -fd, "a null device, to mask files with");
		return lr_err_hint(err, "templates need Linux 5.12; --lean=lean,mounts=config does "
					"without");
	}
	if (by_mount2)
		fd = null_file();
	if (fd < 0)
		return lr_fail(err, -fd, "the host's " NULL_FILE ", to mask files with");
	state->null = (struct lr_rootfs_cover){.fd = fd, .by_mount2 = by_mount2};
	int r = check_null(fd);
	if (r >= 0)
		return 0;
	if (r != -ENODEV)
		return lr_fail(err, -r, "look at the host's " NULL_FILE);
	lr_refuse(err, ENODEV, "the host's " NULL_FILE " is not character device 1:3");
	return lr_err_hint(err, "files are masked with it: repair /dev on the host");
}

/* Read-only as a file system and as a mount, and too small for a second inode: a container that may
 * remount it changes how its own masked paths look, and nothing else. */
static int empty_tree(const struct lr_rootfs_plan *plan)
{
	static const struct {
		const char *key, *value;
	} params[] = {
		{"source", "tmpfs"},
		{"mode", "0555"},
		{"nr_blocks", "1"},
		{"nr_inodes", "1"},
	};
	LR_CLEANUP_FD_LATE int ctx = lr_fsopen("tmpfs", FSOPEN_CLOEXEC);
	int r = ctx < 0 ? ctx : lr_fsconfig(ctx, FSCONFIG_SET_FLAG, "ro", NULL, 0);

	for (size_t i = 0; i < LR_ARRAY_SIZE(params) && r >= 0; i++)
		r = lr_fsconfig(ctx, FSCONFIG_SET_STRING, params[i].key, params[i].value, 0);
	if (r >= 0 && plan->label)
		r = lr_fsconfig(ctx, FSCONFIG_SET_STRING, "context", plan->label, 0);
	if (r >= 0)
		r = lr_fsconfig(ctx, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	return r < 0 ? r
		     : lr_fsmount(ctx, FSMOUNT_CLOEXEC,
				  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					  MOUNT_ATTR_NOEXEC);
}

/* A directory of a module's goes with the module, and so does what is mounted on it. It may have come
 * back since, without the cover. */
static int copy_named(const struct lr_rootfs_cover *c)
{
	LR_CLEANUP_FD_LATE int fd = lr_open_tree(
		c->dir, c->name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

	if (fd == -ENOENT || (fd >= 0 && lr_fs_magic(fd) != TMPFS_MAGIC))
		return -ESTALE;
	return fd < 0 ? fd : lr_take_fd(&fd);
}

static int copy(const struct lr_rootfs_cover *c)
{
	return c->name ? copy_named(c)
		       : lr_open_tree(c->fd, "",
				      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

/* Before Linux 6.15 only a mount of our namespace can be copied, so the first place gets the mount
 * itself and the others copies. If there is no such place, or it is of the wrong kind, the next one
 * gets its copy. */
int lr_rootfs_cover_put(struct lr_rootfs_cover *c, int at, const char *name)
{
	if (c->used || c->name) {
		int fd = copy(c);
		if (fd == -ESTALE) /* there is nothing to copy: the next one is made anew */
			c->name = NULL;
		if (fd < 0)
			return fd;
		(void)lr_close_late(c->fd);
		*c = (struct lr_rootfs_cover){.fd = fd};
	}
	int r = lr_move_mount(c->fd, "", at, name,
			      MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : MOVE_MOUNT_T_EMPTY_PATH));
	c->used = r == 0;
	return r;
}

/* An open file as a path, for mount(2). */
static void name_by_fd(char buf[BY_FD], int fd)
{
	snprintf(buf, BY_FD, "/proc/self/fd/%d", fd);
}

int lr_rootfs_remount_ro(const char *path)
{
	static const struct {
		unsigned long st, ms;
	} flags[] = {
		{ST_NOSUID, MS_NOSUID},           {ST_NODEV, MS_NODEV},
		{ST_NOEXEC, MS_NOEXEC},           {ST_NOATIME, MS_NOATIME},
		{ST_NODIRATIME, MS_NODIRATIME},   {ST_RELATIME, MS_RELATIME},
		{ST_NOSYMFOLLOW, MS_NOSYMFOLLOW},
	};
	struct statvfs st;

	if (statvfs(path, &st) < 0)
		return -errno;
	unsigned long ms = MS_REMOUNT | MS_BIND | MS_RDONLY;
	for (size_t i = 0; i < LR_ARRAY_SIZE(flags); i++) {
		if (st.f_flag & flags[i].st)
			ms |= flags[i].ms;
	}
	return mount(NULL, path, NULL, ms, NULL) < 0 ? -errno : 0;
}

int lr_rootfs_set_ro(int mounted)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	char by_fd[BY_FD];
	int r = lr_mount_setattr(mounted, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr);

	name_by_fd(by_fd, mounted);
	return lr_not_offered(r) ? lr_rootfs_remount_ro(by_fd) : r;
}

/* Makes the mount on `path` read-only, if it shows the file `same`. Remounting fails where nothing
 * is mounted. */
static int remount_covered(int rootfd, const char *path, int same)
{
	struct stat a, b;
	LR_CLEANUP_FD int fd = lr_open_in(rootfd, path, O_PATH, 0);

	if (fd < 0)
		return fd;
	if (fstat(fd, &a) < 0 || fstat(same, &b) < 0)
		return -errno;
	if (a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return -ESTALE;
	return lr_rootfs_set_ro(fd);
}

int lr_rootfs_bind_ro(int rootfd, const char *path, int from, int at, unsigned long flags)
{
	char source[BY_FD], target[BY_FD];

	name_by_fd(source, from);
	name_by_fd(target, at);
	if (mount(source, target, NULL, MS_BIND | flags, NULL) < 0)
		return -errno;
	return remount_covered(rootfd, path, from);
}

int lr_rootfs_cover_file(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
			 const char *path, int at)
{
	struct lr_rootfs_cover *c = &s->null;
	int r = c->by_mount2 ? -ENOSYS : lr_rootfs_cover_put(c, at, "");

	if (!lr_not_offered(r) || plan->prepared)
		return r;
	if (!c->by_mount2) { /* open_tree(2) worked and move_mount(2) did not: a sandbox's filter */
		lr_close(c->fd);
		*c = (struct lr_rootfs_cover){.fd = null_file(), .by_mount2 = true};
		r = c->fd < 0 ? c->fd : check_null(c->fd);
		if (r < 0)
			return r;
	}
	return lr_rootfs_bind_ro(s->rootfd, path, c->fd, at, 0);
}

int lr_rootfs_mount_empty(const struct lr_rootfs_plan *plan, const char *on)
{
	return mount("tmpfs", on, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		     plan->empty_data) < 0
		       ? -errno
		       : 0;
}

/* By mount(2): a file system of its own for each directory. */
static int mount_empty_at(const struct lr_rootfs_plan *plan, int at)
{
	char by_fd[BY_FD];
	const char *on = ".";

	if (fchdir(at) < 0) {
		if (errno == ENOTDIR)
			return -ENOTDIR;
		/* Root of a user namespace may not enter what it may cover. */
		name_by_fd(by_fd, at);
		on = by_fd;
	}
	return lr_rootfs_mount_empty(plan, on);
}

int lr_rootfs_cover_dir(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s, int at)
{
	struct lr_rootfs_cover *c = &s->empty;
	int r = 0;

	if (c->fd < 0 && !c->name && !c->by_mount2) {
		c->fd = empty_tree(plan);
		r = c->fd < 0 ? c->fd : 0;
	}
	if (r == 0 && !c->by_mount2)
		r = lr_rootfs_cover_put(c, at, "");
	if (c->by_mount2 || (lr_not_offered(r) && !plan->prepared)) {
		c->by_mount2 = true;
		return mount_empty_at(plan, at);
	}
	return r;
}

void lr_rootfs_covers_close(struct lr_rootfs_state *s)
{
	/* For mount(2) it is a file of the host's /dev, and must not stay open (lr_close_late). */
	s->null.fd = s->null.by_mount2 ? lr_close(s->null.fd) : lr_close_late(s->null.fd);
	s->empty.fd = lr_close_late(s->empty.fd);
}
