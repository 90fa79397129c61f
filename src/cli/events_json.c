/* SPDX-License-Identifier: Apache-2.0 */
/* cli: cgroup statistics as the JSON of `events`. What the host does not count is left out
 * or zero. */
#include "src/cli/events_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"

static void psi_line(struct lr_json_writer *w, const char *key, const struct lr_stats_psi_line *l)
{
	const struct {
		const char *key;
		double value;
	} averages[] = {{"avg10", l->avg10}, {"avg60", l->avg60}, {"avg300", l->avg300}};

	lr_json_key(w, key);
	lr_json_obj_open(w);
	for (size_t i = 0; i < 3; i++) {
		char text[32];
		int n = snprintf(text, sizeof(text), "%.2f", averages[i].value);
		lr_json_key(w, averages[i].key);
		lr_json_raw(w, text, (size_t)n);
	}
	lr_json_kuint(w, "total", l->total);
	lr_json_obj_close(w);
}

static void psi(struct lr_json_writer *w, const struct lr_stats_psi *p)
{
	if (!p->present)
		return;
	lr_json_key(w, "psi");
	lr_json_obj_open(w);
	psi_line(w, "some", &p->some);
	psi_line(w, "full", &p->full);
	lr_json_obj_close(w);
}

static void per_cpu(struct lr_json_writer *w, const char *key, const uint64_t *v, size_t n)
{
	if (n == 0)
		return;
	lr_json_key(w, key);
	lr_json_list_open(w);
	for (size_t i = 0; i < n; i++)
		lr_json_uint(w, v[i]);
	lr_json_list_close(w);
}

static void cpu(struct lr_json_writer *w, const struct lr_stats *s)
{
	lr_json_key(w, "cpu");
	lr_json_obj_open(w);
	lr_json_key(w, "usage");
	lr_json_obj_open(w);
	lr_json_kuint(w, "total", s->cpu.total);
	per_cpu(w, "percpu", s->cpu.percpu.v, s->cpu.percpu.n);
	per_cpu(w, "percpu_kernel", s->cpu.percpu_kernel.v, s->cpu.percpu_kernel.n);
	per_cpu(w, "percpu_user", s->cpu.percpu_user.v, s->cpu.percpu_user.n);
	lr_json_kuint(w, "kernel", s->cpu.kernel);
	lr_json_kuint(w, "user", s->cpu.user);
	lr_json_obj_close(w);
	lr_json_key(w, "throttling");
	lr_json_obj_open(w);
	lr_json_kuint(w, "periods", s->cpu.periods);
	lr_json_kuint(w, "throttledPeriods", s->cpu.throttled_periods);
	lr_json_kuint(w, "throttledTime", s->cpu.throttled_time);
	lr_json_obj_close(w);
	psi(w, &s->cpu.psi);
	lr_json_obj_close(w);
}

/* "0-3,7" as [0,1,2,3,7]: callers expect numbers. */
static void number_list(struct lr_json_writer *w, const char *key, const char *list)
{
	lr_json_key(w, key);
	lr_json_list_open(w);
	while (list && *list) {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = from;
		if (end == list)
			break;
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		/* The kernel has no more CPUs than this; text of another origin ends here. */
		for (unsigned long i = from; i <= to && i < 65536; i++)
			lr_json_uint(w, i);
		list = *end == ',' ? end + 1 : end;
		if (*end != ',')
			break;
	}
	lr_json_list_close(w);
}

static void cpuset(struct lr_json_writer *w, const struct lr_stats *s)
{
	if (!s->cpuset.present)
		return;
	lr_json_key(w, "cpuset");
	lr_json_obj_open(w);
	number_list(w, "cpus", s->cpuset.cpus);
	lr_json_kuint(w, "cpu_exclusive", s->cpuset.cpu_exclusive);
	number_list(w, "mems", s->cpuset.mems);
	lr_json_kuint(w, "mem_hardwall", s->cpuset.mem_hardwall);
	lr_json_kuint(w, "mem_exclusive", s->cpuset.mem_exclusive);
	lr_json_kuint(w, "memory_migrate", s->cpuset.memory_migrate);
	lr_json_kuint(w, "memory_spread_page", s->cpuset.memory_spread_page);
	lr_json_kuint(w, "memory_spread_slab", s->cpuset.memory_spread_slab);
	lr_json_kuint(w, "memory_pressure", s->cpuset.memory_pressure);
	lr_json_kuint(w, "sched_load_balance", s->cpuset.sched_load_balance);
	lr_json_kint(w, "sched_relax_domain_level", s->cpuset.sched_relax_domain_level);
	lr_json_obj_close(w);
}

static void memory_entry(struct lr_json_writer *w, const char *key, const struct lr_stats_mem *m)
{
	lr_json_key(w, key);
	lr_json_obj_open(w);
	lr_json_kuint(w, "limit", m->limit);
	lr_json_kuint(w, "usage", m->usage);
	lr_json_kuint(w, "max", m->max);
	lr_json_kuint(w, "failcnt", m->failcnt);
	lr_json_obj_close(w);
}

