/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: who makes and changes the cgroups: the runtime itself (cgroupfs), systemd, or nobody.
 * The driver that made a container's cgroup is kept in its ref, so that later verbs, whose callers
 * leave --systemd-cgroup out, use the same.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

static const struct lr_cgroup_driver drivers[] = {
	[LR_CGROUP_CGROUPFS] = {"cgroupfs", lr_cgroup_fs_create, lr_cgroup_fs_update,
				lr_cgroup_fs_destroy},
	[LR_CGROUP_SYSTEMD] = {"systemd", lr_cgroup_systemd_create, lr_cgroup_systemd_update,
			       lr_cgroup_systemd_destroy},
	/* Its plans have no places: nothing is done. */
	[LR_CGROUP_DISABLED] = {"disabled", lr_cgroup_fs_create, lr_cgroup_fs_update,
				lr_cgroup_fs_destroy},
};

const struct lr_cgroup_driver *lr_cgroup_driver_of(enum lr_cgroup_manager m)
{
	return &drivers[m > LR_CGROUP_DISABLED ? LR_CGROUP_CGROUPFS : m];
}

int lr_cgroup_create(struct lr_cgroup_plan *plan, struct lr_err *err)
{
	int r = plan->driver->create(plan, err);

	lr_cgroup_batch_close(&plan->batch);
	if (r < 0 || !plan->delegate)
		return r;
	r = lr_cgroup_make_delegate(plan, err);
	if (r >= 0)
		return r;
	lr_cgroup_unhold(plan);
	if (lr_cgroup_destroy(&plan->ref, false, NULL) < 0)
		lr_debug("cgroup: what was made for %s is left", plan->delegate);
	return r;
}

int lr_cgroup_update(const struct lr_cgroup_ref *ref, const struct oci_resources *resources,
		     struct lr_arena *arena, struct lr_err *err)
{
	int r = lr_cgroup_ref_check(ref, err);

	return r < 0 ? r : lr_cgroup_driver_of(ref->manager)->update(ref, resources, arena, err);
}

int lr_cgroup_destroy(const struct lr_cgroup_ref *ref, bool kill, struct lr_err *err)
{
	int r = lr_cgroup_ref_check(ref, err);

	return r < 0 ? r : lr_cgroup_driver_of(ref->manager)->destroy(ref, kill, err);
}
