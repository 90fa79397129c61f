/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: plans are pure, so v1, v2 and hybrid are tested here whatever this host has. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libocispec/ocispec.h"
#include "src/base/fd.h"
#include "src/cgroup/internal.h"
#include "tests/unit/deny.h"
#include "tests/unit/test.h"

static struct lr_arena *arena;
static struct lr_err err;
static struct lr_cgroup_plan *plan;

static struct lr_cgroup_hierarchy v1_list[] = {
	{"cpu,cpuacct", "/cg/cpu,cpuacct", "/own/a"},
	{"cpuset", "/cg/cpuset", "/own/a"},
	{"memory", "/cg/memory", "/"},
	{"devices", "/cg/devices", "/"},
	{"blkio", "/cg/blkio", "/"},
	{"pids", "/cg/pids", "/"},
	{"freezer", "/cg/freezer", "/"},
	{"hugetlb", "/cg/hugetlb", "/"},
	{"net_cls,net_prio", "/cg/net", "/"},
	{"rdma", "/cg/rdma", "/"},
	{"name=systemd", "/cg/systemd", "/"},
	{"", "/cg/unified", "/u/v"},
};
static struct lr_cgroup_hierarchy v2_list[] = {{"", "/cg", "/user.slice/me.scope"}};
static struct lr_cgroup_hierarchy poor_list[] = {{"cpu", "/cg/cpu", "/"}};

static struct lr_cgroup_layout v1 = {LR_CGROUP_V1, v1_list, 11};
static struct lr_cgroup_layout hybrid = {LR_CGROUP_HYBRID, v1_list, 12};
static struct lr_cgroup_layout v2 = {LR_CGROUP_V2, v2_list, 1};
static struct lr_cgroup_layout poor = {LR_CGROUP_V1, poor_list, 1};
static struct lr_cgroup_layout none = {LR_CGROUP_NONE, NULL, 0};

static int plan_with(struct lr_cgroup_layout *l, const char *path, const char *json,
		     struct lr_cgroup_opts opts)
{
	const struct oci_resources *res = NULL;

	lr_arena_free(arena);
	arena = lr_arena_new();
	memset(&err, 0, sizeof(err));
	plan = NULL;
	if (json && oci_resources_decode(json, strlen(json), arena, &res, &err) < 0) {
		printf("# bad test input: %s at %s\n", err.msg, err.path);
		return -1000;
	}
	return lr_cgroup_plan(path, res, l, &opts, arena, &plan, &err);
}

static int plan_json(struct lr_cgroup_layout *l, const char *json)
{
	return plan_with(l, "/docker/c1", json, (struct lr_cgroup_opts){.id = "c1"});
}

/* All writes but the device rules, as "file=value;..." with the common directory cut off. */
static const char *writes(void)
{
	static char text[4096];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; plan && i < plan->n_writes; i++) {
		const struct lr_cgroup_write *w = &plan->writes[i];

		if (w->flags & LR_W_DEVICE)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s=%s;",
				      strrchr(w->file, '/') + 1, w->value);
	}
	return text;
}

static const struct lr_cgroup_write *find(const char *file)
{
	for (size_t i = 0; plan && i < plan->n_writes; i++)
		if (lr_has_suffix(plan->writes[i].file, file))
			return &plan->writes[i];
	return NULL;
}

/* ---- paths ---------------------------------------------------------------------------------- */

TEST(absolute_paths_start_at_the_mount_point)
{
	CHECK_INT(plan_json(&hybrid, NULL), 0);
	REQUIRE(plan);
	CHECK_INT(plan->ref.n, 12);
	CHECK_STR(plan->ref.v[0].path, "/cg/cpu,cpuacct/docker/c1");
	CHECK_STR(plan->ref.v[11].path, "/cg/unified/docker/c1");
	CHECK_STR(plan->ref.v[11].hierarchy, "");
	CHECK_STR(plan->ref.relative, "/docker/c1");
	CHECK_INT(lr_cgroup_ref_check(&plan->ref, NULL), 0);
	CHECK_INT(plan_with(&v2, "//a/./b//c/", NULL, (struct lr_cgroup_opts){.id = "x"}), 0);
	CHECK_STR(plan->ref.v[0].path, "/cg/a/b/c");
}

