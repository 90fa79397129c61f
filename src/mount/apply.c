/* SPDX-License-Identifier: Apache-2.0 */
/* mount: the operations in their order, in the child; see mount.h. */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/str.h"
#include "src/sys/path.h"
#include "src/sys/syscalls.h"

/* Changes what is mounted at the destination: attributes alone with "bind" (or nothing but
 * propagation asked), the file system itself without. */
static int remount(struct lr_mount_plan *plan, struct lr_mount_op *op,
		   const struct lr_mount_env *env, struct lr_err *err)
{
	const struct lr_mount_options *o = &op->o;
	LR_CLEANUP_FD_LATE int fd = lr_mount_dest_reopen(plan, op, env, LR_NOFD, err);
	int r = fd;

	if (fd < 0)
		return r;
	if (!o->remount || o->bind) {
		r = lr_mount_changes_apply(plan, fd, op->changes, op->n_changes, LR_MOUNT_BOTH, env,
					   err);
	} else {
		r = lr_mount_legacy(env, fd, *op->source ? op->source : NULL,
				    *op->type ? op->type : NULL, MS_REMOUNT | op->ms_flags,
				    o->data);
		if (r < 0)
			lr_fail(err, -r, "remount %s", op->dest);
		else
			r = lr_mount_changes_apply(plan, fd, op->props, op->n_props, LR_MOUNT_BOTH,
						   env, err);
	}
	if (r < 0)
		lr_err_at(err, "mounts[%zu]", op->index);
	if (r == -EINVAL)
		lr_err_hint(err, "is %s a mount point?", op->dest);
	return r;
}

static int note_device(struct lr_mount_op *op, struct lr_err *err)
{
	struct stat st;

	if (op->mfd < 0 || fstat(op->mfd, &st) < 0)
		return lr_fail(err, op->mfd < 0 ? EBADF : errno, "look at the tmpfs %s", op->dest);
	op->device = st.st_dev;
	return 0;
}

static int apply_one(struct lr_mount_plan *plan, struct lr_mount_op *op,
		     const struct lr_mount_env *env, struct lr_err *err)
{
	lr_debug("mount: mounts[%zu]: %s on %s", op->index, *op->type ? op->type : op->source,
		 op->dest);
	if (env->join_cgroup && (op->kind == LR_MOUNT_CGROUP || op->o.copyup)) {
		int r = env->join_cgroup(env->arg, err);
		if (r < 0)
			return r;
	}
	if (op->kind != LR_MOUNT_FS)
		plan->at = -1;
	switch (op->kind) {
	case LR_MOUNT_FS:
		return lr_mount_fs_apply(plan, op, env, err);
	case LR_MOUNT_BIND:
		return lr_mount_bind_apply(plan, op, env, err);
	case LR_MOUNT_CGROUP:
		return lr_mount_cgroup_apply(plan, op, env, err);
	case LR_MOUNT_REMOUNT:
		return remount(plan, op, env, err);
	}
	return -EINVAL;
}

