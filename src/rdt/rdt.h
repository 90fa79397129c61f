/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdt: cache and memory-bandwidth allocation through resctrl (config-linux.md "linux.intelRdt";
 * also AMD's and Arm's equivalents, the kernel interface is one).
 *
 * Applied by the parent, by pid, before the container's process makes children: they inherit the
 * group. All functions work below the directory descriptor they are given.
 */
#ifndef LR_RDT_RDT_H
#define LR_RDT_RDT_H

#include <stdbool.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

struct lr_rdt_plan {
	bool given;
	const char *group;    /* directory below the root; ".": the default group (closID "/") */
	bool own_group;       /* no closID: the group is named after the container and is its own */
	bool must_exist;      /* closID without any schema: prepared by somebody else */
	const char *compare;  /* l3CacheSchema + memBwSchema: an existing closID must have them */
	const char *schemata; /* "schemata", written after those */
	const char *monitor;  /* name below mon_groups, or NULL */
};

/* Pure. rdt may be NULL. */
int lr_rdt_plan(const struct oci_intel_rdt *rdt, const char *container_id, struct lr_arena *arena,
		struct lr_rdt_plan *ret, struct lr_err *err) LR_MUST_CHECK;

/* A descriptor of the mounted resctrl, wherever it is mounted in our mount namespace. */
int lr_rdt_open(struct lr_err *err) LR_MUST_CHECK;

/* What lr_rdt_apply made: to be kept in the container's record and given to lr_rdt_destroy. */
#define LR_RDT_MADE_GROUP   1
#define LR_RDT_MADE_MONITOR 2

/* LR_RDT_MADE_* or -errno; after a failure nothing that it made is left. */
int lr_rdt_apply(const struct lr_rdt_plan *plan, int rootfd, pid_t pid,
		 struct lr_err *err) LR_MUST_CHECK;

/* `update`: new schemas (NULL: unchanged) for the group of the plan. */
int lr_rdt_update(const struct lr_rdt_plan *plan, const char *l3_cache_schema,
		  const char *mem_bw_schema, struct lr_arena *arena, int rootfd,
		  struct lr_err *err) LR_MUST_CHECK;

/*
 * Removes what was made for this container alone. A group that config.json names by closID stays,
 * even if we made it: others may have joined since, and the kernel would move them to the default
 * group without a word. Missing directories are no error.
 */
int lr_rdt_destroy(const struct lr_rdt_plan *plan, int made, int rootfd,
		   struct lr_err *err) LR_MUST_CHECK;

/* ---- schema texts (schema.c; pure) ------------------------------------------------------- */

/*
 * l3CacheSchema without its MB: lines, then memBwSchema, one per line and each ended by a newline.
 * Either may be NULL; *ret is NULL if both are.
 */
int lr_rdt_combine(const char *l3, const char *mb, struct lr_arena *arena, const char **ret,
		   struct lr_err *err) LR_MUST_CHECK;

/* True if every "KIND:id=value" of `want` has the same value in `have` (a schemata file). */
bool lr_rdt_schema_within(const char *want, const char *have);

#endif
