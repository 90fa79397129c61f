/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: resources as writes to cgroup v1 files. Pure. A number 0 means "unset" wherever v1 has no
 * use for a zero: callers such as Docker always send the members.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <inttypes.h>

#define AT_MEM "linux.resources.memory."
#define AT_CPU "linux.resources.cpu."
#define AT_BLK "linux.resources.blockIO."

static int64_t i64_or_0(const int64_t *p)
{
	return p ? *p : 0;
}

static uint64_t u64_or_0(const uint64_t *p)
{
	return p ? *p : 0;
}

static void gen_memory(struct lr_cgroup_gen *g, const struct oci_memory *m)
{
	int64_t limit = i64_or_0(m->limit), swap = i64_or_0(m->swap);
	unsigned none = limit == -1 ? LR_W_OPTIONAL : 0;

	/*
	 * limit <= memory+swap must hold after every write: raising both needs the second first. No
	 * limit on memory means none on both, or the kernel would refuse.
	 */
	if (limit)
		lr_cgroup_emit(g, LR_CTRL_MEMORY, LR_W_DEFER | none, AT_MEM "limit",
			       "memory.limit_in_bytes", "%" PRIi64, limit);
	if (swap)
		lr_cgroup_emit(g, LR_CTRL_MEMORY, LR_W_DEFER | (swap == -1 ? LR_W_OPTIONAL : 0),
			       AT_MEM "swap", "memory.memsw.limit_in_bytes", "%" PRIi64, swap);
	else if (limit == -1)
		lr_cgroup_emit(g, LR_CTRL_MEMORY, LR_W_DEFER | LR_W_OPTIONAL, AT_MEM "limit",
			       "memory.memsw.limit_in_bytes", "-1");
	if (i64_or_0(m->reservation))
		lr_cgroup_emit(g, LR_CTRL_MEMORY, *m->reservation < 0 ? LR_W_OPTIONAL : 0,
			       AT_MEM "reservation", "memory.soft_limit_in_bytes", "%" PRIi64,
			       *m->reservation);
	/* "NOT RECOMMENDED"; kernels since 5.16 accept and ignore the first. */
	if (i64_or_0(m->kernel))
		lr_cgroup_emit(g, LR_CTRL_MEMORY, LR_W_TOLERATE, AT_MEM "kernel",
			       "memory.kmem.limit_in_bytes", "%" PRIi64, *m->kernel);
	if (i64_or_0(m->kernel_tcp))
		lr_cgroup_emit(g, LR_CTRL_MEMORY, LR_W_TOLERATE, AT_MEM "kernelTCP",
			       "memory.kmem.tcp.limit_in_bytes", "%" PRIi64, *m->kernel_tcp);
	if (lr_cgroup_check_swappiness(g, m))
		lr_cgroup_emit(g, LR_CTRL_MEMORY, 0, AT_MEM "swappiness", "memory.swappiness",
			       "%" PRIu64, *m->swappiness);
	/* A new cgroup has its OOM killer: false needs a write only when the value may differ. */
	if (m->disable_oom_killer && (*m->disable_oom_killer || g->update))
		lr_cgroup_emit(g, LR_CTRL_MEMORY, *m->disable_oom_killer ? 0 : LR_W_OPTIONAL,
			       AT_MEM "disableOOMKiller", "memory.oom_control", "%d",
			       *m->disable_oom_killer);
	/* Always on since 5.11, where 0 is refused. */
	if (m->use_hierarchy)
		lr_cgroup_emit(g, LR_CTRL_MEMORY, LR_W_TOLERATE, AT_MEM "useHierarchy",
			       "memory.use_hierarchy", "%d", *m->use_hierarchy);
	/* checkBeforeUpdate: v1 itself refuses a limit below what is in use. */
}

static void gen_cpu(struct lr_cgroup_gen *g, const struct oci_cpu *c)
{
	if (u64_or_0(c->shares)) {
		if (*c->shares < 2 || *c->shares > 262144)
			lr_warn(AT_CPU "shares: the kernel takes %" PRIu64
				       " as the nearest of 2 and 262144",
				*c->shares);
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER, AT_CPU "shares", "cpu.shares",
			       "%" PRIu64, *c->shares);
	}
	/* Each is checked against the others' present values (quota / period against the
	 * parent's, burst against quota, shares against idle): whatever is refused is retried. */
	if (u64_or_0(c->period))
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER, AT_CPU "period", "cpu.cfs_period_us",
			       "%" PRIu64, *c->period);
	if (i64_or_0(c->quota))
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER | (*c->quota < 0 ? LR_W_OPTIONAL : 0),
			       AT_CPU "quota", "cpu.cfs_quota_us", "%" PRIi64, *c->quota);
	if (c->burst && (*c->burst || g->update))
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER | (*c->burst ? 0 : LR_W_OPTIONAL),
			       AT_CPU "burst", "cpu.cfs_burst_us", "%" PRIu64, *c->burst);
	if (c->idle && (*c->idle || g->update))
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER | (*c->idle ? 0 : LR_W_OPTIONAL),
			       AT_CPU "idle", "cpu.idle", "%" PRIi64, *c->idle);
	if (u64_or_0(c->realtime_period))
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER, AT_CPU "realtimePeriod",
			       "cpu.rt_period_us", "%" PRIu64, *c->realtime_period);
	if (i64_or_0(c->realtime_runtime))
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER, AT_CPU "realtimeRuntime",
			       "cpu.rt_runtime_us", "%" PRIi64, *c->realtime_runtime);
	if (c->cpus && *c->cpus)
		lr_cgroup_emit(g, LR_CTRL_CPUSET, 0, AT_CPU "cpus", "cpuset.cpus", "%s", c->cpus);
	if (c->mems && *c->mems)
		lr_cgroup_emit(g, LR_CTRL_CPUSET, 0, AT_CPU "mems", "cpuset.mems", "%s", c->mems);
}

