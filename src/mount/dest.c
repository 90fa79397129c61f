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
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/path.h"

#define LINKS_MAX 8 /* dangling links on one path */

void lr_mount_dest_close(struct lr_mount_dest *d)
{
	if (d->own)
		lr_close_late(d->fd);
	*d = (struct lr_mount_dest){.fd = LR_NOFD};
}

bool lr_mount_dest_near(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
			const struct lr_mount_env *env, struct lr_mount_dest *ret)
{
	*ret = (struct lr_mount_dest){.fd = LR_NOFD};
	if (!*op->name)
		return false;
	if (lr_streq(op->dest, "/sys/fs/cgroup") && (ret->fd = lr_mount_own_sysfs(plan)) >= 0) {
		/* "fs" is no link there, and no link can be mounted on a directory. */
		ret->name = "fs/cgroup";
		return true;
	}
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
	plan->aliased = true;
	for (size_t i = 0; i < plan->n; i++)
		plan->ops[i].parent = -1;
}

static int refuse(const struct lr_mount_op *op, int code, struct lr_err *err, const char *why)
{
	lr_refuse(err, code, "mount on %s is refused: %s", op->dest, why);
	lr_err_at(err, "mounts[%zu].destination", op->index);
	if (code != ESTALE)
		lr_err_hint(err,
			    "the link is the image's: remove it there, or mount on another path");
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

static int make_missing(const struct lr_mount_env *env, const char *path, bool dir, int depth);

/* `prefix` of a path is a link to nothing: makes what it names, within the root. 1 if it was. */
static int make_target(const struct lr_mount_env *env, const char *prefix, bool dir, int depth)
{
	char target[PATH_MAX], text[2 * PATH_MAX], clean[2 * PATH_MAX + 2];
	LR_CLEANUP_FD int link = lr_open_in(env->rootfd, prefix, O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	if (link < 0)
		return link;
	if (fstat(link, &st) < 0 || !S_ISLNK(st.st_mode))
		return 0;
	LR_CLEANUP_FD int there = lr_open_in(env->rootfd, prefix, O_PATH, 0);
	if (there != -ENOENT)
		return there < 0 ? there : 0;
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	int parent = *target == '/' ? 0 : (int)(strrchr(prefix, '/') - prefix);
	snprintf(text, sizeof(text), "%.*s/%s", parent, prefix, target);
	lr_path_clean(text, clean);
	int r = make_missing(env, clean, dir, depth + 1);
	return r < 0 ? r : 1;
}

/*
 * Images have links to directories that appear at run time (/var/run -> /run): what a dangling link
 * names is made, as runc does. The result is only ever opened by the rules above.
 */
static int make_missing(const struct lr_mount_env *env, const char *path, bool dir, int depth)
{
	int fd = dir ? lr_mkdir_in(env->rootfd, path, 0755) : lr_mkfile_in(env->rootfd, path, 0755);
	char prefix[PATH_MAX];
	size_t len = strlen(path);

	if (fd >= 0)
		lr_close(fd);
	if (fd != -ENOENT || depth > LINKS_MAX || len >= sizeof(prefix))
		return fd < 0 ? fd : 0;
	memcpy(prefix, path, len + 1);
	for (size_t end = 1; end <= len; end++) {
		if (path[end] != '/' && path[end] != '\0')
			continue;
		prefix[end] = '\0';
		int r = make_target(env, prefix, dir || end < len, depth);
		prefix[end] = path[end];
		if (r < 0)
			return r;
		if (r > 0)
			return make_missing(env, path, dir, depth + 1);
	}
	return -ENOENT;
}

static int make_like(const struct lr_mount_op *op, const struct lr_mount_env *env, int like)
{
	struct stat st = {.st_mode = S_IFDIR};

	if (like >= 0 && fstat(like, &st) < 0)
		return -errno;
	return make_missing(env, op->dest, S_ISDIR(st.st_mode), 0);
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
		int r = make_like(op, env, like);
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

static bool is_inside_earlier(const struct lr_mount_plan *plan, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (lr_path_below(plan->ops[at].dest, plan->ops[i].dest))
			return true;
	return false;
}

/* A tmpfs takes the mode of the directory that it covers. Without one it has 01777, and the
 * directory that was made for it here must not change that. */
static int keep_default_mode(const struct lr_mount_op *op, int dir, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fchmod(fd, 01777) < 0 ? lr_fail(err, errno, "make %s", op->dest) : 0;
}

int lr_mount_make_places(struct lr_mount_plan *plan, const struct lr_mount_env *env,
			 struct lr_err *err)
{
	for (size_t i = 0; i < plan->n; i++) {
		LR_MOUNT_CLEANUP_DEST struct lr_mount_dest d = {.fd = LR_NOFD};
		LR_CLEANUP_FD int like = LR_NOFD;
		const struct lr_mount_op *op = &plan->ops[i];

		if (op->kind == LR_MOUNT_REMOUNT || is_inside_earlier(plan, i))
			continue;
		if (op->kind == LR_MOUNT_BIND) {
			like = lr_open(op->source,
				       O_PATH | O_CLOEXEC | (op->o.src_nofollow ? O_NOFOLLOW : 0));
			if (like < 0)
				continue; /* the mount itself will fail, and say why */
		}
		int r = lr_mount_dest_open(plan, op, env, like, &d, err);
		if (r >= 0 && d.made && op->inherit_mode)
			r = keep_default_mode(op, d.fd, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* False if both are known to be in one mount. */
static bool is_another_mount(int a, int b)
{
	struct statx x, y;

	if (lr_statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0 ||
	    lr_statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) < 0)
		return true;
	/* Before Linux 5.8 there is no such id. */
	return !(x.stx_mask & y.stx_mask & STATX_MNT_ID) || x.stx_mnt_id != y.stx_mnt_id;
}

/* No path within a directory leads to what is mounted on it; its own path does, or from "/" the
 * way up. */
static int open_over_root(const struct lr_mount_env *env)
{
	char path[PATH_MAX];
	int r = lr_mount_path_of(env, env->rootfd, path, sizeof(path));

	if (r < 0)
		return r;
	int fd = lr_open(path[1] ? path : "/..", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int lr_mount_dest_reopen(struct lr_mount_plan *plan, const struct lr_mount_op *op,
			 const struct lr_mount_env *env, int below, struct lr_err *err)
{
	lr_err_clear(err);
	/* What was bound may be a link itself. */
	LR_CLEANUP_FD int fd =
		lr_mount_is_root(op)
			? open_over_root(env)
			: open_existing(plan, op, env, op->o.src_nofollow ? O_NOFOLLOW : 0, err);
	if (fd >= 0 && below >= 0 && !is_another_mount(fd, below))
		return refuse(op, ESTALE, err, "the path was changed meanwhile");
	if (fd < 0 && (!err || !err->code)) {
		lr_fail(err, -fd, "open %s in the container's root", op->dest);
		lr_err_at(err, "mounts[%zu].destination", op->index);
	}
	return lr_take_fd(&fd);
}
