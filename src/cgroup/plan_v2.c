/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: resources, which speak v1's language, as writes to cgroup v2 files. Pure for a new
 * cgroup; for an update it reads the one present value that a lone member is combined with.
 */
#define LR_ROOM "cgroup"

#include "src/cgroup/internal.h"

#include <inttypes.h>

#define AT_MEM "linux.resources.memory."
#define AT_CPU "linux.resources.cpu."
#define AT_BLK "linux.resources.blockIO."

static const char *num_or_max(char buf[24], int64_t n)
{
	if (n < 0)
		return "max";
	snprintf(buf, 24, "%" PRIi64, n);
	return buf;
}

/* First word of a file as it is now; "" when there is none yet. */
static void present(struct lr_cgroup_gen *g, enum lr_cgroup_ctrl c, const char *file, char *buf,
		    size_t size)
{
	const char *dir = lr_cgroup_dir(g->ref, c);

	if (!g->update || !dir || lr_cgroup_read(dir, file, buf, size) < 0)
		buf[0] = '\0';
	buf[strcspn(buf, " \n")] = '\0';
}

/* ---- memory --------------------------------------------------------------------------------- */

static void gen_swap(struct lr_cgroup_gen *g, int64_t limit, int64_t memsw)
{
	char buf[24];
	int64_t swap;
	bool set;

	/* Given alone in an update, it is relative to the limit that is in force. */
	if (memsw > 0 && limit == 0) {
		uint64_t now;
		char text[64];

		present(g, LR_CTRL_MEMORY, "memory.max", text, sizeof(text));
		if (lr_parse_u64(text, &now) == 0 && now <= INT64_MAX)
			limit = (int64_t)now;
	}
	if (lr_cgroup_swap_of(limit, memsw, &swap, &set) < 0) {
		lr_cgroup_gen_refuse(g, AT_MEM "swap",
				     "swap counts memory and swap together: set it to at least "
				     "memory.limit, or to -1",
				     limit <= 0 ? "swap limit %" PRIi64 " needs a memory limit"
						: "swap limit %" PRIi64
						  " is below the memory limit %" PRIi64,
				     memsw, limit);
		return;
	}
	/* Where the kernel counts no swap, "none" and "all you like" are the same. */
	if (set)
		lr_cgroup_emit(g, LR_CTRL_MEMORY, swap <= 0 ? LR_W_OPTIONAL : 0,
			       memsw ? AT_MEM "swap" : AT_MEM "limit", "memory.swap.max", "%s",
			       num_or_max(buf, swap));
}

static void gen_memory(struct lr_cgroup_gen *g, const struct oci_memory *m)
{
	int64_t limit = m->limit ? *m->limit : 0;
	char buf[24];
	unsigned check = m->check_before_update && *m->check_before_update && g->update && limit > 0
				 ? LR_W_CHECK_USAGE
				 : 0;

	if (check) /* before swap.max is changed */
		lr_cgroup_emit(g, LR_CTRL_MEMORY, LR_W_CHECK_USAGE, AT_MEM "limit",
			       "memory.current", "%" PRIi64, limit);
	gen_swap(g, limit, m->swap ? *m->swap : 0);
	if (limit)
		lr_cgroup_emit(g, LR_CTRL_MEMORY, limit < 0 ? LR_W_OPTIONAL : 0, AT_MEM "limit",
			       "memory.max", "%s", num_or_max(buf, limit));
	if (m->reservation && *m->reservation)
		lr_cgroup_emit(g, LR_CTRL_MEMORY, 0, AT_MEM "reservation", "memory.low", "%s",
			       num_or_max(buf, *m->reservation));
	if (m->kernel && *m->kernel)
		lr_cgroup_gen_ignored(AT_MEM "kernel", "cgroup v2 counts it as memory");
	if (m->kernel_tcp && *m->kernel_tcp)
		lr_cgroup_gen_ignored(AT_MEM "kernelTCP", "cgroup v2 counts it as memory");
	if (lr_cgroup_check_swappiness(g, m))
		lr_cgroup_gen_ignored(AT_MEM "swappiness", "cgroup v2 has no such setting");
	if (m->disable_oom_killer && *m->disable_oom_killer)
		lr_cgroup_gen_ignored(AT_MEM "disableOOMKiller", "cgroup v2 has no such setting");
	if (m->use_hierarchy && !*m->use_hierarchy)
		lr_cgroup_gen_ignored(AT_MEM "useHierarchy", "cgroup v2 is always hierarchical");
}