TEST(relative_paths_start_at_our_own_cgroup)
{
	CHECK_INT(plan_with(&v1, "a/b", NULL, (struct lr_cgroup_opts){.id = "x"}), 0);
	CHECK_STR(plan->ref.v[0].path, "/cg/cpu,cpuacct/own/a/a/b");
	CHECK_STR(plan->ref.v[2].path, "/cg/memory/a/b");
	CHECK_STR(plan->ref.relative, "/a/b");
	/* v2: beside it, not below. */
	CHECK_INT(plan_with(&v2, "a", NULL, (struct lr_cgroup_opts){.id = "x"}), 0);
	CHECK_STR(plan->ref.v[0].path, "/cg/user.slice/a");
	/* no path: /<id>, for an unprivileged user near his own */
	CHECK_INT(plan_with(&v2, NULL, NULL, (struct lr_cgroup_opts){.id = "x"}), 0);
	CHECK_STR(plan->ref.v[0].path, "/cg/x");
	CHECK_INT(plan_with(&v2, "", NULL, (struct lr_cgroup_opts){.id = "x", .rootless = true}),
		  0);
	CHECK_STR(plan->ref.v[0].path, "/cg/user.slice/x");
}

TEST(paths_that_lead_elsewhere_are_refused)
{
	static const char *const bad[] = {"/a/../../b", "..", "a/..", "/", "///", "/./", "/a\nb"};

	for (size_t i = 0; i < LR_ARRAY_SIZE(bad); i++) {
		CHECK_INT(plan_with(&v2, bad[i], NULL, (struct lr_cgroup_opts){.id = "x"}),
			  -EINVAL);
		CHECK_STR(err.path, "linux.cgroupsPath");
	}
	CHECK_INT(plan_with(&v2, "/a..b/...", NULL, (struct lr_cgroup_opts){.id = "x"}), 0);
}

TEST(delegated_sub_cgroups)
{
	static const char *const bad[] = {"", "..", "a/../../b", "/a", "a\nb"};
	struct lr_cgroup_opts opts = {.id = "x", .delegate = "a/b"};

	CHECK_INT(plan_with(&v2, "/c", NULL, opts), 0);
	CHECK_STR(plan->delegate, "/cg/c/a/b");
	CHECK_STR(plan->ref.v[0].path, "/cg/c");
	/* v1 has no safe delegation, a hybrid's v2 no controllers. */
	CHECK_INT(plan_with(&v1, "/c", NULL, opts), 0);
	CHECK(!plan->delegate);
	CHECK_INT(plan_with(&hybrid, "/c", NULL, opts), 0);
	CHECK(!plan->delegate);
	for (size_t i = 0; i < LR_ARRAY_SIZE(bad); i++) {
		opts.delegate = bad[i];
		CHECK_INT(plan_with(&v2, "/c", NULL, opts), -EINVAL);
		CHECK_HAS(err.path, "run.oci.delegate-cgroup");
	}
}

TEST(a_very_long_path_is_refused)
{
	char path[8000];

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	CHECK_INT(plan_with(&v1, path, NULL, (struct lr_cgroup_opts){.id = "x"}), -ENAMETOOLONG);
	CHECK_STR(err.path, "linux.cgroupsPath");
}

