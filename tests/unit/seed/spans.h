/* SPDX-License-Identifier: Apache-2.0 */
/* Two memories with mappings of every sort, as tables alone, for tests of what the module maps. */
#ifndef LR_SEED_SPANS_SAMPLE_H
#define LR_SEED_SPANS_SAMPLE_H

#include "src/seed/span.h"

#define P LR_SEED_PAGE
#define ANON(from, to, flag)                                                                       \
	{                                                                                          \
		.start = (from)*P, .end = (to)*P, .kind = LR_SEED_ANON, .flags = (flag)            \
	}

static const struct lr_seed_vma spans_vmas[] = {
	ANON(10, 14, 0), /* pages 0 to 3: one run of two, one of one */
	ANON(20, 24, 0), /* nothing in it */
	{.start = 30 * P, .end = 32 * P, .kind = LR_SEED_PRIVATE},
	ANON(40, 41, LR_SEED_WIPEONFORK),
	ANON(50, 52, LR_SEED_NORESERVE), /* 4 and 5 */
	ANON(60, 62, LR_SEED_GROWSDOWN),
	/* the other memory's */
	ANON(10, 12, 0), /* 6 and 7 */
};
static const struct lr_seed_run spans_runs[] = {
	{10 * P, 2, 100 * P}, {13 * P, 1, 102 * P}, {30 * P, 1, 103 * P}, {40 * P, 1, 104 * P},
	{51 * P, 1, 105 * P}, {60 * P, 2, 106 * P}, {11 * P, 1, 90 * P},
};
static const struct lr_seed_mm spans_mms[] = {
	{.vmas = {0, 6}, .runs = {0, 6}},
	{.vmas = {6, 1}, .runs = {6, 1}},
};

#define TABLE(v)                                                                                   \
	{                                                                                          \
		(const uint8_t *)(v), sizeof(v) / sizeof((v)[0]), sizeof((v)[0])                   \
	}
static const struct lr_seed spans_seed = {.table = {[LR_SEED_MM] = TABLE(spans_mms),
						    [LR_SEED_VMA] = TABLE(spans_vmas),
						    [LR_SEED_RUN] = TABLE(spans_runs)}};

/* Where each page is in the file of pages, in pages; 0: it is zeros. */
static const uint64_t spans_at[] = {100, 101, 0, 102, 0, 105, 0, 90};

#endif