static void gen_throttle(struct lr_cgroup_gen *g, const struct oci_throttle_devices *list,
			 const char *name, const char *file)
{
	for (size_t i = 0; i < list->n; i++)
		lr_cgroup_emit(g, LR_CTRL_BLKIO, 0, lr_cgroup_where(g, name, i), file,
			       "%" PRIi64 ":%" PRIi64 " %" PRIu64, list->v[i].major,
			       list->v[i].minor, list->v[i].rate);
}

static void gen_block_io(struct lr_cgroup_gen *g, const struct oci_block_io *b)
{
	/* The CFQ files are gone since 5.0; BFQ has its own where it is built in. */
	if (b->weight && lr_cgroup_check_blkio_weight(g, AT_BLK "weight", *b->weight)) {
		lr_cgroup_emit(g, LR_CTRL_BLKIO, 0, AT_BLK "weight", "blkio.weight", "%u",
			       *b->weight);
		lr_cgroup_emit_alt(g, "blkio.bfq.weight", "%u", *b->weight);
	}
	if (b->leaf_weight && lr_cgroup_check_blkio_weight(g, AT_BLK "leafWeight", *b->leaf_weight))
		lr_cgroup_emit(g, LR_CTRL_BLKIO, 0, AT_BLK "leafWeight", "blkio.leaf_weight", "%u",
			       *b->leaf_weight);
	for (size_t i = 0; i < b->weight_device.n; i++) {
		const struct oci_weight_device *d = &b->weight_device.v[i];
		const char *where = lr_cgroup_where(g, AT_BLK "weightDevice", i);

		if (d->weight && lr_cgroup_check_blkio_weight(g, where, *d->weight)) {
			lr_cgroup_emit(g, LR_CTRL_BLKIO, 0, where, "blkio.weight_device",
				       "%" PRIi64 ":%" PRIi64 " %u", d->major, d->minor,
				       *d->weight);
			lr_cgroup_emit_alt(g, "blkio.bfq.weight_device",
					   "%" PRIi64 ":%" PRIi64 " %u", d->major, d->minor,
					   *d->weight);
		}
		if (d->leaf_weight && lr_cgroup_check_blkio_weight(g, where, *d->leaf_weight))
			lr_cgroup_emit(g, LR_CTRL_BLKIO, 0, where, "blkio.leaf_weight_device",
				       "%" PRIi64 ":%" PRIi64 " %u", d->major, d->minor,
				       *d->leaf_weight);
	}
	gen_throttle(g, &b->throttle_read_bps_device, AT_BLK "throttleReadBpsDevice",
		     "blkio.throttle.read_bps_device");
	gen_throttle(g, &b->throttle_write_bps_device, AT_BLK "throttleWriteBpsDevice",
		     "blkio.throttle.write_bps_device");
	gen_throttle(g, &b->throttle_read_iops_device, AT_BLK "throttleReadIOPSDevice",
		     "blkio.throttle.read_iops_device");
	gen_throttle(g, &b->throttle_write_iops_device, AT_BLK "throttleWriteIOPSDevice",
		     "blkio.throttle.write_iops_device");
}

static void gen_network(struct lr_cgroup_gen *g, const struct oci_network *n)
{
	if (n->class_id && *n->class_id)
		lr_cgroup_emit(g, LR_CTRL_NET_CLS, 0, "linux.resources.network.classID",
			       "net_cls.classid", "%" PRIu32, *n->class_id);
	for (size_t i = 0; i < n->priorities.n; i++) {
		const struct oci_interface_priority *p = &n->priorities.v[i];
		const char *where = lr_cgroup_where(g, "linux.resources.network.priorities", i);

		if (!p->name || !*p->name || strpbrk(p->name, " \t\n"))
			return lr_cgroup_gen_refuse(g, where, NULL,
						    "not the name of a network interface");
		lr_cgroup_emit(g, LR_CTRL_NET_PRIO, 0, where, "net_prio.ifpriomap", "%s %" PRIu32,
			       p->name, p->priority);
	}
}

void lr_cgroup_gen_v1(struct lr_cgroup_gen *g, const struct oci_resources *r)
{
	if (r->unified.n)
		return g->ref->mode == LR_CGROUP_NONE
			       ? lr_cgroup_gen_refuse(g, "linux.resources.unified", "remove it",
						      "a limit is set, but the container gets no "
						      "cgroup")
			       : lr_cgroup_gen_refuse(
					 g, "linux.resources.unified",
					 "use the named members of linux.resources, or boot with "
					 "systemd.unified_cgroup_hierarchy=1",
					 "\"unified\" needs cgroup v2; this host has v1");
	if (r->memory)
		gen_memory(g, r->memory);
	if (r->cpu)
		gen_cpu(g, r->cpu);
	if (r->block_io)
		gen_block_io(g, r->block_io);
	if (r->network)
		gen_network(g, r->network);
	lr_cgroup_gen_common(g, r, false);
}
