/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages the kernel module is given. */
#include <errno.h>

#include "src/forkd/feed.h"
#include "tests/unit/seed/spans.h"
#include "tests/unit/test.h"

struct plan {
	struct lr_arena *a;
	struct lr_seed_spans p;
	struct lr_wire_range v[LEAN_SEED_WANT_MAX];
	size_t n;
};

static int plan(struct plan *x, const struct lean_seed_want *w)
{
	return lr_seed_spans(&spans_seed, x->a, &x->p) < 0
		       ? -ENOMEM
		       : feed_plan(&spans_seed, &x->p, w, x->v, &x->n);
}

TEST(what_lies_together_is_asked_for_together)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct plan x = {.a = a};
	const struct lean_seed_want w = {.count = 6, .index = {0, 1, 3, 4, 5, 7}};

	REQUIRE(plan(&x, &w) == 0);
	REQUIRE(x.n == 3);
	CHECK(x.v[0].at == 100 * P && x.v[0].pages == 3);
	CHECK(x.v[1].at == 105 * P && x.v[1].pages == 1);
	CHECK(x.v[2].at == 90 * P && x.v[2].pages == 1);
}

TEST(zeros_are_not_asked_for)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct plan x = {.a = a, .n = 9};
	const struct lean_seed_want w = {.count = 3, .index = {2, 4, 6}};

	REQUIRE(plan(&x, &w) == 0);
	CHECK_INT(x.n, 0);
}

TEST(a_want_of_what_is_not_there)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct plan x = {.a = a};

	CHECK_INT(plan(&x, &(struct lean_seed_want){.count = 1, .index = {7}}), 0);
	CHECK_INT(plan(&x, &(struct lean_seed_want){.count = 1, .index = {8}}), -EPROTO);
	CHECK_INT(plan(&x, &(struct lean_seed_want){.count = 0}), -EPROTO);
	CHECK_INT(plan(&x, &(struct lean_seed_want){.count = LEAN_SEED_WANT_MAX + 1}), -EPROTO);
}

TEST(each_page_comes_to_its_place)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	static uint8_t came[5 * P], to[7 * P];
	const struct lean_seed_want w = {.count = 6, .index = {0, 2, 3, 5, 6, 7}};
	const uint8_t want[] = {1, 0, 2, 3, 0, 4, 0xee};
	struct plan x = {.a = a};

	REQUIRE(plan(&x, &w) == 0);
	for (size_t i = 0; i < 5; i++)
		memset(came + i * P, (int)i + 1, P);
	memset(to, 0xee, sizeof(to));
	feed_spread(&spans_seed, &x.p, &w, came, to);
	for (size_t i = 0; i < 7; i++) /* and nothing behind it */
		CHECK(to[i * P] == want[i] && to[i * P + P - 1] == want[i]);
}
