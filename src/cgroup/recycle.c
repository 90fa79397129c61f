/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: may a cgroup serve a second container? Only where the kernel keeps no statistics, or lets
 * them be set back, so that the next one starts from zero: memory.stat, cpuacct.stat and cpu.stat
 * count from the making of the directory to its end, and so does everything of a v2 cgroup.
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
	static const char *const forgetful[] = {"devices", "freezer",  "pids",       "cpuset",
						"net_cls", "net_prio", "perf_event", "rdma"};

	/* Every controller of the hierarchy has to be one. The v2 tree of a hybrid host has none.
	 */
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

/* pids.events counts refused forks. A dead process that nobody has waited for counts, too; its
 * parent is usually about to. */
static int forget_pids(const char *dir)
{
	char text[64];
	uint64_t refused = 0;
	ssize_t n = lr_cgroup_read(dir, "pids.events", text, sizeof(text));

	if (n < 0 && n != -ENOENT)
		return (int)n;
	if (n > 0 && lr_cgroup_flat_get(text, "max", &refused) && refused)
		return -EOPNOTSUPP;
	for (int i = 0; i < 5; i++) {
		n = lr_cgroup_read(dir, "pids.current", text, sizeof(text));
		if (n < 0 || lr_streq(text, "0\n"))
			return n < 0 ? (int)n : 0;
		lr_cgroup_sleep_us(1000);
	}
	return -EBUSY;
}

/* Processes are in all hierarchies at once: one that is empty tells; the v2 tree, of its whole
 * subtree. */
static int is_empty(const struct lr_cgroup_ref *ref)
{
	int i = lr_cgroup_find_v2(ref);
	char text[128];
	uint64_t populated = 1;
	ssize_t n;

	if (i >= 0) {
		n = lr_cgroup_read(ref->v[i].path, "cgroup.events", text, sizeof(text));
		return n < 0                                               ? (int)n
		       : lr_cgroup_flat_get(text, "populated", &populated) ? !populated
									   : -EPROTO;
	}
	n = lr_cgroup_read(ref->v[0].path, "cgroup.procs", text, sizeof(text));
	return n == -EFBIG ? 0 : n < 0 ? (int)n : n == 0;
}

int lr_cgroup_recycle(const struct lr_cgroup_ref *ref)
{
	int r = lr_cgroup_ref_check(ref, NULL);

	if (r < 0 || ref->mode == LR_CGROUP_V2 || !ref->n)
		return r < 0 ? r : -EOPNOTSUPP;
	for (size_t i = 0; i < ref->n; i++) {
		const struct lr_cgroup_place *p = &ref->v[i];

		if (!lr_cgroup_recyclable(p->hierarchy))
			return -EOPNOTSUPP;
		if (lr_cgroup_name_has(p->hierarchy, "pids"))
			r = forget_pids(p->path);
		if (r < 0)
			return r;
	}
	r = is_empty(ref);
	return r < 0 ? r : r ? 0 : -EBUSY;
}
