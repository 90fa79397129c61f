/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint: whether a container has the memory to become a seed. Its twins count for its limit, and where that is
 * reached the kernel ends somebody: a twin, whom it is told to end first, but not before there is one, and not where it
 * ends all of a cgroup, or its processes are to be ended as soon as a twin.
 */
#define LR_ROOM "checkpoint"
#include <errno.h>

#include "src/base/arena.h"
#include "src/capture/capture.h"
#include "src/checkpoint/internal.h"
#include "src/stats/stats.h"

/* The kernel ends who has most, and for each point of oom_score_adj adds a thousandth of the limit. A twin has 1000 points,
 * and its process never has more memory than the twin and what is left now. */
static bool twin_is_first(const struct lr_capture_cost *cost, const struct lr_stats_left *left)
{
	return left->bytes <= left->limit / 1000 * (uint64_t)(1000 - cost->oom_score_adj);
}

/* Pure. */
int lr_checkpoint_afford(const struct lr_capture_cost *cost, const struct lr_stats_left *left,
			 struct lr_err *err)
{
	const bool spares = !left->group && twin_is_first(cost, left);
	/* What is there twice is no more than what is there once, however many share it. */
	const uint64_t written = cost->written < left->own ? cost->written : left->own;
	/* A twin protects nobody then while the next one is made: what is not known of its cost has room, too. */
	const uint64_t takes = cost->copies + (spares ? 0 : cost->copies / 2 + written);

	if (left->bytes >= takes)
		return 0;
	lr_refuse(err, ENOMEM,
		  "the container has %llu KiB left below its limit of memory, and a seed may take "
		  "%llu",
		  (unsigned long long)left->bytes / 1024, (unsigned long long)takes / 1024);
	if (left->bytes >= cost->copies)
		return lr_err_hint(err,
				   "raise the limit (update --memory): at it, the kernel might not "
				   "end the copy alone (%s)",
				   left->group ? "memory.oom.group of its cgroup is 1"
					       : "process.oomScoreAdj is high");
	return lr_err_hint(err, "raise the limit (update --memory), or that of a cgroup above");
}

int lr_made_afford(void *made, const struct lr_capture_cost *cost, struct lr_err *err)
{
	struct lr_made *x = made;
	const bool unlimited = lr_stats_has_no_limit(&x->limits);
	struct lr_stats_left left;

	lr_stats_limits_close(&x->limits);
	if (unlimited)
		return 0;
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	int r = lr_stats_memory_left(x->job->cgroup, a, &left, err);
	return r < 0 ? r : lr_checkpoint_afford(cost, &left, err);
}
