/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: which of the host's cgroups criu is shown. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/checkpoint/internal.h"
#include "tests/unit/test.h"

/* The inode of a hierarchy's root is 1, and so is that of each mounted procfs. */
#define WHOLE "/proc"
#define PART  "/proc/self"

static int plan(struct lr_cgroup_hierarchy *h, size_t n, const char *text, struct lr_arena *a,
		struct lr_yard *y, struct lr_err *err)
{
	const struct lr_cgroup_layout l = {.hierarchies = h, .n = n};

	*y = (struct lr_yard){0};
	return lr_yard_plan(&l, lr_strdup(a, text), a, y, err);
}

static struct lr_cgroup_hierarchy hybrid[] = {
	{.name = "cpu,cpuacct", .mountpoint = WHOLE},
	{.name = "name=systemd", .mountpoint = WHOLE},
	{.name = "", .mountpoint = WHOLE},
	{.name = "memory", .mountpoint = PART},
};

TEST(each_hierarchy_is_in_it_as_criu_calls_it)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_yard y;

	CHECK_INT(plan(hybrid, 3, "3:cpuacct,cpu:/x\n1:name=systemd:/\n0::/a:b\n", a, &y, NULL), 0);
	REQUIRE(y.n == 3);
	CHECK_STR(y.v[0].name, "cpuacct,cpu");
	CHECK_STR(y.v[0].where, WHOLE);
	CHECK_STR(y.v[1].name, "systemd");
	CHECK_STR(y.v[2].name, "unified");
	CHECK_INT(plan(&hybrid[2], 1, "0::/\n", a, &y, NULL), 0);
	CHECK_INT(y.n, 1);
}

TEST(one_that_is_not_mounted_or_in_part_only_has_criu_mount_them_all)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_yard y;

	CHECK_INT(plan(hybrid, 4, "2:pids:/\n0::/\n", a, &y, NULL), 0);
	CHECK_INT(y.n, 0);
	CHECK_INT(plan(hybrid, 4, "0::/\n4:memory:/\n", a, &y, NULL), 0);
	CHECK_INT(y.n, 0);
	CHECK_INT(plan(hybrid, 1, "0::/\n", a, &y, NULL), 0);
	CHECK_INT(y.n, 0);
}

TEST(a_line_that_is_none_is_refused)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct lr_err err = {0};
	struct lr_yard y;

	CHECK_INT(plan(hybrid, 4, "0::/\n7:memory\n", a, &y, &err), -EPROTO);
	CHECK_HAS(err.msg, "/proc/PID/cgroup");
	CHECK_INT(y.n, 0);
}

TEST(none_has_no_links)
{
	const struct lr_yard none = {0};
	int fd = 7;

	CHECK_INT(lr_yard_link(&none, &fd, NULL), 0);
	CHECK_INT(fd, LR_NOFD);
	CHECK_INT(lr_yard_bind(&none, NULL, NULL), 0);
}
