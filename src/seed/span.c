/* SPDX-License-Identifier: Apache-2.0 */
/* seed: see span.h. */
#include "src/seed/span.h"

#include <errno.h>

/* Whether the mapping has any contents; *run: the next one of the mm. */
static bool has_run(const struct lr_seed *s, const struct lr_seed_mm *mm,
		    const struct lr_seed_vma *v, uint32_t *run)
{
	const uint32_t first = *run, end = mm->runs.first + mm->runs.count;

	while (*run < end && lr_seed_run(s, *run)->start < v->end)
		++*run;
	return *run > first;
}

static int add(struct lr_seed_spans *p, struct lr_arena *a, uint32_t mm,
	       const struct lr_seed_vma *v)
{
	const uint64_t pages = (v->end - v->start) / LR_SEED_PAGE;

	if (pages > LR_SEED_SPAN_PAGES - p->pages)
		return -E2BIG;
	struct lr_seed_span *grown = lr_grow(a, p->v, p->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->v = grown;
	p->v[p->n++] = (struct lr_seed_span){p->pages, pages, v->start, mm};
	p->pages += pages;
	return 0;
}

int lr_seed_spans(const struct lr_seed *s, struct lr_arena *a, struct lr_seed_spans *ret)
{
	struct lr_seed_spans p = {0};

	for (uint32_t i = 0; i < lr_seed_count(s, LR_SEED_MM); i++) {
		const struct lr_seed_mm *mm = lr_seed_mm(s, i);
		uint32_t run = mm->runs.first;
		for (uint32_t k = 0; k < mm->vmas.count; k++) {
			const struct lr_seed_vma *v = lr_seed_vma(s, mm->vmas.first + k);
			/* The runs of all mappings are passed, whether they count or not. */
			if (!has_run(s, mm, v, &run) || !lr_seed_may_map(v))
				continue;
			int r = add(&p, a, i, v);
			if (r < 0)
				return r;
		}
	}
	*ret = p;
	return 0;
}

const struct lr_seed_span *lr_seed_span_at(const struct lr_seed_spans *p, uint32_t mm,
					   uint64_t start)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct lr_seed_span *x = &p->v[mid];
		if (x->mm < mm || (x->mm == mm && x->start < start))
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->n && p->v[low].mm == mm && p->v[low].start == start ? &p->v[low] : NULL;
}

static const struct lr_seed_span *of_page(const struct lr_seed_spans *p, uint64_t page)
{
	size_t low = 0, high = p->n;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;
		if (p->v[mid].first <= page)
			low = mid;
		else
			high = mid;
	}
	return &p->v[low];
}

uint64_t lr_seed_span_page(const struct lr_seed *s, const struct lr_seed_spans *p, uint64_t page)
{
	const struct lr_seed_span *x = of_page(p, page);
	const struct lr_seed_mm *mm = lr_seed_mm(s, x->mm);
	const uint64_t at = x->start + (page - x->first) * LR_SEED_PAGE;
	uint32_t low = mm->runs.first, high = low + mm->runs.count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct lr_seed_run *r = lr_seed_run(s, mid);
		if (at < r->start)
			high = mid;
		else if (at >= r->start + r->pages * LR_SEED_PAGE)
			low = mid + 1;
		else
			return r->at + (at - r->start);
	}
	return 0;
}
