/* SPDX-License-Identifier: Apache-2.0 */
/* stats: what is read of cgroups, out of directories of plain files. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/str.h"
#include "src/stats/stats.h"
#include "src/sys/path.h"
#include "tests/unit/test.h"

static char dir[32];

static bool new_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/lr-test-stats-XXXXXX");
	return mkdtemp(dir) != NULL;
}

static void put(const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	FILE *f = fopen(path, "we");
	REQUIRE(f);
	fputs(text, f);
	fclose(f);
}

TEST(what_v2_counts)
{
	struct lr_cgroup_place place = {"", dir};
	struct lr_cgroup_ref ref = {.mode = LR_CGROUP_V2, .n = 1, .v = &place};
	struct lr_arena *arena = lr_arena_new();
	struct lr_err err = {0};
	struct lr_stats *s;

	REQUIRE(new_dir());
	ref.relative = strrchr(dir, '/');
	put("cpu.stat", "usage_usec 10\nuser_usec 7\nsystem_usec 3\nnr_periods 4\n"
			"nr_throttled 2\nthrottled_usec 5\n");
	put("cpu.pressure", "some avg10=1.25 avg60=0.50 avg300=12.00 total=77\n"
			    "full avg10=0.00 avg60=0.00 avg300=0.05 total=9\n");
	put("memory.stat", "anon 5\nfile 6\nkernel 7\n");
	put("memory.peak", "300\n");
	put("memory.swap.events", "high 0\nmax 1\nfail 4\n");
	put("memory.current", "100\n");
	put("memory.max", "max\n");
	put("memory.swap.current", "11\n");
	put("memory.swap.max", "12\n");
	put("memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\n");
	put("io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n252:16 "
		       "rbytes=9 wbytes=0 rios=1 wios=0\n");
	put("pids.current", "3\n");
	put("pids.max", "max\n");
	put("hugetlb.2MB.max", "max\n");
	put("hugetlb.2MB.rsvd.max", "max\n");
	put("hugetlb.2MB.current", "4096\n");
	put("hugetlb.2MB.events", "max 8\n");
	put("rdma.current", "mlx5_0 hca_handle=2 hca_object=3\n");
	put("rdma.max", "mlx5_0 hca_handle=max hca_object=9\n");
	REQUIRE(lr_stats_read(&ref, arena, &s, &err) == 0);
	CHECK_INT(s->cpu.total, 10000);
	CHECK_INT(s->cpu.user, 7000);
	CHECK_INT(s->cpu.kernel, 3000);
	CHECK_INT(s->cpu.periods, 4);
	CHECK_INT(s->cpu.throttled_periods, 2);
	CHECK_INT(s->cpu.throttled_time, 5000);
	CHECK(s->cpu.psi.present && s->cpu.psi.some.avg10 > 1.249 && s->cpu.psi.some.avg10 < 1.251);
	CHECK(s->cpu.psi.some.avg300 > 11.99 && s->cpu.psi.some.avg300 < 12.01);
	CHECK(s->cpu.psi.full.avg300 > 0.049 && s->cpu.psi.full.avg300 < 0.051);
	CHECK_INT(s->cpu.psi.some.total, 77);
	CHECK_INT(s->cpu.psi.full.total, 9);
	CHECK(!s->memory.psi.present);
	CHECK_INT(s->memory.usage.usage, 100);
	CHECK(s->memory.usage.limit == UINT64_MAX);
	CHECK_INT(s->memory.usage.failcnt, 3);
	CHECK_INT(s->memory.oom_kill, 2);
	CHECK_INT(s->memory.cache, 6);
	CHECK_INT(s->memory.usage.max, 300);
	CHECK_INT(s->memory.kernel.usage, 7);
	CHECK_INT(s->memory.swap.failcnt, 4);
	CHECK_INT(s->memory.swap.usage, 111);
	CHECK(s->memory.swap.limit == UINT64_MAX);
	CHECK_INT(s->memory.stat.n, 3);
	CHECK_STR(s->memory.stat.v[1].key, "file");
	CHECK_INT(s->blkio.io_service_bytes.n, 5);
	CHECK_INT(s->blkio.io_serviced.n, 5);
	CHECK_INT(s->blkio.io_service_bytes.v[3].major, 252);
	CHECK_INT(s->blkio.io_service_bytes.v[3].value, 9);
	CHECK_STR(s->blkio.io_service_bytes.v[1].op, "Write");
	CHECK(s->pids.present && s->pids.current == 3 && s->pids.limit == 0);
	CHECK_INT(s->hugetlb.n, 1);
	CHECK_STR(s->hugetlb.v[0].page_size, "2MB");
	CHECK_INT(s->hugetlb.v[0].usage, 4096);
	CHECK_INT(s->hugetlb.v[0].failcnt, 8);
	CHECK_INT(s->rdma_current.n, 1);
	CHECK_INT(s->rdma_current.v[0].hca_objects, 3);
	CHECK_INT(s->rdma_limit.v[0].hca_handles, UINT32_MAX);
	CHECK_STR(s->rdma_limit.v[0].device, "mlx5_0");
	CHECK_INT(lr_remove_tree(AT_FDCWD, dir), 0);
	lr_arena_free(arena);
}

TEST(what_v1_counts)
{
	static const char *const names[] = {"cpu,cpuacct", "cpuset", "memory", "blkio", "pids", ""};
	struct lr_cgroup_place places[LR_ARRAY_SIZE(names)];
	struct lr_cgroup_ref ref = {.mode = LR_CGROUP_V1, .n = LR_ARRAY_SIZE(names), .v = places};
	struct lr_arena *arena = lr_arena_new();
	struct lr_err err = {0};
	struct lr_stats *s;

	REQUIRE(new_dir());
	ref.relative = strrchr(dir, '/');
	for (size_t i = 0; i < LR_ARRAY_SIZE(names); i++)
		places[i] = (struct lr_cgroup_place){names[i], dir};
	put("cpuacct.usage", "100\n");
	put("cpuacct.stat", "user 3\nsystem 2\n");
	put("cpuacct.usage_percpu", "60 40 \n");
	put("cpuacct.usage_all", "cpu user system\n0 50 10\n1 30 11\n");
	put("cpu.stat", "nr_periods 4\nnr_throttled 2\nthrottled_time 5\n");
	put("cpu.pressure", "some avg10=1.25 avg60=0.50 avg300=12.00 total=77\n");
	put("cpuset.cpus", "0-3\n");
	put("cpuset.mems", "0\n");
	put("cpuset.sched_relax_domain_level", "-1\n");
	put("memory.stat", "cache 6\nrss 7\n");
	put("memory.usage_in_bytes", "10\n");
	put("memory.max_usage_in_bytes", "11\n");
	put("memory.limit_in_bytes", "12\n");
	put("memory.failcnt", "13\n");
	put("memory.memsw.usage_in_bytes", "20\n");
	put("memory.kmem.usage_in_bytes", "21\n");
	put("memory.kmem.tcp.usage_in_bytes", "22\n");
	put("memory.use_hierarchy", "1\n");
	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 9\n");
	/* The first form that counts anything. */
	put("blkio.bfq.io_service_bytes_recursive", "");
	put("blkio.throttle.io_service_bytes", "8:0 Read 1\n8:0 Write 2\n8:16 Total 3\nTotal 6\n");
	put("blkio.io_service_bytes", "9:0 Read 99\n");
	put("blkio.sectors", "8:0 123\n");
	put("pids.current", "3\n");
	put("pids.max", "44\n");
	REQUIRE(lr_stats_read(&ref, arena, &s, &err) == 0);
	CHECK_INT(s->cpu.total, 100);
	CHECK_INT(s->cpu.user, 30000000);
	CHECK_INT(s->cpu.kernel, 20000000);
	REQUIRE(s->cpu.percpu.n == 2 && s->cpu.percpu_user.n == 2 && s->cpu.percpu_kernel.n == 2);
	CHECK_INT(s->cpu.percpu.v[1], 40);
	CHECK_INT(s->cpu.percpu_user.v[1], 30);
	CHECK_INT(s->cpu.percpu_kernel.v[1], 11);
	CHECK_INT(s->cpu.periods, 4);
	CHECK_INT(s->cpu.throttled_periods, 2);
	CHECK_INT(s->cpu.throttled_time, 5);
	CHECK(s->cpu.psi.present && s->cpu.psi.some.total == 77); /* of a hybrid host's v2 tree */
	CHECK_STR(s->cpuset.cpus, "0-3");
	CHECK_INT(s->cpuset.sched_relax_domain_level, -1);
	CHECK_INT(s->memory.cache, 6);
	CHECK_INT(s->memory.usage.usage, 10);
	CHECK_INT(s->memory.usage.max, 11);
	CHECK_INT(s->memory.usage.limit, 12);
	CHECK_INT(s->memory.usage.failcnt, 13);
	CHECK_INT(s->memory.swap.usage, 20);
	CHECK_INT(s->memory.kernel.usage, 21);
	CHECK_INT(s->memory.kernel_tcp.usage, 22);
	CHECK_INT(s->memory.oom_kill, 9);
	CHECK(s->memory.use_hierarchy);
	REQUIRE(s->blkio.io_service_bytes.n == 3);
	CHECK_STR(s->blkio.io_service_bytes.v[1].op, "Write");
	CHECK_INT(s->blkio.io_service_bytes.v[1].value, 2);
	CHECK_INT(s->blkio.io_service_bytes.v[2].minor, 16);
	REQUIRE(s->blkio.sectors.n == 1);
	CHECK_STR(s->blkio.sectors.v[0].op, "");
	CHECK_INT(s->blkio.sectors.v[0].value, 123);
	CHECK_INT(s->pids.current, 3);
	CHECK_INT(s->pids.limit, 44);
	/* Since 4.7 there are nanoseconds, which win. */
	put("cpuacct.usage_user", "61\n");
	put("cpuacct.usage_sys", "39\n");
	REQUIRE(lr_stats_read(&ref, arena, &s, &err) == 0);
	CHECK_INT(s->cpu.user, 61);
	CHECK_INT(s->cpu.kernel, 39);
	CHECK_INT(lr_remove_tree(AT_FDCWD, dir), 0);
	lr_arena_free(arena);
}

