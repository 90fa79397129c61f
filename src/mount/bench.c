/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: new file systems of which a descriptor is wanted, by three calls: mount(2) with all options
 * on a directory of the host's (the bench), which nobody in the container can reach; an open; and
 * move_mount(2) from there. fsopen(2) and its fellows take three calls and one for each option, to
 * the same end. mount(2) in the container itself returns no descriptor, and what its path leads to
 * afterwards may be another thing.
 *
 * That needs a mount namespace of our own that has the host's mounts, and nothing may spread from
 * it to the host. What is refused here is tried again without the bench.
 */
#define LR_ROOM "mount"
#include "src/mount/internal.h"

#include <errno.h>
#include <sys/stat.h>

/* Nothing of the host's is looked up while it is covered. */
#define BENCH "/proc"

bool lr_mount_has_bench(const struct lr_mount_plan *plan, const struct lr_mount_op *op,
			const struct lr_mount_env *env)
{
	return env->bench && !plan->no_bench && lr_mount_is_plain(op) && !lr_mount_no_new_api;
}

int lr_mount_make_on_bench(const struct lr_mount_op *op, bool *again, struct lr_err *err)
{
	int r = lr_mount_on(op, BENCH);

	*again = true;
	if (r < 0)
		return lr_fail(err, -r, "mount %s", op->type);
	int fd = lr_open(BENCH, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	r = lr_fail(err, errno, "open a new mount of type %s", op->type);
	*again = lr_mount_clear_bench();
	return r;
}

bool lr_mount_clear_bench(void)
{
	return umount2(BENCH, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
}
