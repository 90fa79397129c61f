/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: the arena. */
#include <errno.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "tests/unit/test.h"

static bool is_zero(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const unsigned char *)p)[i])
			return false;
	return true;
}

TEST(memory_is_zeroed_aligned_and_apart)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	unsigned char *last = NULL;
	size_t last_size = 0;

	REQUIRE(a);
	for (size_t size = 1; size < 5000; size += 37) {
		unsigned char *p = lr_alloc(a, size);
		REQUIRE(p);
		CHECK((uintptr_t)p % _Alignof(max_align_t) == 0);
		CHECK(is_zero(p, size));
		memset(p, 0xaa, size);
		if (last)
			CHECK(p >= last + last_size || p + size <= last);
		last = p;
		last_size = size;
	}
}

TEST(blocks_larger_than_a_chunk)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();

	char *small = lr_alloc(a, 100);
	char *big = lr_alloc(a, 1u << 20);
	char *after = lr_alloc(a, 100);
	REQUIRE(small && big && after);
	CHECK(is_zero(big, 1u << 20));
	memset(big, 1, 1u << 20);
	CHECK(is_zero(small, 100) && is_zero(after, 100));
}

TEST(sizes_that_overflow_are_refused)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();

	CHECK(!lr_alloc(a, SIZE_MAX));
	CHECK(!lr_alloc(a, SIZE_MAX / 2 + 1));
	CHECK(!lr_alloc_n(a, SIZE_MAX / 4, 8));
	CHECK(!lr_alloc_n(a, 8, SIZE_MAX / 4));
	CHECK(lr_alloc(a, 16) != NULL); /* still usable */
	CHECK(lr_alloc_n(a, 0, 16) != NULL);
	CHECK(lr_alloc(a, 0) != NULL);
}

TEST(strings)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();

	CHECK_STR(lr_strdup(a, "hello"), "hello");
	CHECK_STR(lr_strdup(a, ""), "");
	CHECK_STR(lr_strndup(a, "hello", 3), "hel");
	CHECK_STR(lr_strndup(a, "hello", 99), "hello");
	CHECK_STR(lr_strf(a, "%s-%d", "x", 7), "x-7");
	CHECK_STR(lr_strf(a, "%s", ""), "");
	char *big = lr_strf(a, "%0100000d", 1);
	REQUIRE(big);
	CHECK_INT(strlen(big), 100000);
}

TEST(strings_one_after_the_other)
{
	struct lr_arena *a = lr_arena_new();

	CHECK_STR(lr_concat(a, "one", "", "/", "two", NULL), "one/two");
	CHECK_STR(lr_concat(a, "", NULL), "");
	lr_arena_free(a);
}

/* Formatted into the end of a chunk: what did not fit there leaves it zeroed. */
TEST(a_string_that_does_not_fit_leaves_no_trace)
{
	for (size_t left = 1; left < 200; left += 7) {
		struct lr_arena *a = lr_arena_new();
		const size_t chunk = 32u << 10;

		CHECK(lr_alloc(a, chunk - left) != NULL);
		CHECK_STR(lr_strf(a, "%0100d", 7) + 98, "07");
		const unsigned char *p = lr_alloc(a, 150);
		for (size_t i = 0; i < 150; i++)
			CHECK_INT(p[i], 0);
		lr_arena_free(a);
	}
}

TEST(a_growing_array_keeps_its_elements)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	uint32_t *v = NULL;
	size_t n = 0;

	for (; n < 10000; n++) {
		v = lr_grow(a, v, n, sizeof *v);
		REQUIRE(v);
		v[n] = (uint32_t)(n * 7);
	}
	for (size_t i = 0; i < n; i++)
		if (v[i] != i * 7) {
			CHECK_INT(v[i], i * 7);
			break;
		}
	CHECK(!lr_grow(a, v, SIZE_MAX / 4 + 1, 8));
}

TEST(one_slot_is_always_free_behind_a_grown_array)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	char **v = NULL;

	/* Filled by the pattern of the header, then a terminator in the slot behind. The sanitizer
	 * does not see inside an arena, so neighbours are watched. */
	for (size_t n = 0; n < 70; n++) {
		v = lr_grow(a, v, n, sizeof *v);
		REQUIRE(v);
		char *guard = lr_alloc(a, 16);
		v[n] = guard;
		CHECK(is_zero(guard, 16));
	}
}

TEST(free_is_null_safe_and_keeps_errno)
{
	errno = ENOTTY;
	lr_arena_free(NULL);
	struct lr_arena *a = lr_arena_new();
	lr_alloc(a, 1u << 22);
	errno = ENOTTY;
	lr_arena_free(a);
	CHECK_INT(errno, ENOTTY);
}

/* What lr_arena_new gives when there is no memory: its users need no check of their own. */
TEST(no_arena_has_no_memory)
{
	int v = 0;

	lr_arena_free(NULL);
	errno = 0;
	CHECK(!lr_alloc(NULL, 1));
	CHECK_INT(errno, ENOMEM);
	CHECK(!lr_alloc_n(NULL, 2, 8));
	CHECK(!lr_strdup(NULL, "x"));
	CHECK(!lr_strndup(NULL, "x", 1));
	CHECK(!lr_concat(NULL, "x", "y", NULL));
	CHECK(!lr_strf(NULL, "%d", 1));
	CHECK(!lr_grow(NULL, NULL, 0, sizeof(v)));
	CHECK(!lr_grow(NULL, &v, 4, sizeof(v)));
}