static int detach(const struct lr_mount_op *op, int rootfd, struct lr_err *err)
{
	size_t len = (size_t)(op->name - op->dest);
	char dir[PATH_MAX];

	if (len >= sizeof(dir) || !*op->name)
		return lr_fail(err, EINVAL, "unmount %s", op->dest);
	memcpy(dir, op->dest, len);
	dir[len] = '\0';
	/* umount2(2) takes no descriptor: by name in a directory that is inside the root. */
	LR_CLEANUP_FD int parent =
		(op->nolinks ? lr_open_in_nolinks : lr_open_in)(rootfd, dir, O_PATH, 0);
	int r = parent < 0 ? parent : fchdir(parent) < 0 ? -errno : 0;
	if (r == 0 && umount2(op->name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	lr_fail(err, -r, "unmount %s", op->dest);
	lr_err_at(err, "mounts[%zu].destination", op->index);
	if (r == -EINVAL)
		lr_err_hint(err,
			    "nothing is mounted there, or it belongs to a more privileged user "
			    "namespace");
	return r;
}

int lr_mount_remove(const struct lr_mount_plan *plan, int rootfd, struct lr_err *err)
{
	int r = 0;

	for (size_t i = plan->n; i-- > 0 && r == 0;)
		r = detach(&plan->ops[i], rootfd, err);
	return r;
}

/* Root of a user namespace may be where it may not go: it cannot open that, and nothing leads on
 * from there. */
static int return_to(int cwd, struct lr_err *err)
{
	if ((cwd < 0 ? chdir("/") : fchdir(cwd)) < 0)
		return lr_fail(err, errno, "return to the caller's working directory");
	return 0;
}

static bool wants_cwd(const struct lr_mount_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->ops[i].names_files)
			return true;
	return false;
}

/* What was mounted on "/" is the root of whatever follows. */
static int change_root(struct lr_mount_plan *plan, struct lr_mount_op *op, struct lr_mount_env *env,
		       struct lr_err *err)
{
	int fd = lr_mount_dest_reopen(plan, op, env, env->rootfd, err);

	if (fd < 0)
		return fd;
	lr_close(plan->root);
	plan->root = env->rootfd = fd;
	plan->at = -1;
	return 0;
}

int lr_mount_take_root(struct lr_mount_plan *plan)
{
	return lr_take_fd(&plan->root);
}

int lr_mount_apply(struct lr_mount_plan *plan, const struct lr_mount_env *given, struct lr_err *err)
{
	struct lr_mount_env here = *given, *env = &here;
	LR_CLEANUP_FD int cwd = wants_cwd(plan) ? lr_open(".", O_PATH | O_CLOEXEC) : LR_NOFD;

	lr_err_clear(err);
	plan->at = -1;
	for (size_t i = 0; i < plan->n; i++) {
		int r = plan->ops[i].names_files ? return_to(cwd, err) : 0;
		if (r == 0)
			r = apply_one(plan, &plan->ops[i], env, err);
		if (r == 0 && plan->notes_tmpfs && lr_mount_is_tmpfs(&plan->ops[i]))
			r = note_device(&plan->ops[i], err);
		if (r == 0 && lr_mount_is_root(&plan->ops[i]))
			r = change_root(plan, &plan->ops[i], env, err);
		if (r < 0) {
			lr_err_at(err, "mounts[%zu]", i);
			/* A container that is being made goes as a whole; one that runs stays. */
			while (plan->opts.elsewhere && i-- > 0)
				(void)detach(&plan->ops[i], env->rootfd, NULL);
			return r;
		}
		lr_err_clear(err); /* of a fallback that worked out */
	}
	return 0;
}

/* What is made in such a directory belongs to the directory's group. */
static bool is_setgid(const struct lr_mount_options *o)
{
	for (size_t i = 0; i < o->n_params; i++)
		if (lr_streq(o->params[i].key, "mode") && o->params[i].value &&
		    strtoul(o->params[i].value, NULL, 8) & S_ISGID)
			return true;
	return false;
}

int lr_mount_new_tmpfs(const struct lr_mount_plan *plan, const struct lr_mount_env *env,
		       const char *dest)
{
	if (plan->aliased || !lr_mount_nobody_looks(plan, env))
		return LR_NOFD;
	for (size_t i = plan->n; i-- > 0;) {
		const struct lr_mount_op *op = &plan->ops[i];

		if (lr_mount_is_root(op))
			return LR_NOFD;
		if (!lr_streq(op->dest, dest))
			continue;
		return lr_mount_is_tmpfs(op) && !op->o.copyup && !op->inherit_mode &&
				       !is_setgid(&op->o)
			       ? op->mfd
			       : LR_NOFD;
	}
	return LR_NOFD;
}

/* The last operation on `dest`, if it is a new file system of that type; or NULL. */
static struct lr_mount_op *find_top(const struct lr_mount_plan *plan, const char *dest,
				    const char *type)
{
	for (size_t i = plan->n; i-- > 0 && !plan->aliased;) {
		struct lr_mount_op *op = &plan->ops[i];

		if (lr_mount_is_root(op))
			return NULL;
		if (lr_streq(op->dest, dest))
			return op->kind == LR_MOUNT_FS && lr_streq(op->type, type) ? op : NULL;
	}
	return NULL;
}

int lr_mount_take_top(struct lr_mount_plan *plan, const char *dest, const char *type)
{
	struct lr_mount_op *op = find_top(plan, dest, type);

	return op ? lr_take_fd(&op->mfd) : LR_NOFD;
}

int lr_mount_own_sysfs(const struct lr_mount_plan *plan)
{
	const struct lr_mount_op *op = find_top(plan, "/sys", "sysfs");

	return op ? op->mfd : LR_NOFD;
}

static int same_mount(int a, int b)
{
	struct statx x, y;
	struct stat s, t;

	if (lr_statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) == 0 &&
	    lr_statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &y) == 0 &&
	    x.stx_mask & y.stx_mask & STATX_MNT_ID)
		return x.stx_mnt_id == y.stx_mnt_id;
	return fstat(a, &s) < 0 || fstat(b, &t) < 0 ? -errno : s.st_dev == t.st_dev;
}

int lr_mount_check_seen(const struct lr_mount_plan *plan, const struct lr_mount_env *env,
			const char *dest, int seen, struct lr_err *err)
{
	int want = env->rootfd;

	for (size_t i = plan->n; plan->aliased && i-- > 0;) {
		if (!lr_streq(plan->ops[i].dest, dest))
			continue;
		want = plan->ops[i].mfd;
		break;
	}
	int r = plan->aliased && want >= 0 ? same_mount(want, seen) : 1;
	if (r < 0)
		return lr_fail(err, -r, "look at %s", dest);
	if (r)
		return 0;
	lr_refuse(err, EPERM,
		  "%s is covered by another mount of config.json: a link of the image "
		  "leads its destination there",
		  dest);
	return lr_err_at(err, "mounts");
}

int lr_mount_finish(struct lr_mount_plan *plan, const struct lr_mount_env *env, struct lr_err *err)
{
	static const struct lr_mount_change ro = {.set = MOUNT_ATTR_RDONLY};

	for (size_t i = 0; i < plan->n; i++) {
		struct lr_mount_op *op = &plan->ops[i];

		if (!op->finish_ro || op->mfd < 0)
			continue;
		int r = lr_mount_change_apply(plan, op->mfd, &ro, env, err);
		if (r < 0) {
			lr_err_at(err, "mounts[%zu].options", i);
			return r;
		}
	}
	return 0;
}

void lr_mount_release(struct lr_mount_plan *plan)
{
	for (size_t i = 0; plan && i < plan->n; i++) {
		plan->ops[i].tree = lr_close(plan->ops[i].tree);
		plan->ops[i].mfd = lr_close_late(plan->ops[i].mfd); /* of apply */
	}
	if (plan)
		plan->root = lr_close(plan->root);
	for (size_t i = 0; plan && i < plan->n_maps; i++)
		plan->maps[i].fd = lr_close(plan->maps[i].fd);
}
