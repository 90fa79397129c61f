/* SPDX-License-Identifier: Apache-2.0 */
/* mount: bind mounts, by open_tree(2) or mount(2); remounts are in apply.c. */
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

int lr_mount_tree(const char *source, bool rec, bool nofollow)
{
	return lr_open_tree(AT_FDCWD, source,
			    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (rec ? AT_RECURSIVE : 0) |
				    (nofollow ? AT_SYMLINK_NOFOLLOW : 0));
}

/*
 * By the host's paths, which lead into the container's root, too. Root of a user namespace may not
 * get there by them; what is below the root is then found from the root.
 */
static int open_source(const struct lr_mount_op *op, const struct lr_mount_env *env)
{
	int tree = lr_mount_tree(op->source, op->o.rec, op->o.src_nofollow);

	if (!op->inside || (tree != -EACCES && tree != -ENOENT))
		return tree;
	LR_CLEANUP_FD int fd = lr_open_in(env->rootfd, op->inside,
					  O_PATH | (op->o.src_nofollow ? O_NOFOLLOW : 0), 0);
	return fd < 0 ? fd
		      : lr_open_tree(fd, "",
				     AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
					     (op->o.rec ? AT_RECURSIVE : 0));
}

int lr_mount_fail_source(const struct lr_mount_op *op, int r, struct lr_err *err)
{
	lr_fail(err, -r, "%s", op->source);
	lr_err_at(err, "mounts[%zu].source", op->index);
	if (r == -ENOENT)
		lr_err_hint(err, "the runtime makes mount points, but no sources: create it");
	if (r == -EINVAL && !op->o.rec)
		lr_err_hint(err, "the source is unbindable, or holds mounts that a user namespace "
				 "may not uncover: use \"rbind\"");
	return r;
}

/* What covers /proc must be the root of a procfs, or the runtime would trust a forgery. */
static int check_procfs(const struct lr_mount_op *op, int fd, struct lr_err *err)
{
	struct stat st;

	if (!op->is_procfs)
		return 0;
	if (fstat(fd, &st) == 0 && lr_fs_magic(fd) == PROC_SUPER_MAGIC && st.st_ino == 1)
		return 0;
	lr_refuse(err, EPERM, "bind of %s on /proc is refused: it is not the root of a procfs",
		  op->source);
	lr_err_at(err, "mounts[%zu].source", op->index);
	return -EPERM;
}

/* 1: the link is there now; 0: the source is no link, mount it. */
static int copy_symlink(struct lr_mount_op *op, const struct lr_mount_env *env, struct lr_err *err)
{
	char target[PATH_MAX], there[PATH_MAX], dir[PATH_MAX];
	LR_CLEANUP_FD int own = LR_NOFD;
	int fd = op->tree;

	if (!op->is_link) {
		struct stat st;
		if (op->tree >= 0)
			return 0;
		fd = own = lr_open(op->source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return lr_mount_fail_source(op, -errno, err);
		if (!S_ISLNK(st.st_mode))
			return 0;
	}
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);
	if (n < 0)
		return lr_mount_fail_source(op, -errno, err);
	target[n] = '\0';

	size_t len = (size_t)(op->name - op->dest);
	if (len >= sizeof(dir))
		return lr_mount_fail_source(op, -ENAMETOOLONG, err);
	memcpy(dir, op->dest, len);
	dir[len] = '\0';
	LR_CLEANUP_FD int parent = lr_mkdir_in(env->rootfd, dir, 0755);
	int r = parent < 0 ? parent : symlinkat(target, parent, op->name) < 0 ? -errno : 0;
	if (r == -EEXIST) {
		n = readlinkat(parent, op->name, there, sizeof(there) - 1);
		there[n < 0 ? 0 : n] = '\0';
		if (lr_streq(there, target))
			r = 0;
	}
	if (r < 0) {
		lr_fail(err, -r, "copy the symbolic link %s to %s", op->source, op->dest);
		lr_err_at(err, "mounts[%zu].destination", op->index);
		return r;
	}
	return 1;
}

static int fail_attach(const struct lr_mount_op *op, int r, int tree, int dest, struct lr_err *err)
{
	struct stat a, b;

	lr_fail(err, -r, "bind %s on %s", op->source, op->dest);
	lr_err_at(err, "mounts[%zu]", op->index);
	if (fstat(tree, &a) == 0 && fstat(dest, &b) == 0 &&
	    S_ISDIR(a.st_mode) != S_ISDIR(b.st_mode))
		lr_err_hint(err, "the source is %s and the destination is %s",
			    S_ISDIR(a.st_mode) ? "a directory" : "not a directory",
			    S_ISDIR(b.st_mode) ? "a directory" : "not a directory");
	return r;
}

static int at_mount(const struct lr_mount_op *op, int r, struct lr_err *err)
{
	if (r < 0)
		lr_err_at(err, "mounts[%zu].options", op->index);
	return r;
}

