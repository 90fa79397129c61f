/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed: what the kernel module holds of a seed that it exports (docs/module.md), as one file. First
 * come the spans (span.h), with what is zeros in them, so that those who map them know no other
 * numbers; then all other private memory of processes that has contents.
 */
#ifndef LR_SEED_STRETCH_H
#define LR_SEED_STRETCH_H

#include "src/seed/span.h"

/* Pages that lie behind each other in memory, and in the file of pages. */
struct lr_seed_stretch {
	uint64_t first, pages; /* numbers */
	uint64_t start;        /* address */
	uint64_t at;           /* in the file of pages, in bytes; 0: they are zeros */
	uint32_t mm;
};

struct lr_seed_stretches {
	struct lr_seed_stretch *v;
	size_t n;
	uint64_t pages, zeros; /* zeros: of these */
};

/* In the order of their numbers. Memory is the arena's. -ENOMEM; -E2BIG: more pages than the module
 * takes. */
int lr_seed_stretches(const struct lr_seed *s, struct lr_arena *a, struct lr_seed_stretches *ret);

/* For lr_seed_stretch_at: those with contents, as they lie in the file of pages. */
void lr_seed_stretches_sort(struct lr_seed_stretches *p);
/* The one with this place of the file in it, or the next one behind it; NULL: there is none. */
const struct lr_seed_stretch *lr_seed_stretch_at(const struct lr_seed_stretches *p, uint64_t at);

#endif