TEST(refs_from_a_damaged_record_are_refused)
{
	struct lr_cgroup_place v = {"memory", "/cg/memory/docker/c1"};
	struct lr_cgroup_ref ref = {
		.mode = LR_CGROUP_V1, .n = 1, .v = &v, .relative = "/docker/c1"};

	CHECK_INT(lr_cgroup_ref_check(&ref, &err), 0);
	ref.relative = "/";
	CHECK_INT(lr_cgroup_ref_check(&ref, &err), -EINVAL);
	ref.relative = NULL;
	CHECK_INT(lr_cgroup_ref_check(&ref, &err), -EINVAL);
	ref.relative = "/docker/c2";
	CHECK_INT(lr_cgroup_ref_check(&ref, &err), -EINVAL);
	ref.relative = "/docker/c1";
	v.path = "/docker/c1";
	CHECK_INT(lr_cgroup_ref_check(&ref, &err), -EINVAL);
	v.path = "/cg/../docker/c1";
	CHECK_INT(lr_cgroup_ref_check(&ref, &err), -EINVAL);
	v.path = "cg/docker/c1";
	CHECK_INT(lr_cgroup_ref_check(&ref, &err), -EINVAL);
}

/* ---- limits --------------------------------------------------------------------------------- */

TEST(v1_memory)
{
	CHECK_INT(plan_json(&v1, "{\"memory\":{\"limit\":1000,\"swap\":2000,\"reservation\":500,"
				 "\"swappiness\":10,\"disableOOMKiller\":true,\"kernelTCP\":7}}"),
		  0);
	CHECK_STR(writes(), "memory.limit_in_bytes=1000;memory.memsw.limit_in_bytes=2000;"
			    "memory.soft_limit_in_bytes=500;memory.kmem.tcp.limit_in_bytes=7;"
			    "memory.swappiness=10;memory.oom_control=1;");
	CHECK_STR(find("memory.limit_in_bytes")->file,
		  "/cg/memory/docker/c1/memory.limit_in_bytes");
	CHECK(plan->targets[2].wanted && !plan->targets[0].wanted);
	/* none on memory means none on both */
	CHECK_INT(plan_json(&v1, "{\"memory\":{\"limit\":-1}}"), 0);
	CHECK_STR(writes(), "memory.limit_in_bytes=-1;memory.memsw.limit_in_bytes=-1;");
	CHECK(!plan->targets[2].wanted);
	/* what Docker sends for "nothing" */
	CHECK_INT(plan_json(&v1,
			    "{\"memory\":{\"limit\":0,\"swap\":0,\"reservation\":0,"
			    "\"swappiness\":18446744073709551615,\"disableOOMKiller\":false}}"),
		  0);
	CHECK_STR(writes(), "");
	CHECK_INT(plan_json(&v1, "{\"memory\":{\"swappiness\":101}}"), -EINVAL);
	CHECK_STR(err.path, "linux.resources.memory.swappiness");
}

TEST(v2_memory)
{
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"limit\":1000,\"swap\":3000,\"reservation\":500}}"),
		  0);
	CHECK_STR(writes(), "memory.swap.max=2000;memory.max=1000;memory.low=500;");
	CHECK_INT(plan->need, 1 << LR_CTRL_MEMORY);
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"limit\":1000,\"swap\":1000}}"), 0);
	CHECK_STR(writes(), "memory.swap.max=0;memory.max=1000;");
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"limit\":1000,\"swap\":-1}}"), 0);
	CHECK_STR(writes(), "memory.swap.max=max;memory.max=1000;");
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"limit\":-1}}"), 0);
	CHECK_STR(writes(), "memory.swap.max=max;memory.max=max;");
	CHECK_INT(plan->need, 0);
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"limit\":1000}}"), 0);
	CHECK_STR(writes(), "memory.max=1000;");
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"limit\":1000,\"swap\":999}}"), -EINVAL);
	CHECK_STR(err.path, "linux.resources.memory.swap");
	CHECK_HAS(err.msg, "below the memory limit 1000");
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"swap\":999}}"), -EINVAL);
	CHECK_HAS(err.msg, "needs a memory limit");
	/* no counterparts: ignored, as the specification allows */
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"kernel\":5,\"kernelTCP\":5,\"swappiness\":5,"
				 "\"disableOOMKiller\":true,\"useHierarchy\":false}}"),
		  0);
	CHECK_STR(writes(), "");
}

