/* SPDX-License-Identifier: Apache-2.0 */
/* resume: which pages are read into place even if others come when they are touched. */
#define LR_ROOM "resume"
#include "src/resume/resume.h"
#include "src/seed/span.h"

static int tell(const struct lr_seed *s, const struct lr_seed_range *runs, uint32_t from,
		uint64_t end,
		int (*each)(void *arg, const struct lr_seed_run *run, struct lr_err *err),
		void *arg, uint32_t *next, struct lr_err *err)
{
	int r = 0;

	for (*next = from; r >= 0 && *next < runs->first + runs->count; ++*next) {
		const struct lr_seed_run *run = lr_seed_run(s, *next);
		if (run->start >= end)
			break;
		if (each)
			r = each(arg, run, err);
	}
	return r;
}

static int of_memory(const struct lr_seed *s, const struct lr_seed_mm *mm, bool by_module,
		     int (*each)(void *arg, const struct lr_seed_run *run, struct lr_err *err),
		     void *arg, struct lr_err *err)
{
	uint32_t run = mm->runs.first;
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < mm->vmas.count; i++) {
		const struct lr_seed_vma *v = lr_seed_vma(s, mm->vmas.first + i);
		bool later = by_module ? lr_seed_may_map(v) : lr_seed_may_wait(v);
		r = tell(s, &mm->runs, run, v->end, later ? NULL : each, arg, &run, err);
	}
	return r;
}

int lr_resume_in_place(const struct lr_seed *s, bool by_module,
		       int (*each)(void *arg, const struct lr_seed_run *run, struct lr_err *err),
		       void *arg, struct lr_err *err)
{
	int r = 0;
	uint32_t next;

	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_MM); i++)
		r = of_memory(s, lr_seed_mm(s, i), by_module, each, arg, err);
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_OBJECT); i++) {
		const struct lr_seed_range *runs = &lr_seed_object(s, i)->runs;
		r = tell(s, runs, runs->first, UINT64_MAX, each, arg, &next, err);
	}
	for (uint32_t i = 0; r >= 0 && i < lr_seed_count(s, LR_SEED_NODE); i++) {
		const struct lr_seed_range *runs = &lr_seed_node(s, i)->runs;
		r = tell(s, runs, runs->first, UINT64_MAX, each, arg, &next, err);
	}
	return r < 0 ? r : 0;
}
