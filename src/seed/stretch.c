/* SPDX-License-Identifier: Apache-2.0 */
/* seed: see stretch.h. */
#include "src/seed/stretch.h"

#include <errno.h>
#include <stdlib.h>

struct listing {
	const struct lr_seed *s;
	struct lr_arena *a;
	struct lr_seed_stretches p;
	uint32_t mm;
};

static int add(struct listing *x, uint64_t start, uint64_t pages, uint64_t at)
{
	struct lr_seed_stretches *p = &x->p;

	if (!pages)
		return 0;
	if (pages > LR_SEED_SPAN_PAGES - p->pages)
		return -E2BIG;
	struct lr_seed_stretch *grown = lr_grow(x->a, p->v, p->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->v = grown;
	p->v[p->n++] = (struct lr_seed_stretch){p->pages, pages, start, at, x->mm};
	p->pages += pages;
	p->zeros += at ? 0 : pages;
	return 0;
}

/* Runs [run, end) are all that lie in the mapping, in its order. */
static int add_mapping(struct listing *x, const struct lr_seed_vma *v, uint32_t run, uint32_t end,
		       bool zeros)
{
	uint64_t at = v->start;
	int r = 0;

	for (; r == 0 && run < end; run++) {
		const struct lr_seed_run *one = lr_seed_run(x->s, run);
		if (zeros)
			r = add(x, at, (one->start - at) / LR_SEED_PAGE, 0);
		if (r == 0)
			r = add(x, one->start, one->pages, one->at);
		at = one->start + one->pages * LR_SEED_PAGE;
	}
	return r == 0 && zeros ? add(x, at, (v->end - at) / LR_SEED_PAGE, 0) : r;
}

static int add_memory(struct listing *x, bool spans)
{
	const struct lr_seed_mm *mm = lr_seed_mm(x->s, x->mm);
	const uint32_t last = mm->runs.first + mm->runs.count;
	uint32_t run = mm->runs.first;
	int r = 0;

	for (uint32_t k = 0; r == 0 && k < mm->vmas.count; k++) {
		const struct lr_seed_vma *v = lr_seed_vma(x->s, mm->vmas.first + k);
		const uint32_t first = run;
		while (run < last && lr_seed_run(x->s, run)->start < v->end)
			run++;
		if (run > first && lr_seed_may_map(v) == spans)
			r = add_mapping(x, v, first, run, spans);
	}
	return r;
}

int lr_seed_stretches(const struct lr_seed *s, struct lr_arena *a, struct lr_seed_stretches *ret)
{
	const uint32_t n = lr_seed_count(s, LR_SEED_MM);
	struct listing x = {.s = s, .a = a};
	int r = 0;

	for (x.mm = 0; r == 0 && x.mm < n; x.mm++)
		r = add_memory(&x, true);
	for (x.mm = 0; r == 0 && x.mm < n; x.mm++)
		r = add_memory(&x, false);
	if (r == 0)
		*ret = x.p;
	return r;
}

static int by_place(const void *a, const void *b)
{
	const uint64_t x = ((const struct lr_seed_stretch *)a)->at;
	const uint64_t y = ((const struct lr_seed_stretch *)b)->at;

	return x < y ? -1 : x > y;
}

void lr_seed_stretches_sort(struct lr_seed_stretches *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].at)
			p->v[n++] = p->v[i];
	p->n = n;
	if (n)
		qsort(p->v, n, sizeof(*p->v), by_place);
}

const struct lr_seed_stretch *lr_seed_stretch_at(const struct lr_seed_stretches *p, uint64_t at)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (p->v[mid].at + p->v[mid].pages * LR_SEED_PAGE <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->n ? &p->v[low] : NULL;
}
