/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats: how much memory is left below the limits of a cgroup and of those above it. Other than in `events`, what
 * can't be read is an error here: it would pass for no limit.
 */
#define LR_ROOM "stats"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/stats/parse.h"

/* v1 says so of what has no limit, rounded down to a page. */
#define NO_LIMIT_V1 (UINT64_C(1) << 62)

struct level {
	const char *dir;
	struct lr_arena *arena;
	struct lr_stats_left left;
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Of a file that is not there: `none`. "max" is UINT64_MAX. */
static int number(const struct level *l, const char *file, uint64_t none, uint64_t *ret,
		  struct lr_err *err)
{
	char text[64], *end;
	ssize_t n = lr_cgroup_read(l->dir, file, text, sizeof(text));

	*ret = none;
	if (n == -ENOENT)
		return 0;
	if (n >= 0 && lr_has_prefix(text, "max")) {
		*ret = UINT64_MAX;
		return 0;
	}
	if (n >= 0) {
		*ret = strtoull(text, &end, 10);
		n = end == text ? -EIO : 0;
	}
	return n < 0 ? lr_fail(err, (int)-n, "read %s/%s", l->dir, file) : 0;
}

/* The host's. */
static uint64_t free_swap(void)
{
	struct sysinfo s;

	return sysinfo(&s) < 0 ? 0 : (uint64_t)s.freeswap * s.mem_unit;
}

static int look_v1(struct level *l, struct lr_err *err)
{
	uint64_t limit, used = 0, both, both_used = 0, swappiness = 0;

	int r = number(l, "memory.limit_in_bytes", UINT64_MAX, &limit, err);
	if (r < 0 || limit >= NO_LIMIT_V1)
		return r;
	r = number(l, "memory.usage_in_bytes", 0, &used, err);
	if (r >= 0)
		r = number(l, "memory.memsw.limit_in_bytes", UINT64_MAX, &both, err);
	if (r >= 0)
		r = number(l, "memory.memsw.usage_in_bytes", 0, &both_used, err);
	if (r >= 0)
		r = number(l, "memory.swappiness", 0, &swappiness, err);
	if (r < 0)
		return r;
	const char *stat = lr_cgroup_slurp(l->arena, l->dir, "memory.stat");
	const uint64_t files =
		lr_stats_key(stat, "total_inactive_file") + lr_stats_key(stat, "total_active_file");
	l->left.limit = limit;
	l->left.own = stat ? lr_stats_key(stat, "total_rss") : used;
	l->left.bytes = less(limit, used) + files + (swappiness ? free_swap() : 0);
	if (both < NO_LIMIT_V1)
		l->left.bytes = lesser(l->left.bytes, less(both, both_used) + files);
	return 0;
}

static int look_v2(struct level *l, struct lr_err *err)
{
	uint64_t limit, used = 0, swap = 0, swapped = 0, group = 0;

	int r = number(l, "memory.max", UINT64_MAX, &limit, err);
	if (r >= 0)
		r = number(l, "memory.oom.group", 0, &group, err);
	l->left.group = group == 1;
	if (r < 0 || limit == UINT64_MAX)
		return r;
	r = number(l, "memory.current", 0, &used, err);
	if (r >= 0)
		r = number(l, "memory.swap.max", 0, &swap, err);
	if (r >= 0)
		r = number(l, "memory.swap.current", 0, &swapped, err);
	if (r < 0)
		return r;
	const char *stat = lr_cgroup_slurp(l->arena, l->dir, "memory.stat");
	l->left.limit = limit;
	l->left.own = stat ? lr_stats_key(stat, "anon") : used;
	l->left.bytes = less(limit, used) + lr_stats_key(stat, "inactive_file") +
			lr_stats_key(stat, "active_file") +
			lesser(less(swap, swapped), free_swap());
	return 0;
}

static bool is_cgroup(const char *dir)
{
	char file[PATH_MAX];

	return lr_cgroup_path(file, dir, "cgroup.procs") >= 0 && access(file, F_OK) == 0;
}

int lr_stats_memory_left(const struct lr_cgroup_ref *ref, struct lr_arena *arena,
			 struct lr_stats_left *ret, struct lr_err *err)
{
	const char *from = lr_cgroup_dir(ref, LR_CTRL_MEMORY);
	char *dir = from ? lr_strdup(arena, from) : NULL;
	bool group = false; /* of this one or one below it: those that its limit ends whole */

	*ret = (struct lr_stats_left){.bytes = UINT64_MAX};
	for (; dir && is_cgroup(dir); *strrchr(dir, '/') = '\0') {
		struct level l = {dir, arena, {.bytes = UINT64_MAX}};
		int r = ref->mode == LR_CGROUP_V2 ? look_v2(&l, err) : look_v1(&l, err);
		if (r < 0)
			return r;
		group |= l.left.group;
		if (l.left.bytes < ret->bytes) {
			*ret = l.left;
			ret->group = group;
		}
	}
	return dir || !from ? 0 : lr_fail(err, ENOMEM, "look for limits of memory");
}

/* ---- whether there is a limit ------------------------------------------------------------------ */

static int open_limit(const char *dir, const char *name, struct lr_stats_limits *l,
		      struct lr_err *err)
{
	char file[PATH_MAX];
	int r = lr_cgroup_path(file, dir, name);

	l->all = l->n < LR_ARRAY_SIZE(l->fd);
	if (r < 0 || !l->all)
		return r < 0 ? lr_fail(err, -r, "open %s/%s", dir, name) : 0;
	int fd = lr_open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : lr_fail(err, errno, "open %s", file);
	l->fd[l->n++] = fd;
	return 0;
}

int lr_stats_limits_open(const struct lr_cgroup_ref *ref, struct lr_arena *arena,
			 struct lr_stats_limits *ret, struct lr_err *err)
{
	const char *from = lr_cgroup_dir(ref, LR_CTRL_MEMORY);
	const char *name = ref->mode == LR_CGROUP_V2 ? "memory.max" : "memory.limit_in_bytes";
	char *dir = from ? lr_strdup(arena, from) : NULL;
	int r = 0;

	*ret = (struct lr_stats_limits){.all = true};
	for (; r >= 0 && ret->all && dir && is_cgroup(dir); *strrchr(dir, '/') = '\0')
		r = open_limit(dir, name, ret, err);
	return dir || !from ? r : lr_fail(err, ENOMEM, "look for limits of memory");
}

void lr_stats_limits_close(struct lr_stats_limits *l)
{
	while (l->n)
		lr_close(l->fd[--l->n]);
	l->all = false;
}

static bool is_no_limit(int fd)
{
	char text[64];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return lr_has_prefix(text, "max") || strtoull(text, NULL, 10) >= NO_LIMIT_V1;
}

bool lr_stats_has_no_limit(const struct lr_stats_limits *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!is_no_limit(l->fd[i]))
			return false;
	return l->all;
}
