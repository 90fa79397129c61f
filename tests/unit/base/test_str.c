/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: strings and numbers. */
#include <errno.h>
#include <stdint.h>
#include <time.h>

#include "src/base/str.h"
#include "tests/unit/test.h"

TEST(prefixes_and_suffixes)
{
	CHECK(lr_has_prefix("abc", "ab") && lr_has_prefix("abc", "") && !lr_has_prefix("a", "ab"));
	CHECK(lr_has_suffix("abc", "bc") && lr_has_suffix("abc", "") && !lr_has_suffix("c", "bc"));
	CHECK(lr_has_suffix("bc", "bc") && !lr_has_suffix("bcd", "bc"));
}

TEST(numbers_are_whole_and_in_range)
{
	static const char *const bad[] = {"",    " 1",  "1 ",  "+1",  "-1", "0x1", "1e3",
					  "1.0", "--1", "1_0", "\t1", "a",  "1a"};
	uint64_t u = 7;
	uint32_t w = 7;
	int64_t i = 7;

	for (size_t k = 0; k < LR_ARRAY_SIZE(bad); k++) {
		CHECK_INT(lr_parse_u64(bad[k], &u), -EINVAL);
		CHECK_INT(lr_parse_u32(bad[k], &w), -EINVAL);
		if (!lr_streq(bad[k], "-1"))
			CHECK_INT(lr_parse_i64(bad[k], &i), -EINVAL);
	}
	CHECK_INT(lr_parse_i64("-", &i), -EINVAL);
	CHECK(u == 7 && w == 7 && i == 7); /* untouched on failure */

	CHECK(lr_parse_u64("0", &u) == 0 && u == 0);
	CHECK(lr_parse_u64("007", &u) == 0 && u == 7);
	CHECK(lr_parse_u64("18446744073709551615", &u) == 0 && u == UINT64_MAX);
	CHECK_INT(lr_parse_u64("18446744073709551616", &u), -ERANGE);
	CHECK_INT(lr_parse_u64("99999999999999999999999", &u), -ERANGE);
	CHECK(lr_parse_u32("4294967295", &w) == 0 && w == UINT32_MAX);
	CHECK_INT(lr_parse_u32("4294967296", &w), -ERANGE);
	CHECK(lr_parse_i64("-9223372036854775808", &i) == 0 && i == INT64_MIN);
	CHECK(lr_parse_i64("9223372036854775807", &i) == 0 && i == INT64_MAX);
	CHECK_INT(lr_parse_i64("9223372036854775808", &i), -ERANGE);
	CHECK_INT(lr_parse_i64("-9223372036854775809", &i), -ERANGE);
	CHECK(lr_parse_i64("-0", &i) == 0 && i == 0);
}

TEST(digits)
{
	char buf[LR_DIGITS];

	CHECK_STR(lr_digits(buf, 0), "0");
	CHECK_STR(lr_digits(buf, 1234567890), "1234567890");
	CHECK_STR(lr_digits(buf, UINT64_MAX), "18446744073709551615");
}

TEST(tables_are_searched_by_name_and_value)
{
	static const struct lr_name t[] = {{"a", 1}, {"b", 2}, {"bb", 3}, {"c", 2}, {"z", 9}};

	for (size_t n = 0; n <= LR_ARRAY_SIZE(t); n++)
		for (size_t k = 0; k < LR_ARRAY_SIZE(t); k++)
			CHECK(lr_name_find(t, n, t[k].name) == (k < n ? &t[k] : NULL));
	CHECK(!lr_name_find(t, 5, "") && !lr_name_find(t, 5, "ba") && !lr_name_find(t, 5, "zz"));
	CHECK_STR(lr_name_of(t, 5, 2), "b");
	CHECK(!lr_name_of(t, 5, 77));
}

TEST(paths_are_cleaned_by_text)
{
	static const char *const cases[][2] = {
		{"", "/"},
		{"/", "/"},
		{"//", "/"},
		{".", "/"},
		{"..", "/"},
		{"../../..", "/"},
		{"/..", "/"},
		{"a", "/a"},
		{"a/", "/a"},
		{"/a//b///c/", "/a/b/c"},
		{"/a/./b/.", "/a/b"},
		{"/a/../b", "/b"},
		{"/a/b/..", "/a"},
		{"/a/b/../..", "/"},
		{"/a/b/../../../../c", "/c"},
		{"/a/...", "/a/..."},
		{"/a/..b/.c", "/a/..b/.c"},
		{"./../a/.//./b/../c", "/a/c"},
	};
	char out[64];

	for (size_t i = 0; i < LR_ARRAY_SIZE(cases); i++) {
		memset(out, '#', sizeof out);
		lr_path_clean(cases[i][0], out);
		CHECK_STR(out, cases[i][1]);
		CHECK(out[strlen(cases[i][0]) + 2] == '#'); /* within what it was promised */
	}
}

TEST(words)
{
	CHECK(lr_has_word("cpu memory pids", "memory"));
	CHECK(lr_has_word("cpu memory pids\n", "pids"));
	CHECK(lr_has_word("cpu", "cpu"));
	CHECK(lr_has_word("  a\nb ", "b"));
	CHECK(!lr_has_word("cpuset", "cpu"));
	CHECK(!lr_has_word("cpu", "cpuset"));
	CHECK(!lr_has_word("", "cpu"));
	CHECK(!lr_has_word("xcpu", "cpu"));
}

TEST(utc_is_what_gmtime_says)
{
	char text[LR_UTC], want[LR_UTC];
	struct tm tm;

	/* Every day of 400 years, which is the calendar's period, at changing times of the day. */
	for (time_t t = 0; t < (time_t)146097 * 86400; t += 86399) {
		char *end = lr_utc(text, t);
		gmtime_r(&t, &tm);
		strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S", &tm);
		if (strcmp(text, want) != 0 || end != text + 19) {
			CHECK_STR(text, want);
			break;
		}
	}
}

TEST(below_a_directory)
{
	CHECK_STR(lr_path_below("/a/b", "/a"), "/b");
	CHECK_STR(lr_path_below("/a", "/a"), "");
	CHECK_STR(lr_path_below("/a/b", "/"), "/a/b");
	CHECK_STR(lr_path_below("r/x", "r"), "/x");
	CHECK(!lr_path_below("/ab", "/a"));
	CHECK(!lr_path_below("/", "/a"));
	CHECK(!lr_path_below("s/x", "r"));
}

TEST(escapes_of_mountinfo)
{
	static const char *const cases[][2] = {
		{"/plain", "/plain"}, {"/a\\040b\\134\\012", "/a b\\\n"},
		{"/\\04", "/\\04"},   {"/\\480", "/\\480"},
		{"\\", "\\"},
	};

	for (size_t i = 0; i < LR_ARRAY_SIZE(cases); i++) {
		char text[32];
		snprintf(text, sizeof(text), "%s", cases[i][0]);
		lr_path_unescape(text);
		CHECK_STR(text, cases[i][1]);
	}
}
