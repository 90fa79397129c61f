/* SPDX-License-Identifier: Apache-2.0 */
/* systemd: units: their names, places and properties. Pure; no systemd is asked. */
#include <stdio.h>
#include <string.h>

#include "src/base/str.h"
#include "src/systemd/systemd.h"
#include "tests/unit/test.h"

static struct lr_arena *arena;
static struct lr_err err;
static struct lr_systemd_unit unit;
static struct oci_pair pairs[4];
static struct oci_map annotations;
static struct lr_systemd_opts opts;

static void fresh(void)
{
	lr_arena_free(arena);
	arena = lr_arena_new();
	err = (struct lr_err){0};
	unit = (struct lr_systemd_unit){0};
	annotations = (struct oci_map){.v = pairs};
	opts = (struct lr_systemd_opts){.id = "c1", .v2 = true, .annotations = &annotations};
}

static void annotate(const char *key, const char *value)
{
	pairs[annotations.n++] = (struct oci_pair){key, value};
}

/* Where the unit of a cgroupsPath ends up; or which member is at fault. */
static const char *place_of(const char *cgroups_path)
{
	if (lr_systemd_unit_of(cgroups_path, &opts, arena, &unit, &err) < 0)
		return err.path;
	return lr_systemd_unit_path(&unit, arena);
}

TEST(the_name_makes_the_place)
{
	fresh();
	CHECK_STR(place_of("machine.slice:libpod:abc"), "/machine.slice/libpod-abc.scope");
	CHECK_STR(unit.name, "libpod-abc.scope");
	CHECK_STR(unit.slice, "machine.slice");
	CHECK_STR(place_of("kubepods-burstable-pod1_2.slice:cri-containerd:abc"),
		  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
		  "cri-containerd-abc.scope");
	CHECK_STR(place_of("-.slice:x:y"), "/x-y.scope");
	CHECK_STR(place_of("a.slice::y"), "/a.slice/y.scope");
	CHECK_STR(place_of("a.slice:x:y:z"), "/a.slice/x-y:z.scope");
	/* Ids may hold what names of units may not. */
	CHECK_STR(place_of("a.slice:x:y+1"), "/a.slice/x-y\\x2b1.scope");
}

TEST(defaults)
{
	fresh();
	CHECK_STR(place_of(":docker:abc"), "/system.slice/docker-abc.scope");
	CHECK_STR(place_of(NULL), "/system.slice/lean-runtime-c1.scope");
	CHECK_STR(place_of(""), "/system.slice/lean-runtime-c1.scope");
	opts.user = true;
	CHECK_STR(place_of(":libpod:abc"), "/user.slice/libpod-abc.scope");
}

TEST(a_slice_is_where_its_name_says)
{
	fresh();
	CHECK_STR(place_of("ignored.slice:x:a-b.slice"), "/a.slice/a-b.slice");
	CHECK(unit.is_slice);
	CHECK_STR(unit.slice, "a.slice");
	CHECK_STR(place_of("::a.slice"), "/a.slice");
	CHECK_STR(unit.slice, "-.slice");
}

TEST(what_is_no_unit_is_refused)
{
	static const char *const bad[] = {
		"/docker/c1",
		"c1",
		"a.slice:c1",
		"a.slice:x:",
		"a:x:y",
		"a--b.slice:x:y",
		"-a.slice:x:y",
		"a-.slice:x:y",
		".slice:x:y",
		"a.slice:x:y/z",
		"a/b.slice:x:y",
		"..slice:x:y",
		"a.slice:x:a--b.slice",
		"a.slice:x:-.slice",
	};
	char name[400];

	for (size_t i = 0; i < LR_ARRAY_SIZE(bad); i++) {
		fresh();
		CHECK_STR(place_of(bad[i]), "linux.cgroupsPath");
		CHECK_HAS(err.hint, "slice:prefix:name");
	}
	memset(name, 'x', sizeof(name));
	memcpy(name, "a.slice:x:", 10);
	name[sizeof(name) - 1] = '\0';
	CHECK_STR(place_of(name), "linux.cgroupsPath");
}

TEST(a_sub_cgroup)
{
	fresh();
	annotate("run.oci.systemd.subgroup", "container");
	CHECK_STR(place_of("a.slice:x:y"), "/a.slice/x-y.scope/container");
	CHECK_STR(unit.name, "x-y.scope");
	pairs[0].value = "";
	CHECK_STR(place_of("a.slice:x:y"), "/a.slice/x-y.scope");
	pairs[0].value = "../..";
	CHECK_STR(place_of("a.slice:x:y"), "annotations[\"run.oci.systemd.subgroup\"]");
}

