/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed: the memory of a seed that can come by the kernel module (docs/module.md), as one file: all
 * its mappings that have contents, one behind the other, as they come in the descriptor. So one
 * number says which page is meant, to the module, to the restorer and to lean-forkd.
 */
#ifndef LR_SEED_SPAN_H
#define LR_SEED_SPAN_H

#include "src/seed/seed.h"

/* What the module takes at most (LEAN_PAGES_MAX). */
#define LR_SEED_SPAN_PAGES ((UINT64_C(1) << 28) - 1)

/* One mapping. */
struct lr_seed_span {
	uint64_t first, pages; /* numbers */
	uint64_t start;        /* address */
	uint32_t mm;
};

struct lr_seed_spans {
	struct lr_seed_span *v;
	size_t n;
	uint64_t pages;
};

/* Whether the module can stand for a mapping of this kind. The kernel lets no mapping of a file grow
 * down, or be wiped in a fork. What it can't is read into place. */
static inline bool lr_seed_may_map(const struct lr_seed_vma *v)
{
	return lr_seed_may_wait(v) && !(v->flags & (LR_SEED_GROWSDOWN | LR_SEED_WIPEONFORK));
}

/* Memory is the arena's. -ENOMEM; -E2BIG: more pages than the module takes. */
int lr_seed_spans(const struct lr_seed *s, struct lr_arena *a, struct lr_seed_spans *ret);

/* The mapping that begins there; NULL: it is none of them. */
const struct lr_seed_span *lr_seed_span_at(const struct lr_seed_spans *p, uint32_t mm,
					   uint64_t start);

/* Where in the file of pages this page is; 0: nowhere, it is zeros. The page is below p->pages. */
uint64_t lr_seed_span_page(const struct lr_seed *s, const struct lr_seed_spans *p, uint64_t page);

#endif