/* ---- cpu ------------------------------------------------------------------------------------ */

/* cpu.max is "quota period"; a quota alone leaves the period as it is. */
static void gen_cpu_max(struct lr_cgroup_gen *g, int64_t quota, uint64_t period)
{
	char buf[24], now[64];

	if (quota && period)
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER, AT_CPU "quota", "cpu.max", "%s %" PRIu64,
			       num_or_max(buf, quota), period);
	else if (quota)
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER | (quota < 0 ? LR_W_OPTIONAL : 0),
			       AT_CPU "quota", "cpu.max", "%s", num_or_max(buf, quota));
	else if (period) {
		present(g, LR_CTRL_CPU, "cpu.max", now, sizeof(now));
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER, AT_CPU "period", "cpu.max",
			       "%s %" PRIu64, now[0] ? now : "max", period);
	}
}

static void gen_cpu(struct lr_cgroup_gen *g, const struct oci_cpu *c)
{
	if (c->shares && *c->shares)
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER, AT_CPU "shares", "cpu.weight",
			       "%" PRIu64, lr_cgroup_weight_of_shares(*c->shares));
	gen_cpu_max(g, c->quota ? *c->quota : 0, c->period ? *c->period : 0);
	if (c->burst && (*c->burst || g->update))
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER | (*c->burst ? 0 : LR_W_OPTIONAL),
			       AT_CPU "burst", "cpu.max.burst", "%" PRIu64, *c->burst);
	if (c->idle && (*c->idle || g->update))
		lr_cgroup_emit(g, LR_CTRL_CPU, LR_W_DEFER | (*c->idle ? 0 : LR_W_OPTIONAL),
			       AT_CPU "idle", "cpu.idle", "%" PRIi64, *c->idle);
	if ((c->realtime_period && *c->realtime_period) ||
	    (c->realtime_runtime && *c->realtime_runtime))
		return lr_cgroup_gen_refuse(g,
					    c->realtime_runtime && *c->realtime_runtime
						    ? AT_CPU "realtimeRuntime"
						    : AT_CPU "realtimePeriod",
					    "remove it; realtime budgets need cgroup v1",
					    "cgroup v2 has no realtime budgets");
	if (c->cpus && *c->cpus)
		lr_cgroup_emit(g, LR_CTRL_CPUSET, 0, AT_CPU "cpus", "cpuset.cpus", "%s", c->cpus);
	if (c->mems && *c->mems)
		lr_cgroup_emit(g, LR_CTRL_CPUSET, 0, AT_CPU "mems", "cpuset.mems", "%s", c->mems);
}

/* ---- io ------------------------------------------------------------------------------------- */

static void gen_throttle(struct lr_cgroup_gen *g, const struct oci_throttle_devices *list,
			 const char *name, const char *key)
{
	char buf[24];

	for (size_t i = 0; i < list->n; i++) {
		uint64_t rate = list->v[i].rate;

		/* 0 lifts a v1 limit, and is invalid here. */
		snprintf(buf, sizeof(buf), "%" PRIu64, rate);
		lr_cgroup_emit(g, LR_CTRL_BLKIO, 0, lr_cgroup_where(g, name, i), "io.max",
			       "%" PRIi64 ":%" PRIi64 " %s=%s", list->v[i].major, list->v[i].minor,
			       key, rate ? buf : "max");
	}
}