/* ---- properties ----------------------------------------------------------------------------- */

static struct lr_systemd_limit writes[12];
static size_t n_writes;

static void write_to(const char *file, const char *value)
{
	writes[n_writes++] =
		(struct lr_systemd_limit){.file = file, .value = value, .where = "here"};
}

static const char *text_of(const struct lr_systemd_props *p)
{
	static char text[4096];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < p->n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s=%s;", p->v[i].name,
				      p->v[i].value);
	return text;
}

static const char *limits(bool v2)
{
	struct lr_systemd_props props = {0};

	if (lr_systemd_limits(writes, n_writes, v2, false, arena, &props, &err) < 0)
		return err.msg;
	n_writes = 0;
	return text_of(&props);
}

/* One write alone. */
static const char *limit(const char *file, const char *value)
{
	n_writes = 0;
	write_to(file, value);
	return limits(true);
}

TEST(v2_limits)
{
	fresh();
	CHECK_STR(limit("/cg/memory.max", "67108864"), "MemoryMax=uint64 67108864;");
	CHECK_STR(limit("/cg/memory.max", "max"), "MemoryMax=uint64 18446744073709551615;");
	CHECK_STR(limit("/cg/memory.high", "5M"), "MemoryHigh=uint64 5242880;");
	CHECK_STR(limit("/cg/memory.low", "1g"), "MemoryLow=uint64 1073741824;");
	CHECK_STR(limit("/cg/memory.min", "7"), "MemoryMin=uint64 7;");
	CHECK_STR(limit("/cg/memory.swap.max", "0"), "MemorySwapMax=uint64 0;");
	CHECK_STR(limit("/cg/pids.max", "12"), "TasksMax=uint64 12;");
	CHECK_STR(limit("/cg/pids.max", "0"), "TasksMax=uint64 1;");
	CHECK_STR(limit("/cg/cpu.weight", "39"), "CPUWeight=uint64 39;");
	CHECK_STR(limit("/cg/io.weight", "default 50"), "IOWeight=uint64 50;");
	/* Of single devices, and what it has no property for: nothing. */
	CHECK_STR(limit("/cg/io.weight", "8:0 50"), "");
	CHECK_STR(limit("/cg/io.max", "8:0 rbps=1"), "");
	CHECK_STR(limit("/cg/cpu.max.burst", "1"), "");
	CHECK_STR(limit("/cg/memory.max", "some"), "");
	write_to("/cg/memory.max", "1");
	write_to("/cg/memory.max", "2");
	CHECK_STR(limits(true), "MemoryMax=uint64 2;");
}

TEST(v2_quota)
{
	fresh();
	CHECK_STR(limit("/cg/cpu.max", "25000 100000"),
		  "CPUQuotaPerSecUSec=uint64 250000;CPUQuotaPeriodUSec=uint64 100000;");
	/* Whole percents, rounded up. */
	CHECK_STR(limit("/cg/cpu.max", "100 30000"),
		  "CPUQuotaPerSecUSec=uint64 10000;CPUQuotaPeriodUSec=uint64 30000;");
	CHECK_STR(limit("/cg/cpu.max", "max 50000"),
		  "CPUQuotaPerSecUSec=uint64 18446744073709551615;"
		  "CPUQuotaPeriodUSec=uint64 50000;");
	CHECK_STR(limit("/cg/cpu.max", "50000"), "CPUQuotaPerSecUSec=uint64 500000;");
	CHECK_STR(limit("/cg/cpu.max", "max"), "CPUQuotaPerSecUSec=uint64 18446744073709551615;");
}

TEST(lists_of_cpus)
{
	fresh();
	CHECK_STR(limit("/cg/cpuset.cpus", "0"), "AllowedCPUs=[byte 0x01];");
	CHECK_STR(limit("/cg/cpuset.cpus", "0-3,9"), "AllowedCPUs=[byte 0x0f, byte 0x02];");
	CHECK_STR(limit("/cg/cpuset.mems", "1"), "AllowedMemoryNodes=[byte 0x02];");
	CHECK_STR(limit("/cg/cpuset.cpus", "3-1"), "");
	CHECK_STR(limit("/cg/cpuset.cpus", "0-99999"), "");
	CHECK_STR(limit("/cg/cpuset.cpus", "x"), "");
}

