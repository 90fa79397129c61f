/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs: protected paths that the kernel itself has directly in a procfs or sysfs. Most paths that
 * managers protect are of these. Each takes a call or two here, where the long way (protect.c) opens
 * the path, mounts on the descriptor, and closes it: these are named in the root directory of their
 * file system, which was opened and looked at before.
 *
 * Nothing is opened that would tell what such a name leads to. So the list has only names that the
 * kernel makes no link of. No link can come there later: on a directory only a directory can be
 * mounted, and on these files config.json may mount nothing (src/mount).
 *
 * Whatever is different, or fails, goes the long way, which has the messages.
 */
#define LR_ROOM "rootfs"
#include <string.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/rootfs/internal.h"
#include "src/sys/syscalls.h"

bool lr_rootfs_is_known(const char *path, bool *dir)
{
	*dir = lr_has_word("/proc/acpi /proc/asound /proc/bus /proc/fs /proc/irq /proc/scsi "
			   "/proc/sys /sys/firmware",
			   path);
	return *dir || lr_has_word("/proc/interrupts /proc/kcore /proc/keys /proc/latency_stats "
				   "/proc/sched_debug /proc/sysrq-trigger /proc/timer_list "
				   "/proc/timer_stats",
				   path);
}

/* mount(2) takes names from the working directory alone. False: root of a user namespace may not
 * enter this one. */
static bool go(struct lr_rootfs_tops *t, int top)
{
	if (t->cwd != top && fchdir(top) == 0)
		t->cwd = top;
	return t->cwd == top;
}

int lr_rootfs_known_mask(const struct lr_rootfs_plan *plan, struct lr_rootfs_state *s,
			 struct lr_rootfs_tops *t, const struct lr_rootfs_known *k)
{
	struct lr_rootfs_cover *c = k->dir ? &s->empty : &s->null;

	if (c->by_mount2)
		return -ENOSYS;
	if (!k->dir || c->fd >= 0 || c->name)
		return lr_rootfs_cover_put(c, k->top, k->name);
	/* The first directory. fsopen(2) and its fellows would take nine calls. */
	int r = go(t, k->top) ? lr_rootfs_mount_empty(plan, k->name) : -EACCES;
	if (r < 0)
		return r;
	c->dir = k->top;
	c->name = k->name;
	return 0;
}

int lr_rootfs_known_readonly(const struct lr_rootfs_plan *plan, struct lr_rootfs_tops *t,
			     const struct lr_rootfs_known *k)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	if (!go(t, k->top))
		return -EACCES;
	if (mount(k->name, k->name, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	int r = lr_mount_setattr(k->top, k->name, AT_RECURSIVE | AT_SYMLINK_NOFOLLOW, &attr);
	if (lr_not_offered(r) && !plan->prepared)
		r = lr_rootfs_remount_ro(k->name);
	/* The long way begins anew. If the path has gone meanwhile, the long way finds that out. */
	if (r < 0)
		(void)umount2(k->name, MNT_DETACH | UMOUNT_NOFOLLOW);
	return r == -ENOENT ? -ESTALE : r;
}
