/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: new file systems by one mount(2), where nobody can lead it astray: on the working
 * directory, which was opened inside the root and is not looked up again; or on a directory that
 * we have just made in a tmpfs of our own, while nobody else sees that tmpfs.
 *
 * fsopen(2) and its fellows take a call for each option, but have the kernel's words for what was
 * wrong with one: who is refused here asks them.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/str.h"

bool lr_mount_no_direct;

bool lr_mount_is_plain(const struct lr_mount_op *op)
{
	return !op->o.copyup && !op->inherit_mode && !op->names_files &&
	       strlen(op->o.data) < LR_MOUNT_DATA_MAX && !lr_mount_no_direct;
}

bool lr_mount_is_direct(const struct lr_mount_plan *plan, const struct lr_mount_op *op)
{
	const char *label = plan->opts.mount_label;
	bool labelled = label && *label && lr_streq(op->type, "mqueue");

	return !op->keep && !op->n_props && !labelled && lr_mount_is_plain(op);
}

bool lr_mount_nobody_looks(const struct lr_mount_plan *plan, const struct lr_mount_env *env)
{
	return env->alone && plan->unseen;
}

int lr_mount_on(const struct lr_mount_op *op, const char *path)
{
	const char *source = *op->source ? op->source : NULL;

	return mount(source, path, op->type, op->ms_flags, op->o.data) < 0 ? -errno : 0;
}

/* In a tmpfs of ours. False: not there, or something is in the way. */
static bool make_below_new(struct lr_mount_plan *plan, const struct lr_mount_op *op,
			   const struct lr_mount_env *env)
{
	if (!op->below_new || op->parent < 0 || !lr_mount_nobody_looks(plan, env))
		return false;
	if (plan->at != op->parent && fchdir(plan->ops[op->parent].mfd) < 0)
		return false;
	plan->at = op->parent;
	return mkdir(op->name, 0755) == 0;
}

int lr_mount_direct(struct lr_mount_plan *plan, struct lr_mount_op *op,
		    const struct lr_mount_env *env, bool *again, struct lr_err *err)
{
	LR_MOUNT_CLEANUP_DEST struct lr_mount_dest d = {.fd = LR_NOFD};
	int r = 0;

	*again = true;
	if (make_below_new(plan, op, env))
		return lr_mount_on(op, op->name);
	plan->at = -1;
	r = lr_mount_dest_open(plan, op, env, LR_NOFD, &d, err);
	*again = r == 0;
	if (r == 0 && fchdir(d.fd) < 0)
		r = -errno; /* root of a user namespace may not enter what it may mount on */
	return r < 0 ? r : lr_mount_on(op, ".");
}

int lr_mount_in(const struct lr_mount_plan *plan, const struct lr_mount_env *env, int dir,
		const char *name, const char *source, const char *type, unsigned long flags,
		const char *data)
{
	if (lr_mount_nobody_looks(plan, env))
		return mount(source, name, type, flags, data) < 0 ? -errno : 0;
	LR_CLEANUP_FD_LATE int fd =
		openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchdir(fd) < 0)
		return -errno;
	int r = mount(source, ".", type, flags, data) < 0 ? -errno : 0;
	return fchdir(dir) < 0 && r == 0 ? -errno : r;
}
