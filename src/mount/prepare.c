/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: what the parent does before clone, with the host's privileges and view: bind sources for
 * a child in a user namespace (which may not reach them, and would find their flags locked), and
 * id mappings (which need privileges over the file system).
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/path.h"
#include "src/sys/procfs.h"

static bool needs_tree(const struct lr_mount_plan *plan, const struct lr_mount_op *op)
{
	return op->kind == LR_MOUNT_BIND &&
	       (plan->opts.userns || plan->opts.elsewhere || op->map >= 0);
}

/* 1: it is a symbolic link and is kept; 0: it is not. */
static int keep_link(struct lr_mount_op *op, struct lr_err *err)
{
	LR_CLEANUP_FD int fd = lr_open(op->source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return lr_mount_fail_source(op, -errno, err);
	if (!S_ISLNK(st.st_mode))
		return 0;
	op->tree = lr_take_fd(&fd);
	op->is_link = true;
	return 1;
}

static int open_map(struct lr_mount_plan *plan, const struct lr_mount_op *op, int *procfd,
		    struct lr_err *err)
{
	struct lr_mount_map *map = &plan->maps[op->map];

	if (map->fd >= 0)
		return 0;
	if (*procfd < 0 && !map->path && (*procfd = lr_procfs_open(err)) < 0)
		return *procfd;
	int r = lr_mount_idmap_open(map, *procfd, err);
	if (r < 0) {
		lr_err_at(err, "mounts[%zu]", op->index);
		return r;
	}
	map->fd = r;
	return 0;
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

/*
 * A source that is missing here may lie below the container's root, where an earlier mount brings
 * it into being: then the child finds it. Not one that joins a container and has lost sight of the
 * host.
 */
static bool may_come(const struct lr_mount_plan *plan, const struct lr_mount_op *op)
{
	return op->index > 0 && !plan->opts.elsewhere;
}

/* The child maps it, and needs the namespace for that. */
static int leave_map(struct lr_mount_plan *plan, const struct lr_mount_op *op, int *procfd,
		     struct lr_err *err)
{
	int r = open_map(plan, op, procfd, err);

	plan->maps[op->map].late |= r >= 0;
	return r;
}

/*
 * Only the host's root may map ids of the host's files. So with a user namespace, what an earlier
 * bind will show below the container's root is cloned from where that bind takes it, with the flags
 * that it will have there. >= 0 or -errno; -ENOENT: there is no such bind.
 */
static int clone_through_bind(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
			      struct lr_err *err)
{
	char path[PATH_MAX];

	for (size_t i = op->index; op->inside && i-- > 0;) {
		const struct lr_mount_op *b = &plan->ops[i];
		const char *rest = lr_path_below(op->inside, b->dest);
		/* It covers something below, which a clone of all that would show. */
		if (!rest && op->o.rec && lr_path_below(b->dest, op->inside))
			return -ENOENT;
		if (!rest)
			continue;
		if (b->kind != LR_MOUNT_BIND)
			return -ENOENT;
		if (snprintf(path, sizeof(path), "%s%s", b->source, rest) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		/* A bind that is not recursive shows nothing that is mounted below its source. */
		LR_CLEANUP_FD int fd =
			lr_mount_tree(path, op->o.rec && b->o.rec, op->o.src_nofollow);
		int r = fd < 0 ? fd
			       : lr_mount_changes_apply(plan, fd, b->changes, b->n_changes,
							LR_MOUNT_DETACHED, NULL, err);
		return r < 0 ? r : lr_take_fd(&fd);
	}
	return -ENOENT;
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
	if (lr_not_offered(fd)) {
		/* An unprivileged parent: the child can do it, in its own user namespace. */
		if (op->map < 0 && !plan->opts.elsewhere)
			return 0;
		if (op->map >= 0)
			return lr_mount_idmap_fail(op, fd, LR_NOFD, err);
		lr_mount_fail_source(op, fd, err);
		return lr_err_hint(err, "mounting into a running container needs open_tree(2) "
					"(Linux 5.2) and CAP_SYS_ADMIN on the host");
	}
	if (fd == -ENOENT && op->map >= 0 && plan->opts.userns)
		fd = clone_through_bind(plan, op, err);
	else if (fd == -ENOENT && may_come(plan, op))
		return op->map < 0 ? 0 : leave_map(plan, op, procfd, err);
	if (fd < 0)
		return lr_mount_fail_source(op, fd, err);
	op->tree = fd;
	lr_debug("mount: detached %s for mounts[%zu]", op->source, op->index);

	int r = op->map >= 0 ? open_map(plan, op, procfd, err) : 0;
	if (r >= 0 && op->map >= 0)
		r = lr_mount_idmap_apply(plan, op, op->tree, err);
	if (r < 0)
		return r;
	r = cut_propagation(plan, op);
	if (lr_not_offered(r) && op->map < 0 &&
	    !plan->opts.elsewhere) { /* 5.2 to 5.11, or a filter: leave it to the child */
		op->tree = lr_close(op->tree);
		return 0;
	}
	if (r < 0) {
		lr_fail(err, -r, "set the propagation of %s", op->source);
		lr_err_at(err, "mounts[%zu]", op->index);
		if (lr_not_offered(r))
			lr_err_hint(err, "mount_setattr(2) (Linux 5.12) is needed here");
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
	/* The trees hold the mappings: only what the child has to map still needs the namespace. */
	for (size_t i = 0; i < plan->n_maps; i++)
		if (!plan->maps[i].late)
			plan->maps[i].fd = lr_close(plan->maps[i].fd);
	if (r < 0)
		lr_mount_release(plan);
	return r < 0 ? r : 0;
}