TEST(v1_cpu)
{
	CHECK_INT(plan_json(&v1, "{\"cpu\":{\"shares\":512,\"quota\":5000,\"period\":10000,"
				 "\"burst\":100,\"idle\":1,\"realtimePeriod\":7,"
				 "\"realtimeRuntime\":6,\"cpus\":\"0-1\",\"mems\":\"0\"}}"),
		  0);
	CHECK_STR(writes(), "cpu.shares=512;cpu.cfs_period_us=10000;cpu.cfs_quota_us=5000;"
			    "cpu.cfs_burst_us=100;cpu.idle=1;cpu.rt_period_us=7;"
			    "cpu.rt_runtime_us=6;cpuset.cpus=0-1;cpuset.mems=0;");
	CHECK(plan->targets[1].cpuset && plan->targets[1].has_cpus && plan->targets[1].has_mems);
	CHECK_INT(plan_json(&v1, "{\"cpu\":{\"shares\":0,\"quota\":0,\"period\":0,\"burst\":0,"
				 "\"idle\":0,\"cpus\":\"\",\"mems\":\"\",\"realtimeRuntime\":0}}"),
		  0);
	CHECK_STR(writes(), "");
	CHECK(!plan->targets[1].has_cpus);
}

TEST(v2_cpu)
{
	CHECK_INT(plan_json(&v2, "{\"cpu\":{\"shares\":1024,\"quota\":5000,\"period\":10000,"
				 "\"burst\":100,\"idle\":1,\"cpus\":\"0\",\"mems\":\"0\"}}"),
		  0);
	CHECK_STR(writes(), "cpu.weight=39;cpu.max=5000 10000;cpu.max.burst=100;cpu.idle=1;"
			    "cpuset.cpus=0;cpuset.mems=0;");
	CHECK_INT(plan->need, 1 << LR_CTRL_CPU | 1 << LR_CTRL_CPUSET);
	CHECK_INT(plan_json(&v2, "{\"cpu\":{\"quota\":-1,\"period\":10000}}"), 0);
	CHECK_STR(writes(), "cpu.max=max 10000;");
	CHECK_INT(plan_json(&v2, "{\"cpu\":{\"quota\":5000}}"), 0);
	CHECK_STR(writes(), "cpu.max=5000;");
	CHECK_INT(plan_json(&v2, "{\"cpu\":{\"period\":5000}}"), 0);
	CHECK_STR(writes(), "cpu.max=max 5000;");
	CHECK_INT(plan_json(&v2, "{\"cpu\":{\"realtimeRuntime\":5000}}"), -EINVAL);
	CHECK_STR(err.path, "linux.resources.cpu.realtimeRuntime");
}

TEST(weights)
{
	CHECK_INT(lr_cgroup_weight_of_shares(0), 1);
	CHECK_INT(lr_cgroup_weight_of_shares(2), 1);
	CHECK_INT(lr_cgroup_weight_of_shares(1024), 39);
	CHECK_INT(lr_cgroup_weight_of_shares(262144), 10000);
	CHECK_INT(lr_cgroup_weight_of_shares(UINT64_MAX), 10000);
	CHECK_INT(lr_cgroup_io_weight(10), 1);
	CHECK_INT(lr_cgroup_io_weight(1000), 10000);
}

static const char blkio[] =
	"{\"blockIO\":{\"weight\":500,\"weightDevice\":[{\"major\":8,\"minor\":0,\"weight\":10}],"
	"\"throttleReadBpsDevice\":[{\"major\":8,\"minor\":0,\"rate\":600}],"
	"\"throttleWriteBpsDevice\":[{\"major\":8,\"minor\":16,\"rate\":0}],"
	"\"throttleReadIOPSDevice\":[{\"major\":8,\"minor\":0,\"rate\":3}],"
	"\"throttleWriteIOPSDevice\":[{\"major\":8,\"minor\":0,\"rate\":4}]}}";

