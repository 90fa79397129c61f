/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: which directory of a container's cgroups has the files of a controller, and those files'
 * contents. For this room, and for src/stats.
 */
#ifndef LR_CGROUP_FILES_H
#define LR_CGROUP_FILES_H

#include <limits.h>

#include "src/cgroup/cgroup.h"

enum lr_cgroup_ctrl {
	LR_CTRL_CPU,
	LR_CTRL_CPUACCT,
	LR_CTRL_CPUSET,
	LR_CTRL_MEMORY,
	LR_CTRL_DEVICES,
	LR_CTRL_FREEZER,
	LR_CTRL_BLKIO, /* "io" on v2 */
	LR_CTRL_PIDS,
	LR_CTRL_HUGETLB,
	LR_CTRL_NET_CLS,
	LR_CTRL_NET_PRIO,
	LR_CTRL_PERF_EVENT,
	LR_CTRL_RDMA,
	LR_CTRL_MISC,
	LR_CTRL_N
};

/* -EINVAL and *err when a ref (perhaps read from a damaged record) could reach beyond the
 * container's own directories. */
int lr_cgroup_ref_check(const struct lr_cgroup_ref *ref, struct lr_err *err) LR_MUST_CHECK;

/* Index of the v1 hierarchy with that controller, or of the v2 tree; -1: none. */
int lr_cgroup_find(const struct lr_cgroup_ref *ref, enum lr_cgroup_ctrl c);
int lr_cgroup_find_v2(const struct lr_cgroup_ref *ref);
/* The directory in which that controller's files are, whichever version; NULL: none. */
const char *lr_cgroup_dir(const struct lr_cgroup_ref *ref, enum lr_cgroup_ctrl c);
/* The directory best suited to list the container's processes; NULL when n == 0. */
const char *lr_cgroup_main_dir(const struct lr_cgroup_ref *ref);
/* 1 when the tree below dir has a process, 0 when not, or -errno. */
int lr_cgroup_populated(const char *dir) LR_MUST_CHECK;

/* "dir/file" into a buffer of PATH_MAX bytes. -ENAMETOOLONG. */
int lr_cgroup_path(char buf[PATH_MAX], const char *dir, const char *file) LR_MUST_CHECK;
/* Reads a small file "dir/file" (below 4 KiB), NUL-terminated; its length or -errno. */
ssize_t lr_cgroup_read(const char *dir, const char *file, char *buf, size_t size);
/* Reads a whole file of any size into the arena. NULL: not there, or no memory. */
char *lr_cgroup_slurp(struct lr_arena *arena, const char *dir, const char *file);
int lr_cgroup_put(const char *dir, const char *file, const char *value);
/* Value after "key " in a flat-keyed file. */
bool lr_cgroup_flat_get(const char *text, const char *key, uint64_t *ret);

#endif
