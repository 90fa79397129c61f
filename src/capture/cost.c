/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what the twins take of the memory that the processes may have. */
#define LR_ROOM "capture"
#include <linux/oom.h>

#include "src/capture/state.h"

/* Bytes. A page table covers 2 MiB; a mapping, as the kernel has it; room for a descriptor, with its marks. */
#define TABLE      4096U
#define COVERS     (UINT64_C(2) << 20)
#define MAPPING    1024U
#define DESCRIPTOR 9U
/* A process with its stack in the kernel, and what it is made of; and what nobody has counted. */
#define PROCESS (256U << 10)
#define MORE    (1U << 20)

/* A fork copies the tables of private memory alone; and no more of them than there are. */
static uint64_t tables(const struct cap_process *p)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < p->maps.n; i++)
		if (!p->maps.v[i].shared)
			bytes += ((p->maps.v[i].end - p->maps.v[i].start) / COVERS + 2) * TABLE;
	return bytes < p->tables ? bytes : p->tables;
}

void cap_cost(const struct cap *c, struct lr_capture_cost *ret)
{
	*ret = (struct lr_capture_cost){.copies = MORE, .oom_score_adj = OOM_SCORE_ADJ_MIN};
	for (size_t i = 0; i < c->n; i++) {
		const struct cap_process *p = &c->p[i];
		if (p->seed.flags & LR_SEED_ZOMBIE)
			continue;
		ret->copies += tables(p) + p->maps.n * MAPPING + p->numbers * DESCRIPTOR + PROCESS;
		ret->written += c->opts->end ? 0 : p->written;
		if (p->seed.oom_score_adj > ret->oom_score_adj)
			ret->oom_score_adj = p->seed.oom_score_adj;
	}
}