TEST(v1_block_io)
{
	CHECK_INT(plan_json(&v1, blkio), 0);
	CHECK_STR(writes(), "blkio.weight=500;blkio.weight_device=8:0 10;"
			    "blkio.throttle.read_bps_device=8:0 600;"
			    "blkio.throttle.write_bps_device=8:16 0;"
			    "blkio.throttle.read_iops_device=8:0 3;"
			    "blkio.throttle.write_iops_device=8:0 4;");
	CHECK_STR(find("blkio.weight")->alt_file, "/cg/blkio/docker/c1/blkio.bfq.weight");
	CHECK_STR(find("read_bps_device")->where,
		  "linux.resources.blockIO.throttleReadBpsDevice[0]");
	CHECK_INT(plan_json(&v1, "{\"blockIO\":{\"leafWeight\":500,\"weightDevice\":[{\"major\":1,"
				 "\"minor\":2,\"leafWeight\":10}]}}"),
		  0);
	CHECK_STR(writes(), "blkio.leaf_weight=500;blkio.leaf_weight_device=1:2 10;");
	CHECK_INT(plan_json(&v1, "{\"blockIO\":{\"weight\":5}}"), -EINVAL);
	CHECK_STR(err.path, "linux.resources.blockIO.weight");
	CHECK_INT(plan_json(&v1, "{\"blockIO\":{\"weight\":0}}"), 0);
	CHECK_STR(writes(), "");
}

TEST(v2_block_io)
{
	CHECK_INT(plan_json(&v2, blkio), 0);
	CHECK_STR(writes(), "io.bfq.weight=500;io.bfq.weight=8:0 10;io.max=8:0 rbps=600;"
			    "io.max=8:16 wbps=max;io.max=8:0 riops=3;io.max=8:0 wiops=4;");
	CHECK_STR(find("io.bfq.weight")->alt_file, "/cg/docker/c1/io.weight");
	CHECK_STR(find("io.bfq.weight")->alt_value, "4950");
	CHECK_INT(plan_json(&v2, "{\"blockIO\":{\"leafWeight\":500}}"), -EINVAL);
	CHECK_HAS(err.hint, "CFQ");
}

TEST(pids_zero_is_a_limit)
{
	CHECK_INT(plan_json(&v2, "{\"pids\":{\"limit\":0}}"), 0);
	CHECK_STR(writes(), "pids.max=0;");
	CHECK_INT(lr_cgroup_clone_fd(plan), LR_NOFD);
	CHECK_INT(plan_json(&v1, "{\"pids\":{\"limit\":-1}}"), 0);
	CHECK_STR(writes(), "pids.max=max;");
	CHECK_INT(plan_json(&v1, "{\"pids\":{\"limit\":27}}"), 0);
	CHECK_STR(writes(), "pids.max=27;");
	CHECK_INT(plan_json(&v1, "{\"pids\":{}}"), 0);
	CHECK_STR(writes(), "");
}

TEST(hugepages_rdma_network)
{
	static const char all[] =
		"{\"hugepageLimits\":[{\"pageSize\":\"2MB\",\"limit\":0},{\"pageSize\":\"1GB\","
		"\"limit\":9}],\"rdma\":{\"mlx5_1\":{\"hcaHandles\":3,\"hcaObjects\":4},"
		"\"rxe0\":{\"hcaObjects\":1}},\"network\":{\"classID\":1048577,"
		"\"priorities\":[{\"name\":\"eth0\",\"priority\":5}]}}";

	CHECK_INT(plan_json(&v1, all), 0);
	CHECK_STR(writes(),
		  "net_cls.classid=1048577;net_prio.ifpriomap=eth0 5;hugetlb.2MB.limit_in_bytes=0;"
		  "hugetlb.2MB.rsvd.limit_in_bytes=0;hugetlb.1GB.limit_in_bytes=9;"
		  "hugetlb.1GB.rsvd.limit_in_bytes=9;rdma.max=mlx5_1 hca_handle=3 hca_object=4;"
		  "rdma.max=rxe0 hca_object=1;");
	CHECK_INT(plan_json(&v2, all), 0);
	CHECK_STR(writes(), "hugetlb.2MB.max=0;hugetlb.2MB.rsvd.max=0;hugetlb.1GB.max=9;"
			    "hugetlb.1GB.rsvd.max=9;rdma.max=mlx5_1 hca_handle=3 hca_object=4;"
			    "rdma.max=rxe0 hca_object=1;");
	CHECK_INT(plan_json(&v1, "{\"hugepageLimits\":[{\"pageSize\":\"2MB/../x\",\"limit\":0}]}"),
		  -EINVAL);
	CHECK_STR(err.path, "linux.resources.hugepageLimits[0]");
	CHECK_INT(plan_json(&v1, "{\"hugepageLimits\":[{\"pageSize\":\"02MB\",\"limit\":0}]}"),
		  -EINVAL);
	CHECK_INT(plan_json(&v1, "{\"hugepageLimits\":[{\"pageSize\":\"2\",\"limit\":0}]}"),
		  -EINVAL);
}

