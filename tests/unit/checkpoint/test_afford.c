/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: whether a container has the memory to become a seed. */
#include <errno.h>

#include "src/base/str.h"
#include "src/capture/capture.h"
#include "src/checkpoint/internal.h"
#include "src/stats/stats.h"
#include "tests/unit/test.h"

#define MIB (UINT64_C(1) << 20)

TEST(a_seed_that_might_cost_a_container_its_life_is_refused)
{
	static const struct {
		struct lr_capture_cost cost;
		struct lr_stats_left left;
		const char *why; /* NULL: it is made */
	} cases[] = {
		{{2 * MIB, 50 * MIB, 0}, {UINT64_MAX, 0, 0, false}, NULL},
		{{2 * MIB, 50 * MIB, 1000}, {UINT64_MAX, 0, 0, true}, NULL},
		/* Before there is a twin that could be ended. */
		{{2 * MIB, 50 * MIB, 0}, {2 * MIB, 100 * MIB, 60 * MIB, false}, NULL},
		{{2 * MIB, 50 * MIB, 0},
		 {2 * MIB - 1, 100 * MIB, 60 * MIB, false},
		 "a cgroup above"},
		{{2 * MIB, 50 * MIB, -999}, {0, 100 * MIB, 60 * MIB, false}, "a cgroup above"},
		/* It is not ended alone. */
		{{2 * MIB, 50 * MIB, 0}, {51 * MIB, 100 * MIB, 60 * MIB, true}, "memory.oom.group"},
		{{2 * MIB, 50 * MIB, 0}, {53 * MIB, 200 * MIB, 60 * MIB, true}, NULL},
		{{2 * MIB, 0, 0}, {3 * MIB, 100 * MIB, 60 * MIB, true}, NULL},
		/* No more than there is, however many share it. */
		{{2 * MIB, 5000 * MIB, 0}, {63 * MIB, 200 * MIB, 60 * MIB, true}, NULL},
		{{2 * MIB, 5000 * MIB, 0},
		 {62 * MIB, 200 * MIB, 60 * MIB, true},
		 "memory.oom.group"},
		/* Or its process is, which may have more by as much as is left. */
		{{2 * MIB, 50 * MIB, 1000}, {30 * MIB, 100 * MIB, 60 * MIB, false}, "oomScoreAdj"},
		{{2 * MIB, 50 * MIB, 700}, {31 * MIB, 100 * MIB, 60 * MIB, false}, "oomScoreAdj"},
		{{2 * MIB, 50 * MIB, 700}, {29 * MIB, 100 * MIB, 60 * MIB, false}, NULL},
		{{2 * MIB, 50 * MIB, 1000}, {53 * MIB, 100 * MIB, 60 * MIB, false}, NULL},
	};

	for (size_t i = 0; i < LR_ARRAY_SIZE(cases); i++) {
		struct lr_err err = {0};
		const int r = lr_checkpoint_afford(&cases[i].cost, &cases[i].left, &err);
		CHECK_INT(r, cases[i].why ? -ENOMEM : 0);
		if (cases[i].why)
			CHECK_HAS(err.hint, cases[i].why);
	}
}