TEST(out_of_memory_is_a_higher_count_and_an_empty_cgroup_the_end)
{
	struct lr_cgroup_place place = {"", dir};
	struct lr_cgroup_ref ref = {.mode = LR_CGROUP_V2, .n = 1, .v = &place};
	struct lr_err err = {0};
	struct lr_stats_oom oom;

	REQUIRE(new_dir());
	ref.relative = strrchr(dir, '/');
	put("memory.events", "oom 5\noom_kill 2\n");
	put("cgroup.events", "populated 1\nfrozen 0\n");
	REQUIRE(lr_stats_oom_open(&ref, &oom, &err) == 0);
	CHECK_INT(lr_stats_oom_read(&oom), 0);
	struct pollfd p = {.fd = oom.fd, .events = POLLIN};
	put("memory.events", "oom 6\noom_kill 5\n");
	CHECK_INT(poll(&p, 1, 1000), 1);
	CHECK_INT(lr_stats_oom_read(&oom), 3);
	CHECK_INT(lr_stats_oom_read(&oom), 0);
	CHECK_INT(poll(&p, 1, 0), 0);
	put("cgroup.events", "populated 0\nfrozen 0\n");
	CHECK_INT(poll(&p, 1, 1000), 1);
	CHECK_INT(lr_stats_oom_read(&oom), -ENODEV);
	lr_stats_oom_close(&oom);
	/* Before 4.20 victims are not counted. */
	put("memory.events", "oom 5\n");
	put("cgroup.events", "populated 1\nfrozen 0\n");
	REQUIRE(lr_stats_oom_open(&ref, &oom, &err) == 0);
	put("memory.events", "oom 6\n");
	CHECK_INT(lr_stats_oom_read(&oom), 1);
	CHECK_INT(lr_remove_tree(AT_FDCWD, dir), 0);
	CHECK_INT(lr_stats_oom_read(&oom), -ENODEV);
	lr_stats_oom_close(&oom);
}

