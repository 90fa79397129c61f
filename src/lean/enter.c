/* SPDX-License-Identifier: Apache-2.0 */
/* lean: the container's first process takes what was prepared. System calls only. */
#define LR_ROOM "lean"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

#include "src/base/log.h"
#include "src/lean/internal.h"
#include "src/rootfs/rootfs.h"
#include "src/sys/syscalls.h"

int lr_lean_enter(struct lr_lean_enter *e, struct lr_err *err)
{
	int r = 0;

	if (e->netns >= 0) {
		r = lr_setns(e->netns, CLONE_NEWNET);
		if (r < 0)
			return lr_fail(err, -r, "enter the prepared network namespace");
	}
	if (e->mntns < 0)
		return 0;
	/* The slot's tree becomes the root; the copy is the container's own. */
	r = lr_setns(e->mntns, CLONE_NEWNS);
	if (r >= 0)
		r = lr_unshare(CLONE_NEWNS);
	if (r < 0)
		return lr_fail(err, -r, "copy the prepared mount namespace");
	/* Before the container's procfs covers it: what masks directories. */
	e->empty = lr_open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return e->empty < 0 ? lr_fail(err, errno, "open the prepared /proc") : 0;
}

int lr_lean_protect(struct lr_lean_enter *e, struct lr_err *err)
{
	char empty[40];
	const struct lr_rootfs_covers covers = {.file = "/dev/null", .dir = empty};
	int r = 0;

	snprintf(empty, sizeof(empty), "/proc/self/fd/%d", e->empty);
	/* What a path was when the slot was made is a guess: a module may have been loaded since.
	 */
	for (size_t i = 0; i < e->masked.n && r == 0; i++)
		r = lr_rootfs_mask_path(e->masked.v[i], e->kinds ? e->kinds[i] : 0, &covers, err);
	for (size_t i = 0; i < e->readonly.n && r == 0; i++)
		r = lr_rootfs_readonly_path(e->readonly.v[i], err);
	e->empty = lr_close_late(e->empty);
	lr_debug("lean: %zu paths masked, %zu read-only", e->masked.n, e->readonly.n);
	return r;
}
