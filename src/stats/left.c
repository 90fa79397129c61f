/* SPDX-License-Identifier: Apache-2.0 */
/* stats: how much memory is left below the limits of a cgroup and of those above it. */
#define LR_ROOM "stats"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "src/base/str.h"
#include "src/stats/parse.h"

/* v1 says so of what has no limit, rounded down to a page. */
#define NO_LIMIT_V1 (UINT64_C(1) << 62)

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The host's. */
static uint64_t free_swap(void)
{
	struct sysinfo s;

	return sysinfo(&s) < 0 ? 0 : (uint64_t)s.freeswap * s.mem_unit;
}

static uint64_t left_v1(const char *dir, struct lr_arena *arena, uint64_t *ret_limit)
{
	const uint64_t limit = *ret_limit = lr_stats_number(dir, "memory.limit_in_bytes");

	if (limit == 0 || limit >= NO_LIMIT_V1)
		return UINT64_MAX;
	const char *stat = lr_cgroup_slurp(arena, dir, "memory.stat");
	const uint64_t files =
		lr_stats_key(stat, "total_inactive_file") + lr_stats_key(stat, "total_active_file");
	const uint64_t used = lr_stats_number(dir, "memory.usage_in_bytes");
	const uint64_t both = lr_stats_number(dir, "memory.memsw.limit_in_bytes");
	const uint64_t left = less(limit, used) + files + free_swap();
	if (both == 0 || both >= NO_LIMIT_V1)
		return left;
	return lesser(left,
		      less(both, lr_stats_number(dir, "memory.memsw.usage_in_bytes")) + files);
}

static uint64_t left_v2(const char *dir, struct lr_arena *arena, uint64_t *ret_limit)
{
	char text[4096];

	if (!lr_stats_text(dir, "memory.max", text) || lr_has_prefix(text, "max"))
		return UINT64_MAX;
	const uint64_t limit = *ret_limit = strtoull(text, NULL, 10);
	const char *stat = lr_cgroup_slurp(arena, dir, "memory.stat");
	const uint64_t files = lr_stats_key(stat, "inactive_file") +
			       lr_stats_key(stat, "active_file") +
			       lr_stats_key(stat, "slab_reclaimable");
	const uint64_t swap = less(lr_stats_number(dir, "memory.swap.max"),
				   lr_stats_number(dir, "memory.swap.current"));
	return less(limit, lr_stats_number(dir, "memory.current")) + files +
	       lesser(swap, free_swap());
}

static bool is_cgroup(const char *dir)
{
	char file[PATH_MAX];

	return lr_cgroup_path(file, dir, "cgroup.procs") >= 0 && access(file, F_OK) == 0;
}

void lr_stats_memory_left(const struct lr_cgroup_ref *ref, struct lr_arena *arena,
			  struct lr_stats_left *ret)
{
	const char *from = lr_cgroup_dir(ref, LR_CTRL_MEMORY);
	char *dir = from ? lr_strdup(arena, from) : NULL;

	*ret = (struct lr_stats_left){.bytes = UINT64_MAX};
	for (char *slash; dir && is_cgroup(dir); *slash = '\0') {
		const bool v2 = ref->mode == LR_CGROUP_V2;
		uint64_t limit = 0, left = (v2 ? left_v2 : left_v1)(dir, arena, &limit);
		if (left < ret->bytes) {
			ret->bytes = left;
			ret->limit = limit;
		}
		ret->group |= v2 && lr_stats_number(dir, "memory.oom.group") == 1;
		slash = strrchr(dir, '/');
		if (!slash || slash == dir)
			return;
	}
}
