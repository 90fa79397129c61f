/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "src/seed/stretch.h"
#include "tests/unit/seed/spans.h"
#include "tests/unit/test.h"

/* Whoever maps a source knows the spans alone. */
TEST(spans_come_first_with_their_numbers)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_seed_stretches p;
	struct lr_seed_spans spans;
	uint64_t next = 0;

	REQUIRE(lr_seed_spans(&spans_seed, a, &spans) == 0);
	REQUIRE(lr_seed_stretches(&spans_seed, a, &p) == 0);
	for (size_t i = 0; i < p.n; i++) {
		const struct lr_seed_stretch *x = &p.v[i];
		CHECK_INT(x->first, next);
		next += x->pages;
		for (uint64_t k = 0; k < x->pages && x->first + k < spans.pages; k++)
			CHECK_INT(lr_seed_span_page(&spans_seed, &spans, x->first + k),
				  x->at ? x->at + k * P : 0);
	}
	CHECK_INT(p.pages, next);
	CHECK_INT(p.zeros, 3);
}

TEST(then_comes_all_else_with_contents)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_seed_stretch want[] = {
		{0, 2, 10 * P, 100 * P, 0}, {2, 1, 12 * P, 0, 0},       {3, 1, 13 * P, 102 * P, 0},
		{4, 1, 50 * P, 0, 0},       {5, 1, 51 * P, 105 * P, 0}, {6, 1, 10 * P, 0, 1},
		{7, 1, 11 * P, 90 * P, 1},  {8, 1, 30 * P, 103 * P, 0}, {9, 1, 40 * P, 104 * P, 0},
		{10, 2, 60 * P, 106 * P, 0}};
	struct lr_seed_stretches p;

	REQUIRE(lr_seed_stretches(&spans_seed, a, &p) == 0);
	REQUIRE(p.n == sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < p.n; i++)
		CHECK(p.v[i].first == want[i].first && p.v[i].pages == want[i].pages &&
		      p.v[i].start == want[i].start && p.v[i].at == want[i].at &&
		      p.v[i].mm == want[i].mm);
}

TEST(a_place_of_the_file_is_found)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	/* The place, and the stretch: its number and where it begins. */
	const uint64_t want[][3] = {{1, 7, 90},    {90, 7, 90},    {91, 0, 100},  {100, 0, 100},
				    {101, 0, 100}, {102, 3, 102},  {103, 8, 103}, {104, 9, 104},
				    {105, 5, 105}, {106, 10, 106}, {107, 10, 106}};
	struct lr_seed_stretches p;

	REQUIRE(lr_seed_stretches(&spans_seed, a, &p) == 0);
	lr_seed_stretches_sort(&p);
	CHECK_INT(p.n, 7);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct lr_seed_stretch *x = lr_seed_stretch_at(&p, want[i][0] * P + 17);
		CHECK(x && x->first == want[i][1] && x->at == want[i][2] * P);
	}
	CHECK(!lr_seed_stretch_at(&p, 108 * P));
}

TEST(more_than_the_module_holds)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const uint64_t most = LR_SEED_SPAN_PAGES;
	struct lr_seed_vma v[] = {ANON(1, 2, 0), ANON(2, 1 + most, LR_SEED_GROWSDOWN)};
	const struct lr_seed_run runs[] = {{P, 1, P}, {2 * P, most, 2 * P}};
	const struct lr_seed_mm mm[] = {{.vmas = {0, 2}, .runs = {0, 2}}};
	const struct lr_seed s = {.table = {[LR_SEED_MM] = TABLE(mm),
					    [LR_SEED_VMA] = TABLE(v),
					    [LR_SEED_RUN] = TABLE(runs)}};
	struct lr_seed_stretches p = {.n = 77};

	CHECK_INT(lr_seed_stretches(&s, a, &p), -E2BIG);
	CHECK_INT(p.n, 77);
}

TEST(nothing_of_a_seed_without_memory)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct lr_seed s = {0};
	struct lr_seed_stretches p;

	CHECK_INT(lr_seed_stretches(&s, a, &p), 0);
	CHECK_INT(p.pages, 0);
	lr_seed_stretches_sort(&p);
	CHECK(!lr_seed_stretch_at(&p, P));
}
