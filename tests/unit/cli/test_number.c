/* SPDX-License-Identifier: Apache-2.0 */
#include "src/cli/number.h"

#include <errno.h>

#include "tests/unit/test.h"

static long long size(const char *text)
{
	int64_t n = -99;
	int r = lr_cli_parse_size(text, &n);
	return r < 0 ? r : n;
}

static long long duration(const char *text)
{
	int64_t n = -99;
	int r = lr_cli_parse_duration(text, &n);
	return r < 0 ? r : n;
}

TEST(sizes)
{
	CHECK_INT(size("4096"), 4096);
	CHECK_INT(size("0"), 0);
	CHECK_INT(size("512m"), 512 << 20);
	CHECK_INT(size("512 MB"), 512 << 20);
	CHECK_INT(size("2GiB"), 2LL << 30);
	CHECK_INT(size("1.5g"), 3LL << 29);
	CHECK_INT(size("7b"), 7);
	CHECK_INT(size("1p"), 1LL << 50);
}

TEST(sizes_refused)
{
	int64_t n;
	CHECK_INT(lr_cli_parse_size("-1", &n), 0);
	CHECK_INT(n, -1);
	CHECK_INT(size("-2"), -EINVAL);
	CHECK_INT(size(""), -EINVAL);
	CHECK_INT(size("m"), -EINVAL);
	CHECK_INT(size("1x"), -EINVAL);
	CHECK_INT(size("1mm"), -EINVAL);
	CHECK_INT(size("1bi"), -EINVAL);
	CHECK_INT(size("+1"), -EINVAL);
	CHECK_INT(size("9223372036854775807"), INT64_MAX);
	CHECK_INT(size("9223372036854775808"), -ERANGE);
	CHECK_INT(size("9000p"), -ERANGE);
}

TEST(durations)
{
	CHECK_INT(duration("5s"), 5000);
	CHECK_INT(duration("500ms"), 500);
	CHECK_INT(duration("1m30s"), 90000);
	CHECK_INT(duration("0.5s"), 500);
	CHECK_INT(duration("2h"), 7200000);
	CHECK_INT(duration("3"), 3000);
	CHECK_INT(duration("0s"), -EINVAL);
	CHECK_INT(duration(""), -EINVAL);
	CHECK_INT(duration("1s5"), -EINVAL);
	CHECK_INT(duration("5 s"), -EINVAL);
	CHECK_INT(duration("-1s"), -EINVAL);
	CHECK_INT(duration("9999999999999999h"), -ERANGE);
}

TEST(booleans)
{
	bool b = false;
	CHECK_INT(lr_cli_parse_bool("true", &b), 0);
	CHECK(b);
	CHECK_INT(lr_cli_parse_bool("F", &b), 0);
	CHECK(!b);
	CHECK_INT(lr_cli_parse_bool("yes", &b), -EINVAL);
	CHECK_INT(lr_cli_parse_bool("", &b), -EINVAL);
	CHECK_INT(lr_cli_parse_bool("1 t", &b), -EINVAL);
}
