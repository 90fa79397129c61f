/* SPDX-License-Identifier: Apache-2.0 */
#include "src/forkd/figures.h"
#include "tests/unit/test.h"

static const uint8_t id[LR_WIRE_ID] = {7};
static const struct figures nothing;

TEST(a_median_is_within_an_eighth)
{
	static const uint64_t ns[] = {1000, 50000, 9000, 7000, 1u << 30};
	struct figures *f = figures_begin(id, &nothing);
	struct lr_wire_child c;

	figures_tell(f, &c);
	CHECK_INT(c.v[LR_WIRE_MEDIAN], 0);
	for (size_t i = 0; i < 5; i++)
		figures_time(f, ns[i]);
	figures_tell(f, &c);
	CHECK_INT(c.v[LR_WIRE_TIMES], 5);
	CHECK_INT(c.v[LR_WIRE_SHORTEST], 1000);
	CHECK_INT(c.v[LR_WIRE_LONGEST], 1 << 30);
	CHECK(c.v[LR_WIRE_MEDIAN] >= 9000 - 9000 / 8 && c.v[LR_WIRE_MEDIAN] <= 9000 + 9000 / 8);
	CHECK(memcmp(c.id, id, sizeof(id)) == 0);
	figures_time(f, 0);
	figures_time(f, UINT64_MAX);
	figures_tell(f, &c);
	CHECK_INT(c.v[LR_WIRE_SHORTEST], 0);
	CHECK(c.v[LR_WIRE_LONGEST] == UINT64_MAX);
	figures_end(f, LR_WIRE_OVER);
}

TEST(one_time_is_its_own_median)
{
	for (uint64_t ns = 0; ns < 100000; ns = ns * 5 / 4 + 1) {
		struct figures *f = figures_begin(id, &nothing);
		struct lr_wire_child c;
		figures_time(f, ns);
		figures_tell(f, &c);
		CHECK_INT(c.v[LR_WIRE_MEDIAN], ns);
		figures_end(f, LR_WIRE_OVER);
	}
}

/* However many there were; and who is still there is never forgotten. */
TEST(those_that_are_over_are_few)
{
	struct figures brought = {0};
	struct lr_wire_msg m;
	bool found = false;
	uint32_t all;

	brought.v[LR_WIRE_BY_TCP] = 12345;
	struct figures *stays = figures_begin(id, &brought);
	for (int i = 0; i < 3 * FIGURES_OVER; i++)
		figures_end(figures_begin(id, &nothing), LR_WIRE_KILLED);
	all = figures_list(0, &m);
	CHECK_INT(all, FIGURES_OVER + 1);
	CHECK_INT(m.n, LR_WIRE_KIN);
	CHECK_INT(m.children[0].state, LR_WIRE_KILLED);
	for (uint32_t at = 0; at < all; at += (uint32_t)m.n) {
		figures_list(at, &m);
		for (size_t i = 0; i < m.n; i++)
			found = found || m.children[i].v[LR_WIRE_BY_TCP] == 12345;
	}
	CHECK(found);
	figures_list(all, &m);
	CHECK_INT(m.n, 0);
	figures_end(stays, LR_WIRE_OVER);
}
