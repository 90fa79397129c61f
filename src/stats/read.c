/* SPDX-License-Identifier: Apache-2.0 */
/* stats: reading all of them; and those whose files are alike in v1 and v2. */
#define LR_ROOM "stats"

#include "src/stats/parse.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"

static void pids(const char *dir, struct lr_stats *s)
{
	uint64_t limit;

	if (!dir)
		return;
	s->pids.present = true;
	s->pids.current = lr_stats_number(dir, "pids.current");
	limit = lr_stats_number(dir, "pids.max");
	s->pids.limit = limit == UINT64_MAX ? 0 : limit;
}

static uint64_t hugetlb_number(const char *dir, const char *size, const char *what)
{
	char file[NAME_MAX + 1];

	snprintf(file, sizeof(file), "hugetlb.%s.%s", size, what);
	return lr_stats_number(dir, file);
}

/* Page sizes are known by the names of the files: "hugetlb.2MB.max",
 * "hugetlb.2MB.limit_in_bytes". */
static void hugetlb(const char *dir, bool v2, struct lr_arena *arena, struct lr_stats *s)
{
	const char *suffix = v2 ? ".max" : ".limit_in_bytes";
	LR_CLEANUP_DIR DIR *d = dir ? opendir(dir) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct lr_stats_hugetlb *v;
		const char *name = e->d_name + strlen("hugetlb.");
		char *size, file[NAME_MAX + 1], text[4096];

		if (!lr_has_prefix(e->d_name, "hugetlb.") || !lr_has_suffix(name, suffix) ||
		    strstr(name, ".rsvd"))
			continue;
		v = lr_grow(arena, s->hugetlb.v, s->hugetlb.n, sizeof(*v));
		size = lr_strndup(arena, name, strlen(name) - strlen(suffix));
		if (!v || !size)
			return;
		s->hugetlb.v = v;
		v += s->hugetlb.n++;
		v->page_size = size;
		v->usage = hugetlb_number(dir, size, v2 ? "current" : "usage_in_bytes");
		v->max = v2 ? 0 : hugetlb_number(dir, size, "max_usage_in_bytes");
		v->failcnt = v2 ? 0 : hugetlb_number(dir, size, "failcnt");
		snprintf(file, sizeof(file), "hugetlb.%.32s.events", size);
		if (v2 && lr_stats_text(dir, file, text))
			v->failcnt = lr_stats_key(text, "max");
	}
}

static void rdma(const char *dir, struct lr_arena *arena, struct lr_stats *s)
{
	if (!dir)
		return;
	lr_stats_parse_rdma(arena, lr_cgroup_slurp(arena, dir, "rdma.current"), &s->rdma_current.v,
			    &s->rdma_current.n);
	lr_stats_parse_rdma(arena, lr_cgroup_slurp(arena, dir, "rdma.max"), &s->rdma_limit.v,
			    &s->rdma_limit.n);
}

int lr_stats_read(const struct lr_cgroup_ref *ref, struct lr_arena *arena, struct lr_stats **ret,
		  struct lr_err *err)
{
	struct lr_stats *s = lr_new(arena, struct lr_stats);
	bool v2 = ref->mode == LR_CGROUP_V2;
	int r = lr_cgroup_ref_check(ref, err);

	if (r < 0)
		return r;
	if (!s)
		return lr_fail(err, ENOMEM, "cannot read statistics");
	if (ref->n == 0)
		return lr_refuse(err, EOPNOTSUPP, "the container has no cgroup that counts");
	if (access(lr_cgroup_main_dir(ref), F_OK) < 0)
		return lr_fail(err, errno, "cannot read statistics of %s", lr_cgroup_main_dir(ref));
	if (v2)
		lr_stats_v2(ref->v[0].path, arena, s);
	else
		lr_stats_v1(ref, arena, s);
	pids(lr_cgroup_dir(ref, LR_CTRL_PIDS), s);
	hugetlb(lr_cgroup_dir(ref, LR_CTRL_HUGETLB), v2, arena, s);
	rdma(lr_cgroup_dir(ref, LR_CTRL_RDMA), arena, s);
	*ret = s;
	return 0;
}
