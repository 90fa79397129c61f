/* SPDX-License-Identifier: Apache-2.0 */
/* lean: the container's first process enters what was prepared. System calls only. */
#define LR_ROOM "lean"
#include <sched.h>

#include "src/lean/internal.h"
#include "src/sys/syscalls.h"

int lr_lean_enter_net(const struct lr_lean_enter *e, struct lr_err *err)
{
	int r = e->netns < 0 ? 0 : lr_setns(e->netns, CLONE_NEWNET);

	return r < 0 ? lr_fail(err, -r, "enter the prepared network namespace") : 0;
}

int lr_lean_enter_tree(const struct lr_lean_enter *e, struct lr_err *err)
{
	if (e->mntns < 0)
		return 0;
	/* The slot's tree becomes the root. Then the namespace is copied, and the copy is the
	 * container's own. */
	int r = lr_setns(e->mntns, CLONE_NEWNS);
	if (r >= 0)
		r = lr_unshare(CLONE_NEWNS);
	return r < 0 ? lr_fail(err, -r, "copy the prepared mount namespace") : 0;
}