/* A cgroup in a cgroup. */
static bool new_nested(char below[40], struct lr_cgroup_ref *ref)
{
	if (!new_dir())
		return false;
	snprintf(below, 40, "%s/its", dir);
	if (mkdir(below, 0755) < 0)
		return false;
	ref->relative = strrchr(below, '/');
	put("cgroup.procs", "");
	put("its/cgroup.procs", "");
	return true;
}

/* Swap is the host's, and none of it is allowed. */
TEST(memory_that_is_left)
{
	char below[40];
	struct lr_cgroup_place place = {"", below};
	struct lr_cgroup_ref ref = {.mode = LR_CGROUP_V2, .n = 1, .v = &place};
	struct lr_arena *arena = lr_arena_new();
	struct lr_err err = {0};
	struct lr_stats_left left;

	REQUIRE(new_nested(below, &ref));
	put("its/memory.max", "max\n");
	CHECK_INT(lr_stats_memory_left(&ref, arena, &left, &err), 0);
	CHECK(left.bytes == UINT64_MAX && !left.group);
	put("memory.max", "1000\n");
	put("memory.current", "900\n");
	put("memory.stat",
	    "anon 800\nfile 77\ninactive_file 5\nactive_file 6\nslab_reclaimable 7\n");
	put("memory.swap.max", "0\n");
	put("memory.oom.group", "1\n");
	CHECK_INT(lr_stats_memory_left(&ref, arena, &left, &err), 0);
	CHECK_INT(left.bytes, 111);
	CHECK_INT(left.limit, 1000);
	CHECK_INT(left.own, 800);
	CHECK(left.group);
	put("its/memory.max", "500\n");
	put("its/memory.current", "600\n");
	put("its/memory.swap.max", "0\n");
	CHECK_INT(lr_stats_memory_left(&ref, arena, &left, &err), 0);
	CHECK_INT(left.bytes, 0);
	CHECK_INT(left.limit, 500);
	CHECK(!left.group); /* that is of the one above, whose limit is not reached */
	put("its/memory.oom.group", "1\n");
	CHECK_INT(lr_stats_memory_left(&ref, arena, &left, &err), 0);
	CHECK(left.group);
	/* What can't be read is no limit that is not there. */
	put("its/memory.current", "");
	CHECK_INT(lr_stats_memory_left(&ref, arena, &left, &err), -EIO);
	CHECK_HAS(err.msg, "its/memory.current");
	place.hierarchy = "memory";
	ref.mode = LR_CGROUP_V1;
	put("memory.limit_in_bytes", "9223372036854771712\n");
	put("memory.memsw.limit_in_bytes", "9223372036854771712\n");
	CHECK_INT(lr_stats_memory_left(&ref, arena, &left, &err), 0);
	CHECK(left.bytes == UINT64_MAX);
	put("memory.limit_in_bytes", "1000\n");
	put("memory.usage_in_bytes", "400\n");
	put("memory.memsw.limit_in_bytes", "1000\n");
	put("memory.memsw.usage_in_bytes", "700\n");
	put("memory.stat",
	    "inactive_file 1\ntotal_rss 300\ntotal_inactive_file 20\ntotal_active_file 30\n");
	CHECK_INT(lr_stats_memory_left(&ref, arena, &left, &err), 0);
	CHECK_INT(left.bytes, 350);
	CHECK_INT(left.own, 300);
	CHECK_INT(left.limit, 1000);
	CHECK_INT(lr_remove_tree(AT_FDCWD, dir), 0);
	lr_arena_free(arena);
}

