/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: what the parent does before clone, with the host's privileges and view: bind sources for
 * a child in a user namespace (which may not reach them, and would find their flags locked), and
 * id mappings (which need privileges over the file system).
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/sys/path.h"
#include "src/sys/procfs.h"

static bool needs_tree(const struct lr_mount_plan *plan, const struct lr_mount_op *op)
{
	return op->kind == LR_MOUNT_BIND &&
	       (plan->opts.userns || plan->opts.elsewhere || op->map >= 0);
}

static int fail_source(const struct lr_mount_op *op, int r, struct lr_err *err)
{
	lr_fail(err, -r, "%s", op->source);
	lr_err_at(err, "mounts[%zu].source", op->index);
	if (r == -ENOENT)
		lr_err_hint(err, "the runtime makes mount points, but no sources: create it");
	return r;
}

/* 1: it is a symbolic link and is kept; 0: it is not. */
static int keep_link(struct lr_mount_op *op, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open(op->source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_source(op, -errno, err);
	if (!S_ISLNK(st.st_mode))
		return 0;
	op->tree = lr_take_fd(&fd);
	op->is_link = true;
	return 1;
}

static int fail_idmap(const struct lr_mount_op *op, int r, struct lr_err *err)
{
	lr_fail(err, -r, "id-map the mount of %s", op->source);
	lr_err_at(err, "mounts[%zu]", op->index);
	if (r == -EINVAL)
		lr_err_hint(err,
			    "its file system (0x%lx) must support id-mapped mounts in this kernel "
			    "(ext4, xfs: 5.12; btrfs: 5.15; tmpfs: 6.3), and not be mapped yet",
			    lr_fs_magic(op->tree));
	else if (r == -ENOSYS)
		lr_err_hint(err, "id-mapped mounts need Linux 5.12");
	else if (r == -EPERM)
		lr_err_hint(err, "id-mapping needs CAP_SYS_ADMIN over the file system, which a "
				 "rootless runtime does not have");
	return r;
}

static int apply_idmap(struct lr_mount_plan *plan, struct lr_mount_op *op, int *procfd,
		       struct lr_err *err)
{
	struct lr_mount_map *map = &plan->maps[op->map];

	if (map->fd < 0) {
		if (*procfd < 0 && !map->path && (*procfd = lr_procfs_open(err)) < 0)
			return *procfd;
		map->fd = lr_mount_idmap_open(map, *procfd, err);
		if (map->fd < 0) {
			int r = map->fd;
			map->fd = LR_NOFD;
			lr_err_at(err, "mounts[%zu]", op->index);
			return r;
		}
	}
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)map->fd};
	unsigned flags = AT_EMPTY_PATH | (op->o.ridmap && op->o.rec ? AT_RECURSIVE : 0);
	int r = lr_mount_setattr(op->tree, "", flags, &attr);
	return r < 0 ? fail_idmap(op, r, err) : 0;
}

/*
 * A clone of a shared mount is a peer of the host's, which crossing into a child's mount namespace
 * by clone(2) would not leave so: make it what such a copy would be.
 */
static int cut_propagation(const struct lr_mount_plan *plan, const struct lr_mount_op *op)
{
	unsigned long prop = plan->root_prop;

	if (prop == MS_SHARED) {
		if (!plan->opts.userns)
			return 0;
		prop = MS_SLAVE; /* CL_SHARED_TO_SLAVE: never back into the host */
	}
	struct mount_attr attr = {.propagation = prop};
	return lr_mount_setattr(op->tree, "", AT_EMPTY_PATH | (op->o.rec ? AT_RECURSIVE : 0),
				&attr);
}

static int detach(struct lr_mount_plan *plan, struct lr_mount_op *op, int *procfd,
		  struct lr_err *err)
{
	if (op->o.copy_symlink) {
		int r = keep_link(op, err);
		if (r != 0)
			return r;
	}
	int fd = lr_mount_no_new_api ? -ENOSYS
				     : lr_mount_tree(op->source, op->o.rec, op->o.src_nofollow);
	if (lr_mount_refused(fd)) {
		/* An unprivileged parent: the child can do it, in its own user namespace. */
		if (op->map < 0 && !plan->opts.elsewhere)
			return 0;
		if (op->map >= 0)
			return fail_idmap(op, fd, err);
		fail_source(op, fd, err);
		return lr_err_hint(err, "mounting into a running container needs open_tree(2) "
					"(Linux 5.2) and CAP_SYS_ADMIN on the host");
	}
	if (fd < 0)
		return fail_source(op, fd, err);
	op->tree = fd;
	lr_debug("mount: detached %s for mounts[%zu]", op->source, op->index);

	int r = op->map >= 0 ? apply_idmap(plan, op, procfd, err) : 0;
	if (r < 0)
		return r;
	r = cut_propagation(plan, op);
	if (r == -ENOSYS && op->map < 0 &&
	    !plan->opts.elsewhere) { /* 5.2 to 5.11: leave it to the child */
		op->tree = lr_close(op->tree);
		return 0;
	}
	if (r < 0) {
		lr_fail(err, -r, "set the propagation of %s", op->source);
		lr_err_at(err, "mounts[%zu]", op->index);
		return r;
	}
	return 0;
}

int lr_mount_prepare(struct lr_mount_plan *plan, struct lr_err *err)
{
	LR_CLEANUP_FD int procfd = LR_NOFD;
	int r = 0;

	for (size_t i = 0; i < plan->n && r >= 0; i++)
		if (needs_tree(plan, &plan->ops[i]))
			r = detach(plan, &plan->ops[i], &procfd, err);
	/* The trees hold the mappings; the namespaces are not needed any more. */
	for (size_t i = 0; i < plan->n_maps; i++)
		plan->maps[i].fd = lr_close(plan->maps[i].fd);
	if (r < 0)
		lr_mount_release(plan);
	return r < 0 ? r : 0;
}
