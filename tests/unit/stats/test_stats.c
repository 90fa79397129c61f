/* SPDX-License-Identifier: Apache-2.0 */
/* stats: what is read of cgroup v2, out of a directory of plain files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/stats/stats.h"
#include "src/sys/path.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/lr-test-stats-XXXXXX";

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

	REQUIRE(mkdtemp(dir));
	ref.relative = strrchr(dir, '/');
	put("cpu.stat", "usage_usec 10\nuser_usec 7\nsystem_usec 3\nnr_periods 4\n"
			"nr_throttled 2\nthrottled_usec 5\n");
	put("cpu.pressure", "some avg10=1.25 avg60=0.50 avg300=12.00 total=77\n"
			    "full avg10=0.00 avg60=0.00 avg300=0.05 total=9\n");
	put("memory.stat", "anon 5\nfile 6\nkernel 7\n");
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