static void memory(struct lr_json_writer *w, const struct lr_stats *s)
{
	lr_json_key(w, "memory");
	lr_json_obj_open(w);
	if (s->memory.present) {
		lr_json_kuint(w, "cache", s->memory.cache);
		memory_entry(w, "usage", &s->memory.usage);
		memory_entry(w, "swap", &s->memory.swap);
		memory_entry(w, "kernel", &s->memory.kernel);
		memory_entry(w, "kernelTCP", &s->memory.kernel_tcp);
		lr_json_key(w, "raw");
		lr_json_obj_open(w);
		for (size_t i = 0; i < s->memory.stat.n; i++)
			lr_json_kuint(w, s->memory.stat.v[i].key, s->memory.stat.v[i].value);
		lr_json_obj_close(w);
		lr_json_kuint(w, "oom_kill", s->memory.oom_kill);
		psi(w, &s->memory.psi);
	}
	lr_json_obj_close(w);
}

static void pids(struct lr_json_writer *w, const struct lr_stats *s)
{
	lr_json_key(w, "pids");
	lr_json_obj_open(w);
	if (s->pids.present) {
		lr_json_kuint(w, "current", s->pids.current);
		if (s->pids.limit)
			lr_json_kuint(w, "limit", s->pids.limit);
	}
	lr_json_obj_close(w);
}

static void block_io_list(struct lr_json_writer *w, const char *key,
			  const struct lr_stats_blkio_list *list)
{
	if (list->n == 0)
		return;
	lr_json_key(w, key);
	lr_json_list_open(w);
	for (size_t i = 0; i < list->n; i++) {
		const struct lr_stats_blkio_entry *e = &list->v[i];
		lr_json_obj_open(w);
		lr_json_kuint(w, "major", e->major);
		lr_json_kuint(w, "minor", e->minor);
		if (e->op && *e->op)
			lr_json_kstr(w, "op", e->op);
		lr_json_kuint(w, "value", e->value);
		lr_json_obj_close(w);
	}
	lr_json_list_close(w);
}

static void block_io(struct lr_json_writer *w, const struct lr_stats *s)
{
	lr_json_key(w, "blkio");
	lr_json_obj_open(w);
	block_io_list(w, "ioServiceBytesRecursive", &s->blkio.io_service_bytes);
	block_io_list(w, "ioServicedRecursive", &s->blkio.io_serviced);
	block_io_list(w, "ioQueueRecursive", &s->blkio.io_queued);
	block_io_list(w, "ioServiceTimeRecursive", &s->blkio.io_service_time);
	block_io_list(w, "ioWaitTimeRecursive", &s->blkio.io_wait_time);
	block_io_list(w, "ioMergedRecursive", &s->blkio.io_merged);
	block_io_list(w, "ioTimeRecursive", &s->blkio.io_time);
	block_io_list(w, "sectorsRecursive", &s->blkio.sectors);
	psi(w, &s->blkio.psi);
	lr_json_obj_close(w);
}

static void huge_pages(struct lr_json_writer *w, const struct lr_stats *s)
{
	lr_json_key(w, "hugetlb");
	lr_json_obj_open(w);
	for (size_t i = 0; i < s->hugetlb.n; i++) {
		lr_json_key(w, s->hugetlb.v[i].page_size);
		lr_json_obj_open(w);
		lr_json_kuint(w, "usage", s->hugetlb.v[i].usage);
		lr_json_kuint(w, "max", s->hugetlb.v[i].max);
		lr_json_kuint(w, "failcnt", s->hugetlb.v[i].failcnt);
		lr_json_obj_close(w);
	}
	lr_json_obj_close(w);
}

static void rdma_list(struct lr_json_writer *w, const char *key, const struct lr_stats_rdma *v,
		      size_t n)
{
	if (n == 0)
		return;
	lr_json_key(w, key);
	lr_json_list_open(w);
	for (size_t i = 0; i < n; i++) {
		lr_json_obj_open(w);
		lr_json_kstr(w, "device", v[i].device);
		lr_json_kuint(w, "hcaHandles", v[i].hca_handles);
		lr_json_kuint(w, "hcaObjects", v[i].hca_objects);
		lr_json_obj_close(w);
	}
	lr_json_list_close(w);
}

char *lr_cli_stats_json(const char *id, const struct lr_stats *s, struct lr_arena *a)
{
	struct lr_json_writer *w = lr_json_writer_new(a, false);

	lr_json_obj_open(w);
	lr_json_kstr(w, "type", "stats");
	lr_json_kstr(w, "id", id);
	lr_json_key(w, "data");
	lr_json_obj_open(w);
	cpu(w, s);
	cpuset(w, s);
	memory(w, s);
	pids(w, s);
	block_io(w, s);
	huge_pages(w, s);
	if (s->rdma_current.n || s->rdma_limit.n) {
		lr_json_key(w, "rdma");
		lr_json_obj_open(w);
		rdma_list(w, "current", s->rdma_current.v, s->rdma_current.n);
		rdma_list(w, "limit", s->rdma_limit.v, s->rdma_limit.n);
		lr_json_obj_close(w);
	}
	lr_json_obj_close(w);
	lr_json_obj_close(w);
	return lr_json_finish(w, NULL);
}
