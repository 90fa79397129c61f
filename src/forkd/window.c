/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: which pages a fault, or the next step of a prefetch, asks for. Pure. */
#include "src/forkd/child.h"

int child_pieces(const struct lr_seed *s, const struct lr_seed_mm *mm, struct pieces *ret)
{
	int r = pieces_begin(ret, mm->vmas.count);

	for (uint32_t i = 0; r == 0 && i < mm->vmas.count; i++) {
		const struct lr_seed_vma *v = lr_seed_vma(s, mm->vmas.first + i);
		if (lr_seed_may_wait(v))
			pieces_add(ret, v->start, v->end);
	}
	return r;
}

const struct lr_seed_run *child_run(const struct lr_seed *s, const struct lr_seed_mm *mm,
				    uint64_t source)
{
	uint32_t low = mm->runs.first, high = low + mm->runs.count, end = high;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct lr_seed_run *r = lr_seed_run(s, mid);
		if (r->start + r->pages * LR_SEED_PAGE <= source)
			low = mid + 1;
		else
			high = mid;
	}
	return low < end ? lr_seed_run(s, low) : NULL;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What of the run lies in the piece, as addresses of the process. */
static struct child_window common(const struct piece *p, const struct lr_seed_run *r)
{
	const uint64_t low = larger(p->source, r->start);
	const uint64_t high =
		smaller(p->source + (p->end - p->start), r->start + r->pages * LR_SEED_PAGE);

	return (struct child_window){p->start + (low - p->source), p->start + (high - p->source),
				     r->at + (low - r->start)};
}

static void shrink(struct child_window *w, uint64_t start, uint64_t end)
{
	if (start > w->start) {
		w->from += start - w->start;
		w->start = start;
	}
	w->end = smaller(w->end, end);
}

bool child_window(const struct lr_seed *s, const struct lr_seed_mm *mm, const struct pieces *p,
		  uint64_t at, uint32_t around, struct child_window *ret)
{
	const struct piece *x = pieces_find(p, at);
	const uint64_t size = (uint64_t)around * LR_SEED_PAGE;

	if (!x || x->start > at)
		return false;
	const uint64_t source = x->source + (at - x->start);
	const struct lr_seed_run *r = child_run(s, mm, source);
	if (!r || r->start > source)
		return false;
	*ret = common(x, r);
	shrink(ret, at - at % size, at - at % size + size);
	return true;
}

bool child_next(const struct lr_seed *s, const struct lr_seed_mm *mm, const struct pieces *p,
		uint64_t at, uint32_t most, struct child_window *ret)
{
	for (const struct piece *x; (x = pieces_find(p, at)); at = x->end) {
		const uint64_t begin = larger(at, x->start);
		const struct lr_seed_run *r = child_run(s, mm, x->source + (begin - x->start));
		if (!r || r->start >= x->source + (x->end - x->start))
			continue;
		*ret = common(x, r);
		shrink(ret, begin, begin + UINT64_MAX / 2);
		shrink(ret, ret->start, ret->start + (uint64_t)most * LR_SEED_PAGE);
		return true;
	}
	return false;
}
