/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "src/seed/here.h"
#include "tests/unit/test.h"

static struct lr_here page(uint32_t entered, uint32_t released)
{
	struct lr_here h = {.version = LR_HERE_VERSION, .entered = entered, .released = released};

	memcpy(h.magic, LR_HERE_MAGIC, sizeof(h.magic));
	return h;
}

TEST(a_call_has_its_seed_when_it_or_a_later_one_is_released)
{
	CHECK(!lr_here_has_seed(0, 1));
	CHECK(lr_here_has_seed(1, 1));
	CHECK(lr_here_has_seed(2, 1));
	CHECK(!lr_here_has_seed(1, 2));
	/* Beyond the last number comes the first. */
	CHECK(!lr_here_has_seed(UINT32_MAX, 0));
	CHECK(lr_here_has_seed(0, UINT32_MAX));
	CHECK(lr_here_has_seed(3, UINT32_MAX - 2));
}

TEST(in_a_child_nobody_waits_any_more)
{
	struct lr_here h = page(7, 4);

	lr_here_become_child(&h);
	CHECK_INT(h.generation, 1);
	for (uint32_t call = 5; call <= 7; call++)
		CHECK(lr_here_has_seed(h.released, call));
	CHECK(!lr_here_has_seed(h.released, 8));
	lr_here_become_child(&h);
	CHECK_INT(h.generation, 2);
}

TEST(what_is_no_such_page)
{
	struct lr_here h = page(0, 0);

	CHECK(lr_here_is_valid(&h));
	h.version++;
	CHECK(!lr_here_is_valid(&h));
	h = page(0, 0);
	h.magic[7] = 0;
	CHECK(!lr_here_is_valid(&h));
	memset(&h, 0, sizeof(h));
	CHECK(!lr_here_is_valid(&h));
}

TEST(it_fits_its_page)
{
	/* Programs of other versions have it as it is. */
	CHECK_INT(sizeof(struct lr_here), 32);
	CHECK_INT(offsetof(struct lr_here, waiting), 16);
	CHECK_INT(offsetof(struct lr_here, released), 24);
	CHECK(sizeof(struct lr_here) <= LR_HERE_SIZE);
}
