/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "tests/unit/seed/spans.h"
#include "tests/unit/test.h"

TEST(all_memory_with_contents_is_numbered)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_spans p;

	REQUIRE(lr_seed_spans(&spans_seed, a, &p) == 0);
	CHECK_INT(p.n, 3);
	CHECK_INT(p.pages, 8);
	for (uint64_t i = 0; i < p.pages; i++)
		CHECK_INT(lr_seed_span_page(&spans_seed, &p, i), spans_at[i] * P);
}

TEST(a_mapping_has_its_place)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_seed_span *x;
	struct lr_seed_spans p;

	REQUIRE(lr_seed_spans(&spans_seed, a, &p) == 0);
	x = lr_seed_span_at(&p, 0, 10 * P);
	REQUIRE(x);
	CHECK_INT(x->first, 0);
	CHECK_INT(x->pages, 4);
	x = lr_seed_span_at(&p, 0, 50 * P);
	CHECK(x && x->first == 4 && x->pages == 2);
	x = lr_seed_span_at(&p, 1, 10 * P);
	CHECK(x && x->first == 6 && x->pages == 2);
	/* Nothing in it; a file's; wiped in a fork; grows down; nobody's; inside of one. */
	const uint64_t none[] = {20, 30, 40, 60, 70, 11, 0};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		CHECK(!lr_seed_span_at(&p, 0, none[i] * P));
	CHECK(!lr_seed_span_at(&p, 2, 10 * P));
}

TEST(more_than_the_module_takes)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const uint64_t most = LR_SEED_SPAN_PAGES;
	struct lr_seed_vma v[] = {ANON(1, 2, 0), ANON(2, 1 + most, 0)};
	const struct lr_seed_run runs[] = {{P, 1, P}, {2 * P, 1, 2 * P}};
	const struct lr_seed_mm mm[] = {{.vmas = {0, 2}, .runs = {0, 2}}};
	const struct lr_seed s = {.table = {[LR_SEED_MM] = TABLE(mm),
					    [LR_SEED_VMA] = TABLE(v),
					    [LR_SEED_RUN] = TABLE(runs)}};
	struct lr_seed_spans p = {.n = 77};

	CHECK_INT(lr_seed_spans(&s, a, &p), 0);
	CHECK_INT(p.pages, most);
	p.n = 77;
	v[1].end += P;
	CHECK_INT(lr_seed_spans(&s, a, &p), -E2BIG);
	CHECK_INT(p.n, 77);
}

TEST(nothing_to_wait_for)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_seed s = {0};
	struct lr_seed_spans p;

	CHECK_INT(lr_seed_spans(&s, a, &p), 0);
	CHECK_INT(p.pages, 0);
	CHECK(!lr_seed_span_at(&p, 0, P));
}