static void gen_block_io(struct lr_cgroup_gen *g, const struct oci_block_io *b)
{
	static const char no_leaf[] =
		"remove it: it came from the CFQ scheduler, gone in Linux 5.0";

	if (b->weight && lr_cgroup_check_blkio_weight(g, AT_BLK "weight", *b->weight)) {
		/* BFQ's file, if BFQ is built in, keeps v1's scale. */
		lr_cgroup_emit(g, LR_CTRL_BLKIO, 0, AT_BLK "weight", "io.bfq.weight", "%u",
			       *b->weight);
		lr_cgroup_emit_alt(g, "io.weight", "%" PRIu64, lr_cgroup_io_weight(*b->weight));
	}
	if (b->leaf_weight && *b->leaf_weight)
		return lr_cgroup_gen_refuse(g, AT_BLK "leafWeight", no_leaf,
					    "cgroup v2 has no leaf weights");
	for (size_t i = 0; i < b->weight_device.n; i++) {
		const struct oci_weight_device *d = &b->weight_device.v[i];
		const char *where = lr_cgroup_where(g, AT_BLK "weightDevice", i);

		if (d->leaf_weight && *d->leaf_weight)
			return lr_cgroup_gen_refuse(g, where, no_leaf,
						    "cgroup v2 has no leaf weights");
		if (!d->weight || !lr_cgroup_check_blkio_weight(g, where, *d->weight))
			continue;
		lr_cgroup_emit(g, LR_CTRL_BLKIO, 0, where, "io.bfq.weight",
			       "%" PRIi64 ":%" PRIi64 " %u", d->major, d->minor, *d->weight);
		lr_cgroup_emit_alt(g, "io.weight", "%" PRIi64 ":%" PRIi64 " %" PRIu64, d->major,
				   d->minor, lr_cgroup_io_weight(*d->weight));
	}
	gen_throttle(g, &b->throttle_read_bps_device, AT_BLK "throttleReadBpsDevice", "rbps");
	gen_throttle(g, &b->throttle_write_bps_device, AT_BLK "throttleWriteBpsDevice", "wbps");
	gen_throttle(g, &b->throttle_read_iops_device, AT_BLK "throttleReadIOPSDevice", "riops");
	gen_throttle(g, &b->throttle_write_iops_device, AT_BLK "throttleWriteIOPSDevice", "wiops");
}

/* ---- unified -------------------------------------------------------------------------------- */

/* The controller by a file's prefix: "memory.high" -> memory; LR_CTRL_N: none of them. */
static enum lr_cgroup_ctrl ctrl_of_file(const char *file)
{
	size_t len = strcspn(file, ".");

	for (enum lr_cgroup_ctrl c = 0; c < LR_CTRL_N; c++) {
		const char *name = lr_cgroup_ctrl_v2(c);

		if (name && strlen(name) == len && memcmp(name, file, len) == 0)
			return c;
	}
	return LR_CTRL_N;
}

/* Files that say who is in the cgroup, not what it may use: the runtime's own. */
static bool is_managed(const char *key)
{
	static const char *const files[] = {"cgroup.procs", "cgroup.threads",
					    "cgroup.type",  "cgroup.freeze",
					    "cgroup.kill",  "cgroup.subtree_control"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(files); i++)
		if (lr_streq(files[i], key))
			return true;
	return false;
}

static void gen_unified_key(struct lr_cgroup_gen *g, const char *key, const char *value)
{
	const char *where = lr_strf(g->arena, "linux.resources.unified[\"%.100s\"]", key);
	enum lr_cgroup_ctrl c = ctrl_of_file(key);

	if (strchr(key, '/') || !strchr(key, '.') || key[0] == '.')
		return lr_cgroup_gen_refuse(g, where,
					    "a key is a file's name, like \"memory.high\"",
					    "not the name of a cgroup file");
	if (is_managed(key))
		return lr_cgroup_gen_refuse(g, where, "remove the key",
					    "this file belongs to the runtime");
	/* A file of no known controller (a newer kernel's): any will do for finding the
	 * directory. */
	bool core = c == LR_CTRL_N;
	unsigned before = g->need;
	const char *before_where = g->where[LR_CTRL_MEMORY];

	/* Lists such as io.max take one line per write. */
	for (const char *p = value; *p;) {
		size_t len = strcspn(p, "\n"), lead = strspn(p, " \t");

		if (lead < len)
			lr_cgroup_emit(g, core ? LR_CTRL_MEMORY : c, 0, where, key, "%.*s",
				       (int)(len - lead), p + lead);
		p += len + (p[len] == '\n');
	}
	if (core) {
		g->need = before;
		g->where[LR_CTRL_MEMORY] = before_where;
	}
}

void lr_cgroup_gen_v2(struct lr_cgroup_gen *g, const struct oci_resources *r)
{
	if (r->memory)
		gen_memory(g, r->memory);
	if (r->cpu)
		gen_cpu(g, r->cpu);
	if (r->block_io)
		gen_block_io(g, r->block_io);
	if (r->network && r->network->class_id && *r->network->class_id)
		lr_cgroup_gen_ignored("linux.resources.network.classID", "cgroup v2 has none");
	if (r->network && r->network->priorities.n)
		lr_cgroup_gen_ignored("linux.resources.network.priorities", "cgroup v2 has none");
	lr_cgroup_gen_common(g, r, true);
	/* Last, so that the file named outright wins over what was converted. */
	for (size_t i = 0; i < r->unified.n && g->r == 0; i++)
		gen_unified_key(g, r->unified.v[i].key, r->unified.v[i].value);
}
