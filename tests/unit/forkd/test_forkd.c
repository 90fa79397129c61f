/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's parts that need no daemon. */
#include <errno.h>

#include "src/forkd/child.h"
#include "src/forkd/limits.h"
#include "src/forkd/main.h"
#include "src/seed/seed.h"
#include "tests/unit/test.h"

#define P LR_SEED_PAGE

/* ---- pieces ------------------------------------------------------------------------------- */

#define SPACE 64

/* What the seed has at each page; -1: nothing. */
struct model {
	int v[SPACE];
};

/* All of the memory, each address its own. */
static int pieces_all(struct pieces *p)
{
	int r = pieces_begin(p, 1);

	if (r == 0)
		pieces_add(p, 0, LR_SEED_TOP);
	return r;
}

static void model_begin(struct model *m)
{
	for (int i = 0; i < SPACE; i++)
		m->v[i] = i;
}

static void model_cut(struct model *m, int start, int n)
{
	for (int i = start; i < start + n && i < SPACE; i++)
		m->v[i] = -1;
}

static void model_move(struct model *m, int from, int to, int n)
{
	struct model old = *m;

	model_cut(m, from, n);
	for (int i = 0; i < n; i++)
		m->v[to + i] = old.v[from + i];
}

static int at(const struct pieces *p, int page)
{
	const struct piece *x = pieces_find(p, (uint64_t)page * P);

	if (!x || x->start > (uint64_t)page * P)
		return -1;
	return (int)((x->source + ((uint64_t)page * P - x->start)) / P);
}

static bool sorted(const struct pieces *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].start >= p->v[i].end || (i && p->v[i].start < p->v[i - 1].end))
			return false;
	return true;
}

TEST(pieces_are_what_a_plain_model_says)
{
	unsigned x = 12345;

	for (int round = 0; round < 200; round++) {
		struct pieces p, copy;
		struct model m;
		model_begin(&m);
		REQUIRE(pieces_all(&p) == 0);
		for (int step = 0; step < 20; step++) {
			x = x * 1103515245 + 12345;
			int n = (int)(x >> 8 & 7) + 1, from = (int)(x >> 12 & 31);
			int to = from >= 16 ? from - n : from + n; /* the kernel's never overlap */
			if (to < 0 || to + n > SPACE)
				to = 48;
			if (x >> 20 & 1) {
				CHECK_INT(pieces_cut(&p, (uint64_t)from * P,
						     (uint64_t)(from + n) * P),
					  0);
				model_cut(&m, from, n);
			} else {
				CHECK_INT(pieces_move(&p, (uint64_t)from * P, (uint64_t)to * P,
						      (uint64_t)n * P),
					  0);
				model_move(&m, from, to, n);
			}
		}
		REQUIRE(pieces_copy(&copy, &p) == 0);
		CHECK(sorted(&p));
		for (int i = 0; i < SPACE; i++) {
			CHECK_INT(at(&p, i), m.v[i]);
			CHECK_INT(at(&copy, i), m.v[i]);
		}
		pieces_free(&p);
		pieces_free(&copy);
	}
}

TEST(pieces_have_a_limit)
{
	struct pieces p;
	int r = 0;

	REQUIRE(pieces_all(&p) == 0);
	/* As many holes as it takes, in a list that is long already. */
	free(p.v);
	p.n = PIECES_MAX;
	p.v = calloc(p.n, sizeof(*p.v));
	REQUIRE(p.v);
	for (size_t i = 0; i < p.n; i++)
		p.v[i] = (struct piece){i * 4 * P, (i * 4 + 3) * P, 0};
	r = pieces_cut(&p, P, 2 * (uint64_t)P);
	CHECK_INT(r, -E2BIG);
	CHECK_INT(p.n, PIECES_MAX);
	CHECK(p.v[0].end == 3 * (uint64_t)P);
	pieces_free(&p);
}

/* ---- windows ------------------------------------------------------------------------------ */

static const struct lr_seed_run runs[] = {{16 * P, 32, P}, {64 * P, 2, 33 * P}};
static const struct lr_seed seed = {
	.table = {[LR_SEED_RUN] = {(const uint8_t *)runs, 2, sizeof(runs[0])}}};
static const struct lr_seed_mm mm = {.runs = {0, 2}};

