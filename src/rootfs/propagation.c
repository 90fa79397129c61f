/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs: linux.rootfsPropagation in three steps.
 *
 * attach: all mounts the namespace inherited. They must not carry the container's mounts to the
 *   host, unless a volume is to be shared, which "shared" and the non-recursive values leave alone.
 * parent: pivot_root(2) refuses a shared parent of the new root, and binding the rootfs onto itself
 *   would show on the host; where attach left mounts shared, the one the rootfs lies on is not.
 * final: the container's root gets its own peer group ("shared", not shared with the host, as
 *   config-linux.md says), or becomes unbindable, which it cannot be while it is being bound.
 */
#define LR_ROOM "rootfs"
#include <sys/mount.h>

#include "src/base/str.h"
#include "src/rootfs/internal.h"

static const struct {
	const char *name;
	unsigned long attach, parent, final;
} values[] = {
	{"", MS_SLAVE | MS_REC, 0, 0},
	{"rslave", MS_SLAVE | MS_REC, 0, 0},
	{"rprivate", MS_PRIVATE | MS_REC, 0, 0},
	{"slave", MS_SLAVE, MS_SLAVE, 0},
	{"private", MS_PRIVATE, MS_PRIVATE, 0},
	{"shared", MS_SHARED, MS_PRIVATE, MS_SHARED},
	{"rshared", MS_SHARED | MS_REC, MS_PRIVATE, MS_SHARED | MS_REC},
	{"unbindable", MS_PRIVATE, MS_PRIVATE, MS_UNBINDABLE},
	{"runbindable", MS_PRIVATE | MS_REC, 0, MS_UNBINDABLE | MS_REC},
};

int lr_rootfs_propagation(struct lr_rootfs_plan *plan, const char *name, struct lr_err *err)
{
	for (size_t i = 0; i < LR_ARRAY_SIZE(values); i++) {
		if (!lr_streq(values[i].name, name ? name : ""))
			continue;
		plan->attach_flags = values[i].attach;
		plan->parent_flags = values[i].parent;
		plan->final_flags = values[i].final;
		/* The container would pin every mount of the host, deaf to its unmounting. */
		if (plan->no_pivot && plan->attach_flags & MS_PRIVATE) {
			lr_refuse(err, EINVAL, "\"%s\" is not safe without pivot_root", name);
			lr_err_hint(err, "use \"slave\" or \"rslave\", or drop --no-pivot");
			return lr_err_at(err, "linux.rootfsPropagation");
		}
		return 0;
	}
	lr_refuse(err, EINVAL, "\"%s\" is no mount propagation", name);
	lr_err_hint(err, "known: private, shared, slave, unbindable, and each with an r in front");
	return lr_err_at(err, "linux.rootfsPropagation");
}