TEST(unified)
{
	CHECK_INT(plan_json(&v2, "{\"memory\":{\"limit\":5},\"unified\":{\"memory.high\":\"7\","
				 "\"io.max\":\"8:0 rbps=1\\n 8:16 rbps=2\\n\","
				 "\"cgroup.max.depth\":\"3\"}}"),
		  0);
	CHECK_STR(writes(), "memory.max=5;memory.high=7;io.max=8:0 rbps=1;io.max=8:16 rbps=2;"
			    "cgroup.max.depth=3;");
	CHECK_INT(plan->need, 1 << LR_CTRL_MEMORY | 1 << LR_CTRL_BLKIO);
	CHECK_INT(plan_json(&v2, "{\"unified\":{\"cgroup.max.depth\":\"3\"}}"), 0);
	CHECK_INT(plan->need, 0);
	static const char *const bad[] = {"../memory.max", "a/b.c", "memory", "cgroup.procs", ""};
	for (size_t i = 0; i < LR_ARRAY_SIZE(bad); i++) {
		char json[100];

		snprintf(json, sizeof(json), "{\"unified\":{\"%s\":\"1\"}}", bad[i]);
		CHECK_INT(plan_json(&v2, json), -EINVAL);
		CHECK_HAS(err.path, "linux.resources.unified");
	}
	CHECK_INT(plan_json(&v1, "{\"unified\":{\"memory.high\":\"7\"}}"), -EINVAL);
	CHECK_HAS(err.msg, "needs cgroup v2");
	CHECK_INT(plan_json(&hybrid, "{\"unified\":{\"memory.high\":\"7\"}}"), -EINVAL);
}

/* ---- what is missing ------------------------------------------------------------------------- */

TEST(a_limit_without_its_controller_is_an_error)
{
	CHECK_INT(plan_json(&poor, "{\"memory\":{\"limit\":5}}"), -EOPNOTSUPP);
	CHECK_STR(err.path, "linux.resources.memory.limit");
	CHECK_HAS(err.msg, "\"memory\" is not mounted");
	CHECK_HAS(err.hint, "mount -t cgroup -o memory");
	CHECK_INT(plan_json(&poor, "{\"cpu\":{\"cpus\":\"0\"}}"), -EOPNOTSUPP);
	CHECK_HAS(err.msg, "cpuset");
	/* "none" is what a missing controller does anyway; the rest may be ignored */
	CHECK_INT(plan_json(&poor,
			    "{\"memory\":{\"limit\":-1,\"kernel\":4},\"pids\":{\"limit\":-1},"
			    "\"cpu\":{\"shares\":5}}"),
		  0);
	CHECK_STR(writes(), "cpu.shares=5;");
}

