/* SPDX-License-Identifier: Apache-2.0 */
/* limits: the list parser, against an independent reading of the same text. */
#include "tests/unit/test.h"

#include <errno.h>

#include "src/limits/limits.h"

static struct lr_arena *arena;

static int parse(const char *text, struct lr_limits_mask *m)
{
	struct lr_err err = {0};
	int r = lr_limits_parse_list(text, "CPU", arena, m, &err);

	if (r < 0) {
		CHECK_HAS(err.msg, text);
		CHECK_HAS(err.hint, "0-3,7");
	}
	return r;
}

/* "0,1,2" of a mask. */
static const char *show(const struct lr_limits_mask *m)
{
	static char out[4096];
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < m->bits; i++)
		if (lr_limits_mask_has(m, i))
			len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%zu",
						len ? "," : "", i);
	return out;
}

TEST(lists)
{
	static const char *const good[][2] = {
		{"0", "0"},
		{"0-3", "0,1,2,3"},
		{"0-3,7", "0,1,2,3,7"},
		{"7,0-1", "0,1,7"},
		{" 1 , 3-4 \n", "1,3,4"},
		{"0-2,1-3", "0,1,2,3"},
		{"63,64,65", "63,64,65"},
		{"5-5", "5"},
		{"0-10:2/4", "0,1,4,5,8,9"},
		{"1024-1025,8191", "1024,1025,8191"},
		{"007", "7"},
		{"65535", "65535"},
	};
	struct lr_limits_mask m;

	arena = lr_arena_new();
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		CHECK_INT(parse(good[i][0], &m), 0);
		CHECK_STR(show(&m), good[i][1]);
		CHECK(m.bits % (8 * sizeof(long)) == 0);
	}
	CHECK(!lr_limits_mask_has(&m, 65536));
	lr_arena_free(arena);
}

TEST(not_lists)
{
	static const char *const bad[] = {
		"",        " ",
		",",       "0,",
		",0",      "a",
		"0-",      "-1",
		"3-1",     "0--1",
		"0-1-2",   "0 1",
		"0x1",     "65536",
		"0-65536", "+1",
		"1;2",     "0-3:1",
		"0-3:0/1", "0-3:2/1",
		"0-3:1/0", "99999999999999999999",
		"0:1/2",   "1,2,z",
	};
	struct lr_limits_mask m = {0};

	arena = lr_arena_new();
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_INT(parse(bad[i], &m), -EINVAL);
	CHECK(!m.word);
	lr_arena_free(arena);
}
