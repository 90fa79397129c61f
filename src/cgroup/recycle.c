/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: may a cgroup serve a second container? Only where the kernel keeps no statistics, so that
 * the next one starts from zero: memory.stat, cpuacct.stat, cpu.stat and pids.peak count from the
 * making of the directory to its end, and so does everything of a v2 cgroup.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <sys/vfs.h>

#include <linux/magic.h>

bool lr_cgroup_is_v2(void)
{
	struct statfs s;

	return statfs(LR_CGROUP_ROOT, &s) == 0 && s.f_type == CGROUP2_SUPER_MAGIC;
}

bool lr_cgroup_recyclable(const char *hierarchy)
{
	static const char *const forgetful[] = {"devices", "freezer",  "cpuset",
						"net_cls", "net_prio", "perf_event"};

	/* The v2 tree of a hybrid host has no controllers, but cpu.stat and pressure. */
	if (!*hierarchy)
		return false;
	/* Every controller of the hierarchy has to be one. */
	for (const char *w = hierarchy; *w; w += strcspn(w, ","), w += *w == ',') {
		size_t len = strcspn(w, ",");
		bool found = strncmp(w, "name=", 5) == 0;
		for (size_t i = 0; i < LR_ARRAY_SIZE(forgetful) && !found; i++)
			found = strlen(forgetful[i]) == len && memcmp(w, forgetful[i], len) == 0;
		if (!found)
			return false;
	}
	return true;
}

/* Processes are in all hierarchies at once: one that is empty tells. */
static int is_empty(const struct lr_cgroup_ref *ref)
{
	char text[128];
	ssize_t n;

	n = lr_cgroup_read(ref->v[0].path, "cgroup.procs", text, sizeof(text));
	return n == -EFBIG ? 0 : n < 0 ? (int)n : n == 0;
}

int lr_cgroup_recycle(const struct lr_cgroup_ref *ref)
{
	int r = lr_cgroup_ref_check(ref, NULL);

	if (r < 0 || ref->mode == LR_CGROUP_V2 || !ref->n)
		return r < 0 ? r : -EOPNOTSUPP;
	for (size_t i = 0; i < ref->n; i++)
		if (!lr_cgroup_recyclable(ref->v[i].hierarchy))
			return -EOPNOTSUPP;
	r = is_empty(ref);
	return r < 0 ? r : r ? 0 : -EBUSY;
}
