/* SPDX-License-Identifier: Apache-2.0 */
/* stats: from cgroup v1's files. */
#define LR_ROOM "stats"

#include "src/stats/parse.h"

#include <stdio.h>

#include "src/base/str.h"

#define NS_PER_TICK 10000000 /* USER_HZ is 100 on every architecture Linux has */

/* Lines "cpu user system" below a heading, one per CPU. */
static void per_cpu(struct lr_arena *arena, const char *dir, struct lr_stats *s)
{
	char *text = lr_cgroup_slurp(arena, dir, "cpuacct.usage_percpu");
	size_t n;

	s->cpu.percpu.v = lr_stats_parse_list(arena, text, &s->cpu.percpu.n);
	n = s->cpu.percpu.n;
	text = lr_cgroup_slurp(arena, dir, "cpuacct.usage_all");
	if (!text || !n)
		return;
	s->cpu.percpu_user.v = lr_new_n(arena, n, uint64_t);
	s->cpu.percpu_kernel.v = lr_new_n(arena, n, uint64_t);
	if (!s->cpu.percpu_user.v || !s->cpu.percpu_kernel.v)
		return;
	for (char *line = strchr(text, '\n'); line && line[1] && s->cpu.percpu_user.n < n;
	     line = strchr(line + 1, '\n')) {
		size_t k;
		uint64_t *v = lr_stats_parse_list(arena, line + 1, &k);

		if (k < 3)
			break;
		s->cpu.percpu_user.v[s->cpu.percpu_user.n++] = v[1];
		s->cpu.percpu_kernel.v[s->cpu.percpu_kernel.n++] = v[2];
	}
}

static void cpu(const struct lr_cgroup_ref *ref, struct lr_arena *arena, struct lr_stats *s)
{
	const char *acct = lr_cgroup_dir(ref, LR_CTRL_CPUACCT);
	char text[4096];

	if (acct) {
		s->cpu.total = lr_stats_number(acct, "cpuacct.usage");
		s->cpu.user = lr_stats_number(acct, "cpuacct.usage_user");
		s->cpu.kernel = lr_stats_number(acct, "cpuacct.usage_sys");
		/* Before 4.7, only in ticks. */
		if (!s->cpu.user && !s->cpu.kernel && lr_stats_text(acct, "cpuacct.stat", text)) {
			s->cpu.user = lr_stats_key(text, "user") * NS_PER_TICK;
			s->cpu.kernel = lr_stats_key(text, "system") * NS_PER_TICK;
		}
		per_cpu(arena, acct, s);
	}
	if (lr_stats_text(lr_cgroup_dir(ref, LR_CTRL_CPU), "cpu.stat", text)) {
		s->cpu.periods = lr_stats_key(text, "nr_periods");
		s->cpu.throttled_periods = lr_stats_key(text, "nr_throttled");
		s->cpu.throttled_time = lr_stats_key(text, "throttled_time");
	}
}

