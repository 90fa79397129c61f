/* SPDX-License-Identifier: Apache-2.0 */
/* cli: update. Limits come from a file of linux.resources, or one option each. */
#define LR_ROOM "update"
#include <errno.h>

#include "libocispec/ocispec.h"
#include "src/base/str.h"
#include "src/cli/commands.h"
#include "src/cli/runtime.h"

static int from_file(const char *file, struct lr_arena *a, const struct oci_resources **ret,
		     struct lr_err *err)
{
	char *text;
	size_t len;

	int r = oci_read_input(file, a, &text, &len, err);
	return r < 0 ? r : oci_resources_decode(text, len, a, ret, err);
}

/*
 * The value of a numeric option as the pointer that struct oci_resources wants, or NULL if it was
 * not given. Zero counts as not given where it could not be a limit, as it does for runc and its
 * callers.
 */
struct numbers {
	const struct lr_cli_args *args;
	struct lr_arena *arena;
	struct lr_err *err;
	int r;
};

static const int64_t *number(struct numbers *n, enum lr_cli_opt_id id, int64_t min, int64_t max,
			     bool zero_counts)
{
	if (n->r < 0 || !lr_cli_count(n->args, id))
		return NULL;
	int64_t value = lr_cli_num(n->args, id, 0);
	if (value == 0 && !zero_counts)
		return NULL;
	if (value < min || value > max) {
		n->r = lr_refuse(n->err, ERANGE, "--%s=%lld is not in %lld..%lld",
				 lr_cli_opt_name(id), (long long)value, (long long)min,
				 (long long)max);
		return NULL;
	}
	int64_t *p = lr_new(n->arena, int64_t);
	if (!p)
		n->r = lr_fail(n->err, ENOMEM, "limits");
	else
		*p = value;
	return p;
}

/* A value that is >= 0 has the same bytes as int64_t and as uint64_t. */
static const uint64_t *positive(struct numbers *n, enum lr_cli_opt_id id, bool zero_counts)
{
	return (const uint64_t *)number(n, id, 0, INT64_MAX, zero_counts);
}

static void memory(struct numbers *n, struct oci_resources *res)
{
	struct oci_memory m = {
		.limit = number(n, LR_OPT_MEMORY, -1, INT64_MAX, false),
		.reservation = number(n, LR_OPT_MEMORY_RESERVATION, -1, INT64_MAX, false),
		.swap = number(n, LR_OPT_MEMORY_SWAP, -1, INT64_MAX, false),
		.kernel = number(n, LR_OPT_KERNEL_MEMORY, -1, INT64_MAX, false),
		.kernel_tcp = number(n, LR_OPT_KERNEL_MEMORY_TCP, -1, INT64_MAX, false),
	};
	if (!m.limit && !m.reservation && !m.swap && !m.kernel && !m.kernel_tcp)
		return;
	struct oci_memory *p = lr_new(n->arena, struct oci_memory);
	if (!p) {
		n->r = lr_fail(n->err, ENOMEM, "limits");
		return;
	}
	*p = m;
	res->memory = p;
}

static void cpu(struct numbers *n, struct oci_resources *res)
{
	struct oci_cpu c = {
		.shares = positive(n, LR_OPT_CPU_SHARE, false),
		.quota = number(n, LR_OPT_CPU_QUOTA, -1, INT64_MAX, false),
		.burst = positive(n, LR_OPT_CPU_BURST, true),
		.period = positive(n, LR_OPT_CPU_PERIOD, false),
		.realtime_runtime = number(n, LR_OPT_CPU_RT_RUNTIME, -1, INT64_MAX, false),
		.realtime_period = positive(n, LR_OPT_CPU_RT_PERIOD, false),
		.cpus = lr_cli_str(n->args, LR_OPT_CPUSET_CPUS),
		.mems = lr_cli_str(n->args, LR_OPT_CPUSET_MEMS),
		.idle = number(n, LR_OPT_CPU_IDLE, 0, 1, true),
	};
	if (!c.shares && !c.quota && !c.burst && !c.period && !c.realtime_runtime &&
	    !c.realtime_period && !c.cpus && !c.mems && !c.idle)
		return;
	struct oci_cpu *p = lr_new(n->arena, struct oci_cpu);
	if (!p) {
		n->r = lr_fail(n->err, ENOMEM, "limits");
		return;
	}
	*p = c;
	res->cpu = p;
}

static void block_io_and_pids(struct numbers *n, struct oci_resources *res)
{
	const int64_t *weight = number(n, LR_OPT_BLKIO_WEIGHT, 10, 1000, false);
	const int64_t *limit = number(n, LR_OPT_PIDS_LIMIT, -1, INT64_MAX, true);

	if (weight) {
		struct oci_block_io *b = lr_new(n->arena, struct oci_block_io);
		uint16_t *w = lr_new(n->arena, uint16_t);
		if (b && w) {
			*w = (uint16_t)*weight;
			b->weight = w;
			res->block_io = b;
		} else {
			n->r = lr_fail(n->err, ENOMEM, "limits");
		}
	}
	if (limit) {
		struct oci_pids *p = lr_new(n->arena, struct oci_pids);
		if (p) {
			p->limit = limit;
			res->pids = p;
		} else {
			n->r = lr_fail(n->err, ENOMEM, "limits");
		}
	}
}

static int from_options(const struct lr_cli_args *args, struct lr_arena *a,
			const struct oci_resources **ret, struct lr_err *err)
{
	struct numbers n = {.args = args, .arena = a, .err = err};
	struct oci_resources *res = lr_new(a, struct oci_resources);

	if (!res)
		return lr_fail(err, ENOMEM, "limits");
	memory(&n, res);
	cpu(&n, res);
	block_io_and_pids(&n, res);
	*ret = res;
	return n.r;
}

int lr_cmd_update(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_ARENA struct lr_arena *arena = lr_arena_new();
	const char *file = lr_cli_str(args, LR_OPT_RESOURCES);
	const struct oci_resources *resources = NULL;
	struct lr_cli_runtime run;

	if (!arena)
		return lr_fail(err, ENOMEM, "limits");
	int r = lr_cli_runtime(args, &run, err);
	if (r == 0 && file)
		r = from_file(file, arena, &resources, err);
	else if (r == 0)
		r = from_options(args, arena, &resources, err);
	if (r < 0)
		return r;
	return lr_lifecycle_update(&run.rt, lr_cli_id(args), resources,
				   lr_cli_str(args, LR_OPT_L3_CACHE_SCHEMA),
				   lr_cli_str(args, LR_OPT_MEM_BW_SCHEMA), err);
}