/* mount(2): flags can only change once it is in place. */
static int legacy(struct lr_mount_plan *plan, struct lr_mount_op *op,
		  const struct lr_mount_env *env, struct lr_err *err)
{
	LR_CLEANUP_FD int from =
		lr_open(op->source, O_PATH | O_CLOEXEC | (op->o.src_nofollow ? O_NOFOLLOW : 0));
	if (from < 0)
		return lr_mount_fail_source(op, -errno, err);
	LR_MOUNT_CLEANUP_DEST struct lr_mount_dest d = {.fd = LR_NOFD};
	int r = check_procfs(op, from, err);
	if (r < 0 || (r = lr_mount_dest_open(plan, op, env, from, &d, err)) < 0)
		return r;
	char link[40];
	snprintf(link, sizeof(link), "%sself/fd/%d", env->procfd >= 0 ? "" : "/proc/", from);
	r = lr_mount_legacy(env, d.fd, link, NULL, MS_BIND | (op->o.rec ? MS_REC : 0), NULL);
	if (r < 0)
		return fail_attach(op, r, from, d.fd, err);
	if (!op->n_changes)
		return 0;
	LR_CLEANUP_FD_LATE int mfd = lr_mount_dest_reopen(plan, op, env, d.fd, err);
	if (mfd < 0)
		return mfd;
	return at_mount(op,
			lr_mount_changes_apply(plan, mfd, op->changes, op->n_changes, LR_MOUNT_BOTH,
					       env, err),
			err);
}

static int attach_tree(struct lr_mount_plan *plan, struct lr_mount_op *op, int tree, bool mapped,
		       const struct lr_mount_env *env, bool *unavailable, struct lr_err *err)
{
	LR_MOUNT_CLEANUP_DEST struct lr_mount_dest d = {.fd = LR_NOFD};
	int r = check_procfs(op, tree, err);

	if (r < 0 || (r = lr_mount_dest_open(plan, op, env, tree, &d, err)) < 0)
		return r;
	enum lr_mount_when late = LR_MOUNT_ATTACHED;
	r = lr_mount_changes_apply(plan, tree, op->changes, op->n_changes, LR_MOUNT_DETACHED, NULL,
				   err);
	if (r == -ENOSYS) /* Linux 5.2 to 5.11: no mount_setattr, and remounting wants a place */
		late = LR_MOUNT_BOTH;
	else if (r < 0)
		return at_mount(op, r, err);
	r = lr_mount_attach(tree, &d);
	if (r < 0) {
		*unavailable = !mapped && (lr_not_offered(r) || r == -EACCES);
		return fail_attach(op, r, tree, d.fd, err);
	}
	return at_mount(
		op, lr_mount_changes_apply(plan, tree, op->changes, op->n_changes, late, env, err),
		err);
}

int lr_mount_bind_apply(struct lr_mount_plan *plan, struct lr_mount_op *op,
			const struct lr_mount_env *env, struct lr_err *err)
{
	if (op->o.copy_symlink) {
		int r = copy_symlink(op, env, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	bool unavailable = false, mapped = op->map >= 0;
	if (op->tree >= 0) {
		int r = attach_tree(plan, op, op->tree, mapped, env, &unavailable, err);
		op->tree = r < 0 ? lr_close(op->tree) : lr_close_late(op->tree);
		if (!unavailable)
			return r;
	} else if (!lr_mount_no_new_api) {
		LR_CLEANUP_FD int tree = open_source(op, env);
		if (tree < 0 && !lr_not_offered(tree))
			return lr_mount_fail_source(op, tree, err);
		unavailable = tree < 0;
		if (tree >= 0) {
			int r = mapped ? lr_mount_idmap_apply(plan, op, tree, err) : 0;
			if (r == 0)
				r = attach_tree(plan, op, tree, mapped, env, &unavailable, err);
			if (r == 0)
				(void)lr_close_late(lr_take_fd(&tree));
			if (!unavailable)
				return r;
		}
	}
	if (mapped)
		return lr_mount_idmap_fail(op, -ENOSYS, LR_NOFD, err);
	lr_debug("mount: mounts[%zu] by mount(2)", op->index);
	lr_err_clear(err);
	return legacy(plan, op, env, err);
}

int lr_mount_bind_instead(struct lr_mount_plan *plan, struct lr_mount_op *op, const char *source,
			  const struct lr_mount_env *env, struct lr_err *err)
{
	struct lr_mount_op bind = *op;
	struct lr_mount_change ro = {.set = MOUNT_ATTR_RDONLY, .rec = true};
	struct lr_mount_change all[2] = {ro, {.set = op->attr & ~(uint64_t)MOUNT_ATTR__ATIME}};

	lr_debug("mount: mounts[%zu]: %s instead of a new %s", op->index, source, op->type);
	bind.kind = LR_MOUNT_BIND;
	bind.source = source;
	bind.o.rec = true; /* a user namespace may not uncover what is mounted below */
	bind.tree = LR_NOFD;
	/* Read-only goes all the way down: /sys/fs/cgroup of the host is below /sys. */
	bool is_ro = op->attr & MOUNT_ATTR_RDONLY;
	bind.changes = is_ro ? all : all + 1;
	bind.n_changes = is_ro ? 2 : 1;
	int r = lr_mount_bind_apply(plan, &bind, env, err);
	if (r < 0 || !op->n_props)
		return r;
	LR_CLEANUP_FD_LATE int mfd = lr_mount_dest_reopen(plan, op, env, LR_NOFD, err);
	if (mfd < 0)
		return mfd;
	return lr_mount_changes_apply(plan, mfd, op->props, op->n_props, LR_MOUNT_BOTH, env, err);
}