TEST(a_window_lies_around_a_fault)
{
	struct pieces p;
	struct child_window w;

	REQUIRE(pieces_all(&p) == 0);
	CHECK(child_window(&seed, &mm, &p, 20 * P, 16, &w));
	CHECK(w.start == 16 * P && w.end == 32 * P && w.from == P);
	CHECK(child_window(&seed, &mm, &p, 20 * P, 1, &w));
	CHECK(w.start == 20 * P && w.end == 21 * P && w.from == 5 * P);
	CHECK(child_window(&seed, &mm, &p, 65 * P, 16, &w));
	CHECK(w.start == 64 * P && w.end == 66 * P && w.from == 33 * P);
	CHECK(!child_window(&seed, &mm, &p, 15 * P, 16, &w));
	CHECK(!child_window(&seed, &mm, &p, 48 * P, 16, &w));
	CHECK(!child_window(&seed, &mm, &p, 66 * P, 16, &w));
	/* Discarded: zeros, and not brought back by a fault beside it. */
	CHECK_INT(pieces_cut(&p, 18 * P, 19 * P), 0);
	CHECK(!child_window(&seed, &mm, &p, 18 * P, 16, &w));
	CHECK(child_window(&seed, &mm, &p, 20 * P, 16, &w));
	CHECK(w.start == 19 * P && w.end == 32 * P && w.from == 4 * P);
	/* Moved: at the new place, with the old contents. */
	CHECK_INT(pieces_move(&p, 24 * P, 104 * P, 8 * P), 0);
	CHECK(child_window(&seed, &mm, &p, 106 * P, 16, &w));
	CHECK(w.start == 104 * P && w.end == 112 * P && w.from == 9 * P);
	CHECK(!child_window(&seed, &mm, &p, 24 * P, 16, &w));
	pieces_free(&p);
}

TEST(a_prefetch_goes_through_all)
{
	struct pieces p;
	struct child_window w;
	uint64_t cursor = 0, pages = 0;

	REQUIRE(pieces_all(&p) == 0);
	CHECK_INT(pieces_move(&p, 24 * P, 104 * P, 8 * P), 0);
	CHECK_INT(pieces_cut(&p, 64 * P, 65 * P), 0);
	while (child_next(&seed, &mm, &p, cursor, 5, &w)) {
		CHECK(w.start >= cursor && w.end > w.start && w.end - w.start <= 5 * P);
		pages += (w.end - w.start) / P;
		cursor = w.end;
	}
	CHECK_INT(pages, 33);
	pieces_free(&p);
}

/* A mapped file that was written, between memory that comes later: it is read into place, so its run
 * is nobody's when other memory has grown there. */
TEST(only_memory_that_may_wait_is_filled)
{
	const struct lr_seed_vma v[] = {
		{.start = 16 * P, .end = 32 * P, .kind = LR_SEED_ANON},
		{.start = 32 * P, .end = 40 * P, .kind = LR_SEED_ANON},
		{.start = 40 * P, .end = 48 * P, .kind = LR_SEED_PRIVATE},
		{.start = 64 * P, .end = 66 * P, .kind = LR_SEED_ANON},
	};
	struct lr_seed s = seed;
	const struct lr_seed_mm with = {.runs = {0, 2}, .vmas = {0, 4}};
	struct pieces p;
	struct child_window w;
	uint64_t cursor = 0, pages = 0;

	s.table[LR_SEED_VMA] = (struct lr_seed_table){(const uint8_t *)v, 4, sizeof(v[0])};
	REQUIRE(child_pieces(&s, &with, &p) == 0);
	CHECK_INT(p.n, 2);
	CHECK(child_window(&s, &with, &p, 31 * P, 16, &w));
	CHECK(w.start == 16 * P && w.end == 32 * P && w.from == P);
	CHECK(!child_window(&s, &with, &p, 40 * P, 16, &w));
	CHECK(!child_window(&s, &with, &p, 15 * P, 16, &w));
	while (child_next(&s, &with, &p, cursor, 256, &w)) {
		pages += (w.end - w.start) / P;
		cursor = w.end;
	}
	CHECK_INT(pages, 24 + 2);
	pieces_free(&p);
}

/* ---- limits ------------------------------------------------------------------------------- */

