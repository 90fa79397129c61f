/* SPDX-License-Identifier: Apache-2.0 */
/* forkd: see pieces.h. */
#include "src/forkd/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add(struct pieces *p, uint64_t start, uint64_t end, uint64_t source)
{
	if (start < end)
		p->v[p->n++] = (struct piece){start, end, source};
}

/* An empty list with room for all that one change of `of` can make of it. */
static int room(struct pieces *ret, const struct pieces *of)
{
	ret->n = 0;
	ret->v = calloc(3 * of->n + 4, sizeof(*ret->v));
	return ret->v ? 0 : -ENOMEM;
}

static int replace(struct pieces *p, struct pieces *by)
{
	if (by->n > PIECES_MAX && by->n > p->n) {
		free(by->v);
		return -E2BIG;
	}
	free(p->v);
	*p = *by;
	return 0;
}

int pieces_begin(struct pieces *p, size_t most)
{
	return room(p, &(struct pieces){.n = most});
}

void pieces_add(struct pieces *p, uint64_t start, uint64_t end)
{
	struct piece *last = p->n ? &p->v[p->n - 1] : NULL;

	if (last && last->end == start)
		last->end = end;
	else
		add(p, start, end, start);
}

int pieces_copy(struct pieces *to, const struct pieces *from)
{
	if (room(to, from) < 0)
		return -ENOMEM;
	if (from->n)
		memcpy(to->v, from->v, from->n * sizeof(*from->v));
	to->n = from->n;
	return 0;
}

void pieces_free(struct pieces *p)
{
	free(p->v);
	*p = (struct pieces){0};
}

/* What of a piece is outside of [start, end). */
static void add_rest(struct pieces *out, const struct piece *x, uint64_t start, uint64_t end)
{
	if (x->end <= start || x->start >= end) {
		add(out, x->start, x->end, x->source);
		return;
	}
	add(out, x->start, start, x->source);
	add(out, end, x->end, x->source + (end - x->start));
}

int pieces_cut(struct pieces *p, uint64_t start, uint64_t end)
{
	struct pieces out;

	if (start >= end)
		return 0;
	if (room(&out, p) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		add_rest(&out, &p->v[i], start, end);
	return replace(p, &out);
}

static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* All of p but source and destination, then the source's pieces, as they are in p, moved. */
int pieces_move(struct pieces *p, uint64_t from, uint64_t to, uint64_t length)
{
	struct pieces kept, out = {0};

	if (!length || from == to)
		return 0;
	int r = pieces_copy(&kept, p);
	if (r == 0)
		r = pieces_cut(&kept, from, from + length);
	if (r == 0)
		r = pieces_cut(&kept, to, to + length);
	if (r == 0)
		r = room(&out, &(struct pieces){.n = kept.n + p->n});
	if (r < 0) {
		pieces_free(&kept);
		return r;
	}
	for (size_t i = 0; i < kept.n; i++)
		add(&out, kept.v[i].start, kept.v[i].end, kept.v[i].source);
	for (size_t i = 0; i < p->n; i++) {
		const struct piece *x = &p->v[i];
		uint64_t start = x->start > from ? x->start : from;
		uint64_t end = x->end < from + length ? x->end : from + length;
		if (start < end)
			add(&out, start - from + to, end - from + to,
			    x->source + (start - x->start));
	}
	pieces_free(&kept);
	if (out.n)
		qsort(out.v, out.n, sizeof(*out.v), by_start);
	return replace(p, &out);
}

const struct piece *pieces_find(const struct pieces *p, uint64_t at)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (p->v[mid].end <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->n ? &p->v[low] : NULL;
}
