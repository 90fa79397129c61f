/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: new file systems of which a descriptor is wanted, by three calls: mount(2) with all options
 * on a directory of the host's, which nobody in the container can reach, an open, and move_mount(2)
 * from there. fsopen(2) and its fellows take three calls, and one for each option; and mount(2) in
 * the container returns no descriptor, and what a path leads to afterwards may be another thing.
 *
 * It takes a mount namespace of our own that the host is deaf to, with the host's mounts in it. Who
 * is refused on the way goes back, and takes fsopen(2).
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/str.h"

/* Nothing of the host's is looked up while it is covered. */
#define BENCH "/proc"

bool lr_mount_has_bench(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
			const struct lr_mount_env *env)
{
	return env->bench && !plan->no_bench && !op->o.copyup && !op->inherit_mode &&
	       !op->names_files && strlen(op->o.data) < LR_MOUNT_DATA_MAX && !lr_mount_no_direct &&
	       !lr_mount_no_new_api;
}

int lr_mount_make_on_bench(const struct lr_mount_op *op)
{
	const char *source = *op->source ? op->source : NULL;

	if (mount(source, BENCH, op->type, op->ms_flags, op->o.data) < 0)
		return -errno;
	int fd = lr_open(BENCH, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : lr_mount_clear_bench(-errno);
}

int lr_mount_clear_bench(int r)
{
	return umount2(BENCH, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -EBUSY : r;
}