/* The files are open: a limit that is set later is seen, and what is not known is no "none". */
TEST(a_limit_that_is_not_there_yet)
{
	char below[40];
	struct lr_cgroup_place place = {"", below};
	struct lr_cgroup_ref ref = {.mode = LR_CGROUP_V2, .n = 1, .v = &place};
	struct lr_arena *arena = lr_arena_new();
	struct lr_err err = {0};
	struct lr_stats_limits limits = {0};

	CHECK(!lr_stats_has_no_limit(&limits));
	REQUIRE(new_nested(below, &ref));
	/* That above it has no such file, as the root of the tree. */
	put("its/memory.max", "max\n");
	CHECK_INT(lr_stats_limits_open(&ref, arena, &limits, &err), 0);
	CHECK(lr_stats_has_no_limit(&limits));
	put("its/memory.max", "4096\n");
	CHECK(!lr_stats_has_no_limit(&limits));
	put("its/memory.max", "");
	CHECK(!lr_stats_has_no_limit(&limits));
	lr_stats_limits_close(&limits);
	CHECK(!lr_stats_has_no_limit(&limits));
	place.hierarchy = "memory";
	ref.mode = LR_CGROUP_V1;
	put("its/memory.limit_in_bytes", "9223372036854771712\n");
	put("memory.limit_in_bytes", "9223372036854771712\n");
	CHECK_INT(lr_stats_limits_open(&ref, arena, &limits, &err), 0);
	CHECK(lr_stats_has_no_limit(&limits));
	put("memory.limit_in_bytes", "1000000\n");
	CHECK(!lr_stats_has_no_limit(&limits));
	lr_stats_limits_close(&limits);
	CHECK_INT(lr_remove_tree(AT_FDCWD, dir), 0);
	lr_arena_free(arena);
}