static const char *line_of(struct lr_arena *arena, const char *dir, const char *file)
{
	char *text = lr_cgroup_slurp(arena, dir, file);

	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

static void cpuset(const char *dir, struct lr_arena *arena, struct lr_stats *s)
{
	if (!dir)
		return;
	s->cpuset.present = true;
	s->cpuset.cpus = line_of(arena, dir, "cpuset.cpus");
	s->cpuset.mems = line_of(arena, dir, "cpuset.mems");
	s->cpuset.cpu_exclusive = lr_stats_number(dir, "cpuset.cpu_exclusive");
	s->cpuset.mem_exclusive = lr_stats_number(dir, "cpuset.mem_exclusive");
	s->cpuset.mem_hardwall = lr_stats_number(dir, "cpuset.mem_hardwall");
	s->cpuset.memory_migrate = lr_stats_number(dir, "cpuset.memory_migrate");
	s->cpuset.memory_spread_page = lr_stats_number(dir, "cpuset.memory_spread_page");
	s->cpuset.memory_spread_slab = lr_stats_number(dir, "cpuset.memory_spread_slab");
	s->cpuset.memory_pressure = lr_stats_number(dir, "cpuset.memory_pressure");
	s->cpuset.sched_load_balance = lr_stats_number(dir, "cpuset.sched_load_balance");
	/* -1 comes back as such through the conversion of strtoull. */
	s->cpuset.sched_relax_domain_level =
		(int64_t)lr_stats_number(dir, "cpuset.sched_relax_domain_level");
}

/* prefix: "memory", "memory.memsw", ... */
static struct lr_stats_mem mem(const char *dir, const char *prefix)
{
	static const char *const suffix[] = {"usage_in_bytes", "max_usage_in_bytes",
					     "limit_in_bytes", "failcnt"};
	uint64_t v[LR_ARRAY_SIZE(suffix)] = {0};
	char file[64];

	for (size_t i = 0; i < LR_ARRAY_SIZE(suffix); i++) {
		snprintf(file, sizeof(file), "%s.%s", prefix, suffix[i]);
		v[i] = lr_stats_number(dir, file);
	}
	return (struct lr_stats_mem){.usage = v[0], .max = v[1], .limit = v[2], .failcnt = v[3]};
}

static void memory(const char *dir, struct lr_arena *arena, struct lr_stats *s)
{
	char *text = dir ? lr_cgroup_slurp(arena, dir, "memory.stat") : NULL;
	char control[4096];

	if (!text)
		return;
	s->memory.present = true;
	lr_stats_parse_map(arena, text, &s->memory.stat.v, &s->memory.stat.n);
	s->memory.cache = lr_stats_key(text, "cache");
	s->memory.usage = mem(dir, "memory");
	s->memory.swap = mem(dir, "memory.memsw");
	s->memory.kernel = mem(dir, "memory.kmem");
	s->memory.kernel_tcp = mem(dir, "memory.kmem.tcp");
	s->memory.use_hierarchy = lr_stats_number(dir, "memory.use_hierarchy") == 1;
	if (lr_stats_text(dir, "memory.oom_control", control))
		s->memory.oom_kill = lr_stats_key(control, "oom_kill");
}

/* BFQ's counters where BFQ runs, CFQ's on kernels before 5.0, else those of the throttle layer,
 * which sees all requests. An empty file means that nobody counts there. */
static void blkio_list(const char *dir, struct lr_arena *arena, struct lr_stats_blkio_list *l,
		       const char *name)
{
	static const struct {
		const char *prefix, *suffix;
	} forms[] = {{"blkio.bfq.", "_recursive"},
		     {"blkio.", "_recursive"},
		     {"blkio.throttle.", "_recursive"},
		     {"blkio.throttle.", ""},
		     {"blkio.", ""}};
	char file[80];

	for (size_t i = 0; i < LR_ARRAY_SIZE(forms) && l->n == 0; i++) {
		snprintf(file, sizeof(file), "%s%s%s", forms[i].prefix, name, forms[i].suffix);
		lr_stats_parse_blkio(arena, lr_cgroup_slurp(arena, dir, file), l);
	}
}

static void blkio(const char *dir, struct lr_arena *arena, struct lr_stats *s)
{
	if (!dir)
		return;
	blkio_list(dir, arena, &s->blkio.io_service_bytes, "io_service_bytes");
	blkio_list(dir, arena, &s->blkio.io_serviced, "io_serviced");
	blkio_list(dir, arena, &s->blkio.io_queued, "io_queued");
	blkio_list(dir, arena, &s->blkio.io_service_time, "io_service_time");
	blkio_list(dir, arena, &s->blkio.io_wait_time, "io_wait_time");
	blkio_list(dir, arena, &s->blkio.io_merged, "io_merged");
	blkio_list(dir, arena, &s->blkio.io_time, "time");
	blkio_list(dir, arena, &s->blkio.sectors, "sectors");
}

void lr_stats_v1(const struct lr_cgroup_ref *ref, struct lr_arena *arena, struct lr_stats *s)
{
	int v2 = lr_cgroup_find_v2(ref);

	cpu(ref, arena, s);
	cpuset(lr_cgroup_dir(ref, LR_CTRL_CPUSET), arena, s);
	memory(lr_cgroup_dir(ref, LR_CTRL_MEMORY), arena, s);
	blkio(lr_cgroup_dir(ref, LR_CTRL_BLKIO), arena, s);
	/* Pressure is counted in the v2 tree, which a hybrid host has even without controllers. */
	if (v2 >= 0) {
		lr_stats_read_psi(ref->v[v2].path, "cpu.pressure", &s->cpu.psi);
		lr_stats_read_psi(ref->v[v2].path, "memory.pressure", &s->memory.psi);
		lr_stats_read_psi(ref->v[v2].path, "io.pressure", &s->blkio.psi);
	}
}
