/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits: what a process may use and how it is scheduled, as far as it isn't the cgroup's: rlimits,
 * oom_score_adj, scheduler, I/O priority, CPU affinity, execution domain, memory policy.
 *
 * Each part has its own plan (pure) and its own apply, because they belong to different moments:
 *
 *   lr_limits_affinity()     by the parent or the child itself, before the cgroup is joined
 *                            (`initial` of exec) and after (`final`, or everything)
 *   lr_limits_oom_apply()    while the process may still lower its score
 *   lr_limits_rlimits_apply(), _sched_apply(), _mempolicy_apply(), _personality_apply()
 *                            with the runtime's capabilities; the execution domain before seccomp
 *                            (profiles filter personality(2))
 */
#ifndef LR_LIMITS_LIMITS_H
#define LR_LIMITS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"
#include "src/sys/syscalls.h"

/* ---- bit lists: "0-3,7" ----------------------------------------------------------------- */

#define LR_LIMITS_LIST_MAX 65536 /* CPUs or nodes; the kernel's own limits are 8192 and 1024 */

/* A kernel bit mask: words of long, `bits` a multiple of their size. */
struct lr_limits_mask {
	unsigned long *word; /* NULL: not given */
	size_t bits;
};

/*
 * The list format of cpuset(7): numbers and ranges, separated by commas, spaces around them
 * allowed, "0-10:2/4" for groups. Empty text: -EINVAL. `what` ("CPU", "node") is for the message.
 */
int lr_limits_parse_list(const char *text, const char *what, struct lr_arena *arena,
			 struct lr_limits_mask *ret, struct lr_err *err) LR_MUST_CHECK;
bool lr_limits_mask_has(const struct lr_limits_mask *mask, size_t bit);

/* ---- resource limits -------------------------------------------------------------------- */

struct lr_limits_rlimit {
	int resource;
	uint64_t soft;
	uint64_t hard;
};

struct lr_limits_rlimits {
	struct lr_limits_rlimit *v; /* in the order of config.json */
	size_t n;
};

int lr_limits_rlimits_plan(const struct oci_rlimits *rlimits, struct lr_arena *arena,
			   struct lr_limits_rlimits *ret, struct lr_err *err) LR_MUST_CHECK;

/* pid 0: the caller itself. */
int lr_limits_rlimits_apply(const struct lr_limits_rlimits *plan, pid_t pid,
			    struct lr_err *err) LR_MUST_CHECK;

/* ---- OOM score --------------------------------------------------------------------------- */

/* adj NULL: nothing to do. Only the range is checked. */
int lr_limits_oom_check(const int32_t *adj, struct lr_err *err) LR_MUST_CHECK;

/*
 * Writes the caller's own score through procfd. Lowering it needs CAP_SYS_RESOURCE: without it the
 * result is an error, or only a warning if `rootless`, as runc has it. No error if the score is
 * already what is asked for.
 */
int lr_limits_oom_apply(const int32_t *adj, int procfd, bool rootless,
			struct lr_err *err) LR_MUST_CHECK;

/* ---- in a user namespace ------------------------------------------------------------------- */

/*
 * Hard limits are raised, and the OOM score is lowered, with CAP_SYS_RESOURCE of the *initial* user
 * namespace only (kernel: do_prlimit, __set_oom_adj). Whoever still has it grants both to a process
 * in another one (or, with pid 0 and without a score, to itself before it enters), which may then
 * apply them. What cannot be granted is told by the apply functions.
 */
void lr_limits_grant(const struct lr_limits_rlimits *rlimits, const int32_t *oom_score_adj,
		     pid_t pid);

/* ---- scheduler and I/O priority ---------------------------------------------------------- */

struct lr_limits_sched {
	bool has_scheduler;
	struct lr_sched_attr attr;
	bool has_io_priority;
	int io_priority; /* as ioprio_set(2) takes it */
};

int lr_limits_sched_plan(const struct oci_scheduler *scheduler, const struct oci_io_priority *io,
			 struct lr_limits_sched *ret, struct lr_err *err) LR_MUST_CHECK;
int lr_limits_sched_apply(const struct lr_limits_sched *plan, struct lr_err *err) LR_MUST_CHECK;

/* ---- CPU affinity ------------------------------------------------------------------------ */

struct lr_limits_affinity {
	struct lr_limits_mask initial; /* before the cgroup is joined */
	struct lr_limits_mask final;   /* after */
};

/* affinity may be NULL. */
int lr_limits_affinity_plan(const struct oci_exec_cpu_affinity *affinity, struct lr_arena *arena,
			    struct lr_limits_affinity *ret, struct lr_err *err) LR_MUST_CHECK;

/* Sets a mask of the plan (which: "initial" or "final"; nothing to do if not given) for pid, 0: the
 * caller. */
int lr_limits_affinity_apply(const struct lr_limits_affinity *plan, bool final, pid_t pid,
			     struct lr_err *err) LR_MUST_CHECK;

/*
 * Allows every CPU that the process' cpuset has, for a process that inherited a narrower mask from
 * whoever called the runtime. One system call, with a mask of LR_LIMITS_LIST_MAX CPUs. Best effort:
 * failure is logged at debug level only.
 */
void lr_limits_affinity_reset(pid_t pid);

/* ---- execution domain -------------------------------------------------------------------- */

/* *ret: what personality(2) takes. personality NULL: 0 and *given false. */
int lr_limits_personality_plan(const struct oci_personality *personality, bool *given,
			       unsigned long *ret, struct lr_err *err) LR_MUST_CHECK;
int lr_limits_personality_apply(unsigned long domain, struct lr_err *err) LR_MUST_CHECK;

/* ---- memory policy ----------------------------------------------------------------------- */

struct lr_limits_mempolicy {
	bool given;
	int mode; /* with flags, as set_mempolicy(2) takes it */
	struct lr_limits_mask nodes;
};

int lr_limits_mempolicy_plan(const struct oci_memory_policy *policy, struct lr_arena *arena,
			     struct lr_limits_mempolicy *ret, struct lr_err *err) LR_MUST_CHECK;
int lr_limits_mempolicy_apply(const struct lr_limits_mempolicy *plan,
			      struct lr_err *err) LR_MUST_CHECK;

/* NULL-terminated lists for `features`. */
extern const char *const lr_limits_mempolicy_modes[];
extern const char *const lr_limits_mempolicy_flags[];

#endif
