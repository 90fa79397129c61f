/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: the areas of XSAVE. */
#include <cpuid.h>
#include <string.h>

#include "src/sys/vectors.h"
#include "tests/unit/test.h"

static uint64_t xcr0(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

TEST(all_that_is_switched_on_is_as_large_as_the_processor_says)
{
	uint32_t on, most, a, d;

	__cpuid_count(0xd, 0, a, on, most, d);
	CHECK_INT(lr_vectors_size(xcr0()), on);
}

TEST(no_component_has_no_room)
{
	CHECK_INT(lr_vectors_size(0), LR_VECTORS_HEAD);
	CHECK_INT(lr_vectors_size(3), LR_VECTORS_HEAD);
	/* AVX, in every processor at the same place. */
	if (xcr0() & 4)
		CHECK_INT(lr_vectors_size(7), 832);
}

TEST(what_is_in_use_is_in_the_header)
{
	uint8_t area[LR_VECTORS_HEAD] = {0};
	const uint64_t used = LR_VECTORS_TILES | 1;

	CHECK_INT(lr_vectors_used(area), 0);
	memcpy(area + 512, &used, sizeof(used));
	CHECK_INT(lr_vectors_used(area), used);
}

TEST(rights_are_where_the_processor_has_them)
{
	static uint8_t area[16384];
	uint32_t pkru = 1;

	if (!lr_vectors_has_keys()) {
		CHECK(!lr_vectors_pkru(area, sizeof(area), &pkru));
		SKIP("no protection keys");
	}
	const size_t size = lr_vectors_size(LR_VECTORS_KEYS);
	CHECK(!lr_vectors_pkru(area, size - 1, &pkru));
	CHECK(lr_vectors_pkru(area, size, &pkru));
	CHECK_INT(pkru, 0);
	lr_vectors_set_pkru(area, LR_VECTORS_NEW_PKRU);
	CHECK_INT(lr_vectors_used(area), LR_VECTORS_KEYS);
	CHECK(lr_vectors_pkru(area, size, &pkru));
	CHECK_INT(pkru, LR_VECTORS_NEW_PKRU);
}
