/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: names of controllers, and where a container has them. */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

static const struct {
	const char *v1, *v2;
} names[LR_CTRL_N] = {
	[LR_CTRL_CPU] = {"cpu", "cpu"},
	[LR_CTRL_CPUACCT] = {"cpuacct", NULL},
	[LR_CTRL_CPUSET] = {"cpuset", "cpuset"},
	[LR_CTRL_MEMORY] = {"memory", "memory"},
	[LR_CTRL_DEVICES] = {"devices", NULL},
	[LR_CTRL_FREEZER] = {"freezer", NULL},
	[LR_CTRL_BLKIO] = {"blkio", "io"},
	[LR_CTRL_PIDS] = {"pids", "pids"},
	[LR_CTRL_HUGETLB] = {"hugetlb", "hugetlb"},
	[LR_CTRL_NET_CLS] = {"net_cls", NULL},
	[LR_CTRL_NET_PRIO] = {"net_prio", NULL},
	[LR_CTRL_PERF_EVENT] = {"perf_event", NULL},
	[LR_CTRL_RDMA] = {"rdma", "rdma"},
	[LR_CTRL_MISC] = {"misc", "misc"},
};

const char *lr_cgroup_ctrl_v1(enum lr_cgroup_ctrl c)
{
	return names[c].v1;
}

const char *lr_cgroup_ctrl_v2(enum lr_cgroup_ctrl c)
{
	return names[c].v2;
}

bool lr_cgroup_ctrl_known(const char *v1_name, size_t len)
{
	for (size_t i = 0; i < LR_CTRL_N; i++)
		if (strlen(names[i].v1) == len && memcmp(names[i].v1, v1_name, len) == 0)
			return true;
	return false;
}

unsigned lr_cgroup_ctrl_set(const char *v2_names)
{
	unsigned set = 0;

	for (size_t i = 0; i < LR_CTRL_N; i++)
		if (names[i].v2 && lr_has_word(v2_names, names[i].v2))
			set |= 1U << i;
	return set;
}

bool lr_cgroup_name_has(const char *hierarchy, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = hierarchy; *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == len && memcmp(p, word, len) == 0)
			return true;
	return false;
}

int lr_cgroup_find(const struct lr_cgroup_ref *ref, enum lr_cgroup_ctrl c)
{
	if (ref->mode == LR_CGROUP_V2)
		return names[c].v2 ? lr_cgroup_find_v2(ref) : -1;
	for (size_t i = 0; i < ref->n; i++)
		if (lr_cgroup_name_has(ref->v[i].hierarchy, names[c].v1))
			return (int)i;
	return -1;
}

int lr_cgroup_find_v2(const struct lr_cgroup_ref *ref)
{
	for (size_t i = 0; i < ref->n; i++)
		if (ref->v[i].hierarchy[0] == '\0')
			return (int)i;
	return -1;
}

const char *lr_cgroup_dir(const struct lr_cgroup_ref *ref, enum lr_cgroup_ctrl c)
{
	int i = lr_cgroup_find(ref, c);

	return i < 0 ? NULL : ref->v[i].path;
}

const char *lr_cgroup_main_dir(const struct lr_cgroup_ref *ref)
{
	/* The one that can be frozen first: its list holds still. */
	static const enum lr_cgroup_ctrl order[] = {LR_CTRL_FREEZER, LR_CTRL_DEVICES, LR_CTRL_PIDS,
						    LR_CTRL_MEMORY};

	for (size_t i = 0; i < LR_ARRAY_SIZE(order); i++) {
		const char *dir = lr_cgroup_dir(ref, order[i]);
		if (dir)
			return dir;
	}
	return ref->n ? ref->v[0].path : NULL;
}

int lr_cgroup_ref_check(const struct lr_cgroup_ref *ref, struct lr_err *err)
{
	size_t tail;

	if (ref->n == 0)
		return 0;
	if (!ref->v || !ref->relative || ref->relative[0] != '/' || ref->relative[1] == '\0' ||
	    ref->relative[1] == '/' || lr_path_has_dotdot(ref->relative))
		return lr_refuse(err, EINVAL, "not a container's cgroup: \"%s\"",
				 ref->relative ? ref->relative : "");
	tail = strlen(ref->relative);
	for (size_t i = 0; i < ref->n; i++) {
		const char *path = ref->v[i].path;
		size_t len = path ? strlen(path) : 0;

		if (!ref->v[i].hierarchy || len <= tail || len >= PATH_MAX || path[0] != '/' ||
		    lr_path_has_dotdot(path) || !lr_streq(path + len - tail, ref->relative))
			return lr_refuse(err, EINVAL,
					 "cgroup directory \"%s\" does not end in \"%s\"",
					 path ? path : "", ref->relative);
	}
	return 0;
}