TEST(v1_limits)
{
	fresh();
	write_to("/cg/memory/memory.limit_in_bytes", "67108864");
	write_to("/cg/memory/memory.memsw.limit_in_bytes", "-1");
	write_to("/cg/cpu/cpu.shares", "512");
	write_to("/cg/cpu/cpu.cfs_period_us", "50000");
	write_to("/cg/cpu/cpu.cfs_quota_us", "25000");
	write_to("/cg/pids/pids.max", "max");
	write_to("/cg/blkio/blkio.weight", "100");
	CHECK_STR(limits(false), "MemoryLimit=uint64 67108864;CPUShares=uint64 512;"
				 "CPUQuotaPeriodUSec=uint64 50000;"
				 "TasksMax=uint64 18446744073709551615;BlockIOWeight=uint64 100;"
				 "CPUQuotaPerSecUSec=uint64 500000;");
	write_to("/cg/cpu/cpu.cfs_quota_us", "-1");
	CHECK_STR(limits(false), "CPUQuotaPerSecUSec=uint64 18446744073709551615;");
}

TEST(v1_devices_survive_a_reload)
{
	fresh();
	write_to("/cg/devices/x/devices.deny", "a");
	write_to("/cg/devices/x/devices.allow", "c *:* m");
	write_to("/cg/devices/x/devices.allow", "c 1:3 rwm");
	write_to("/cg/devices/x/devices.allow", "b 8:0 r");
	write_to("/cg/devices/x/devices.allow", "c 136:* rw");
	CHECK_STR(limits(false), "DevicePolicy='strict';DeviceAllow=[('char-*', 'm'), "
				 "('/dev/char/1:3', 'rwm'), ('/dev/block/8:0', 'r'), "
				 "('char-136', 'rw')];");
	/* All but some is more than systemd can say; and on v2 it is left out of it. */
	write_to("/cg/devices/x/devices.allow", "a");
	write_to("/cg/devices/x/devices.deny", "b 8:0 r");
	CHECK_STR(limits(false), "");
	write_to("/cg/devices/x/devices.deny", "a");
	CHECK_STR(limits(true), "");
}

/* The whole list for a plan without limits. */
static const char *describe(bool v2)
{
	opts.v2 = v2;
	unit.props = (struct lr_systemd_props){0};
	if (lr_systemd_unit_describe(&unit, &opts, NULL, 0, arena, &err) < 0)
		return err.path;
	return text_of(&unit.props);
}

TEST(what_kind_of_unit)
{
	fresh();
	place_of("a.slice:x:y");
	CHECK_STR(describe(true),
		  "Description='container c1';DefaultDependencies=false;CPUAccounting=true;"
		  "MemoryAccounting=true;TasksAccounting=true;IOAccounting=true;Slice='a.slice';"
		  "Delegate=true;CollectMode='inactive-or-failed';");
	CHECK_HAS(describe(false), "BlockIOAccounting=true;");
	place_of("a\\x2db.slice:x:y");
	CHECK_HAS(describe(true), "Slice='a\\\\x2db.slice';");
	place_of("::a.slice");
	CHECK(!strstr(describe(true), "Slice="));
	CHECK(!strstr(describe(true), "Delegate="));
}

TEST(annotations_are_properties)
{
	fresh();
	place_of("a.slice:x:y");
	annotate("org.systemd.property.CollectMode", "'inactive'");
	annotate("org.systemd.property.TimeoutStopSec", "uint64 5");
	annotate("org.systemd.property.RuntimeMaxSec", "1.5");
	annotate("org.systemd.property.After", "['a.service']");
	CHECK_HAS(describe(true), "CollectMode='inactive';TimeoutStopUSec=uint64 5000000;"
				  "RuntimeMaxUSec=uint64 1500000;After=['a.service'];");
	pairs[1].value = "soon";
	CHECK_STR(describe(true), "annotations[\"org.systemd.property.TimeoutStopSec\"]");
	pairs[1] = (struct oci_pair){"org.systemd.property.after", "1"};
	CHECK_STR(describe(true), "annotations[\"org.systemd.property.after\"]");
	pairs[1] = (struct oci_pair){"org.systemd.property.After", "[x"};
	CHECK_STR(describe(true), "annotations[\"org.systemd.property.After\"]");
}
