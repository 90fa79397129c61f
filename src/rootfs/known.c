/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs: protected paths that the kernel itself has directly in a procfs or sysfs. They are most of
 * all that are asked for, and take a call or two: by name in the directory of the file system's
 * root, which was opened and looked at before. No open tells what such a name leads to, so only
 * names are taken that the kernel makes no link of. No link can come there either: on a directory
 * only a directory can be mounted, and on these files config.json may mount nothing (src/mount).
 *
 * Where anything is different from that, or fails, the long way is taken, and knows what to say.
 */
#define LR_ROOM "rootfs"
#include <string.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/syscalls.h"

bool lr_rootfs_known(const char *path, bool *dir)
{
	*dir = lr_has_word("/proc/acpi /proc/asound /proc/bus /proc/fs /proc/irq /proc/scsi "
			   "/proc/sys /sys/firmware",
			   path);
	return *dir || lr_has_word("/proc/interrupts /proc/kcore /proc/keys /proc/latency_stats "
				   "/proc/sched_debug /proc/sysrq-trigger /proc/timer_list "
				   "/proc/timer_stats",
				   path);
}

/* mount(2) takes no directory that a name is of but the working directory. Root of a user namespace
 * may not enter each. */
static bool go(struct lr_rootfs_tops *t, int top)
{
	if (t->cwd != top && fchdir(top) == 0)
		t->cwd = top;
	return t->cwd == top;
}

int lr_rootfs_known_mask(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
			 struct lr_rootfs_tops *t, int top, const char *name, bool dir)
{
	struct lr_rootfs_cover *c = dir ? &s->empty : &s->null;

	if (c->by_mount2)
		return -ENOSYS;
	if (!dir || c->fd >= 0 || c->name)
		return lr_rootfs_cover_put(c, top, name);
	int r = go(t, top) ? lr_rootfs_mount_empty(plan, name) : -EACCES;
	if (r < 0)
		return r;
	c->dir = top;
	c->name = name;
	return 0;
}

int lr_rootfs_known_readonly(const struct lr_rootfs_plan *plan, struct lr_rootfs_tops *t, int top,
			     const char *name)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	if (!go(t, top))
		return -EACCES;
	if (mount(name, name, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	int r = lr_mount_setattr(top, name, AT_RECURSIVE | AT_SYMLINK_NOFOLLOW, &attr);
	if (lr_not_offered(r) && !plan->prepared)
		r = lr_rootfs_remount_ro(name);
	/* The long way begins anew. That the path is gone meanwhile is for that to find, too. */
	if (r < 0)
		(void)umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW);
	return r == -ENOENT ? -ESTALE : r;
}