TEST(peers_have_limits)
{
	static struct limits l;
	const uint8_t a[16] = {1}, b[16] = {2};

	l = (struct limits){.most = 3, .per_peer = 2, .rate = 1000};
	CHECK_INT(limits_enter(&l, a, 1000), 0);
	CHECK_INT(limits_enter(&l, a, 1000), 0);
	CHECK_INT(limits_enter(&l, a, 1000), -EBUSY);
	CHECK_INT(limits_enter(&l, b, 1000), 0);
	CHECK_INT(limits_enter(&l, b, 1000), -ENOSPC);
	limits_leave(&l, a, 1000);
	CHECK_INT(limits_enter(&l, b, 1000), 0);
	CHECK_INT(limits_wait(&l, a, 1000, 1000), 0);
	CHECK_INT(limits_wait(&l, a, 500, 1000), 501);
	CHECK_INT(limits_wait(&l, b, 1000, 1000), 0);
	CHECK_INT(limits_wait(&l, a, 0, 2000), 0);
}

TEST(attempts_are_counted_also_when_refused)
{
	static struct limits l;
	const uint8_t a[16] = {1};
	int let_in = 0;

	l = (struct limits){.most = 1000, .per_peer = 1000};
	for (int i = 0; i < 1000; i++) {
		let_in += limits_enter(&l, a, 5000) == 0;
		limits_leave(&l, a, 5000);
	}
	CHECK_INT(let_in, LIMITS_ATTEMPTS);
	CHECK_INT(limits_enter(&l, a, 5100), 0);
}

TEST(many_peers_take_no_more_memory)
{
	static struct limits l;
	uint8_t a[16] = {0};

	l = (struct limits){.most = 100000, .per_peer = 1};
	for (int i = 0; i < 2 * LIMITS_PEERS; i++) {
		memcpy(a, &i, sizeof(i));
		CHECK_INT(limits_enter(&l, a, 1 + i), i < LIMITS_PEERS ? 0 : -EBUSY);
	}
}

TEST(who_floods_gives_its_own_places_away)
{
	enum { N = 9 };
	uint8_t v[N][16] = {{0}};

	/* IPv4: one address is one network. */
	for (int i = 0; i < N; i++) {
		v[i][10] = v[i][11] = 0xff;
		v[i][15] = (uint8_t)(i == 3 || i == 5 ? 200 : i);
	}
	CHECK_INT(limits_victim(v, N), 3);
	CHECK_INT(limits_victim(v, 3), 0);
	/* IPv6: whoever has one address has all of its network. */
	memset(v, 0, sizeof(v));
	for (int i = 0; i < N; i++) {
		v[i][0] = 0x20;
		v[i][7] = (uint8_t)(i < 2 ? i : 9);
		v[i][15] = (uint8_t)i;
	}
	CHECK_INT(limits_victim(v, N), 2);
}

TEST(one_that_gave_its_place_makes_room_for_another)
{
	static struct limits l;
	const uint8_t a[16] = {1}, b[16] = {2};

	l = (struct limits){.most = 1, .per_peer = 2};
	CHECK_INT(limits_enter(&l, a, 1000), 0);
	CHECK_INT(limits_enter(&l, b, 1000), -ENOSPC);
	limits_leave(&l, a, 1000);
	limits_take(&l, b, 1000);
	CHECK_INT(limits_enter(&l, a, 1000), -ENOSPC);
	limits_leave(&l, b, 1000);
	CHECK_INT(limits_enter(&l, a, 1000), 0);
}

/* ---- values ------------------------------------------------------------------------------- */

TEST(durations_and_places)
{
	char host[LR_TICKET_HOST];
	uint16_t port;
	uint64_t ms;

	CHECK(duration_of("90", &ms) == 0 && ms == 90000);
	CHECK(duration_of("100ms", &ms) == 0 && ms == 100);
	CHECK(duration_of("2h", &ms) == 0 && ms == 7200000);
	CHECK_INT(duration_of("", &ms), -EINVAL);
	CHECK_INT(duration_of("s", &ms), -EINVAL);
	CHECK_INT(duration_of("-1s", &ms), -EINVAL);
	CHECK_INT(duration_of("1w", &ms), -EINVAL);
	CHECK_INT(duration_of("999999999999999d", &ms), -EINVAL);
	CHECK_INT(listen_place("[::1]:7", host, &port), 0);
	CHECK_STR(host, "::1");
	CHECK_INT(port, 7);
	CHECK_INT(listen_place("h:65535", host, &port), 0);
	CHECK_INT(listen_place("::1:7", host, &port), -EINVAL);
	CHECK_INT(listen_place("h:65536", host, &port), -EINVAL);
	CHECK_INT(listen_place("h:0", host, &port), -EINVAL);
	CHECK_INT(listen_place(":7", host, &port), -EINVAL);
	CHECK_INT(listen_place("h", host, &port), -EINVAL);
}