TEST(disabled_and_absent_cgroups)
{
	struct lr_cgroup_opts off = {.id = "x", .manager = LR_CGROUP_DISABLED};

	CHECK_INT(plan_with(&v2, "/a", "{\"devices\":[{\"allow\":false}]}", off), 0);
	CHECK_INT(plan->ref.n, 0);
	CHECK_INT(plan->ref.mode, LR_CGROUP_NONE);
	CHECK_INT(lr_cgroup_create(plan, &err), 0);
	CHECK_INT(lr_cgroup_join_self(plan, false, &err), 0);
	CHECK_INT(lr_cgroup_destroy(&plan->ref, true, &err), 0);
	CHECK_INT(lr_cgroup_is_frozen(&plan->ref), 0);
	CHECK_INT(lr_cgroup_freeze(&plan->ref, true, &err), -EOPNOTSUPP);
	CHECK_INT(plan_with(&v2, "/a", "{\"pids\":{\"limit\":5}}", off), -EOPNOTSUPP);
	CHECK_STR(err.path, "linux.resources.pids.limit");
	CHECK_INT(plan_json(&none, NULL), 0);
	CHECK_INT(plan_json(&none, "{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}]}"),
		  -EOPNOTSUPP);
	CHECK_STR(err.path, "linux.resources.devices");
	CHECK_INT(plan_json(&none, "{\"devices\":[{\"allow\":true}]}"), 0);
}

TEST(systemd_is_refused_with_a_way_out)
{
	struct lr_cgroup_opts o = {.id = "x", .manager = LR_CGROUP_SYSTEMD};

	CHECK_INT(plan_with(&v2, "system.slice:lr:x", NULL, o), -EOPNOTSUPP);
	CHECK_HAS(err.msg, "systemd");
	CHECK_HAS(err.hint, "cgroupfs");
}

TEST(device_rules_go_where_the_host_has_them)
{
	/* v1 and hybrid: files. v2: a program. */
	CHECK_INT(plan_json(&hybrid, "{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}]}"), 0);
	CHECK_INT(plan->n_insns, 0);
	REQUIRE(find("devices.deny"));
	CHECK_STR(find("devices.deny")->value, "a");
	CHECK_STR(find("devices.allow")->value, "c *:* m");
	/* one open for all of them */
	size_t opens = 0;
	for (size_t i = 1; i < plan->n_writes; i++)
		opens += plan->writes[i].file != plan->writes[i - 1].file;
	CHECK_INT(opens, 1);
	CHECK_INT(plan_json(&v2, "{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}]}"), 0);
	CHECK(plan->n_insns > 0);
	CHECK_STR(writes(), "");
	/* everything allowed: no program */
	CHECK_INT(plan_json(&v2, "{\"devices\":[{\"allow\":true,\"access\":\"rwm\"}]}"), 0);
	CHECK_INT(plan->n_insns, 0);
	/* nothing said: closed, but for the default devices */
	CHECK_INT(plan_json(&v2, NULL), 0);
	CHECK(plan->n_insns > 0);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* By one call where numbers lie side by side; but what has a number in between is another thread's. */
static void check_batch(void)
{
	struct lr_cgroup_batch batch = {0};
	int fds[40];

	for (size_t i = 0; i < LR_ARRAY_SIZE(fds); i++)
		fds[i] = fcntl(0, F_DUPFD_CLOEXEC, i ? fds[i - 1] + 1 : 100);
	for (size_t i = 0; i < 6; i++)
		if (i != 3)
			lr_cgroup_batch_add(&batch, fds[i]);
	CHECK(is_open(fds[0]) && is_open(fds[5]));
	lr_cgroup_batch_close(&batch);
	for (size_t i = 0; i < 6; i++)
		CHECK_INT(is_open(fds[i]), i == 3);
	/* More than it takes. */
	for (size_t i = 6; i < LR_ARRAY_SIZE(fds); i++)
		lr_cgroup_batch_add(&batch, fds[i]);
	lr_cgroup_batch_close(&batch);
	for (size_t i = 6; i < LR_ARRAY_SIZE(fds); i++)
		CHECK(!is_open(fds[i]));
	lr_close(fds[3]);
	lr_cgroup_batch_add(NULL, LR_NOFD);
}

TEST(what_is_closed_together_is_nobody_elses)
{
	check_batch();
	pid_t pid = fork();
	if (pid == 0) {
		deny(SYS_close_range, ENOSYS);
		check_batch();
		_exit(lr_failures ? 1 : 0);
	}
	int status = -1;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}
