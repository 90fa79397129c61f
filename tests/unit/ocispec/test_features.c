/* SPDX-License-Identifier: Apache-2.0 */
/* The features structure: its bytes, and that they decode to the same. */
#include "libocispec/ocispec.h"

#include <errno.h>

#include "tests/unit/test.h"

#define LIST(...)                                                                                  \
	{                                                                                          \
		(const char *[]){__VA_ARGS__, NULL},                                               \
			sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)                     \
	}

static const char full[] =
	"{\"ociVersionMin\":\"1.0.0\",\"ociVersionMax\":\"1.3.0\",\"hooks\":[\"prestart\","
	"\"poststop\"],"
	"\"mountOptions\":[\"ro\"],\"linux\":{\"namespaces\":[\"cgroup\",\"time\"],"
	"\"capabilities\":[\"CAP_BPF\"],"
	"\"cgroup\":{\"v1\":true,\"v2\":true,\"systemd\":false,\"systemdUser\":false,\"rdma\":true}"
	","
	"\"seccomp\":{\"enabled\":true,\"actions\":[\"SCMP_ACT_LOG\"],\"operators\":[\"SCMP_CMP_"
	"EQ\"],"
	"\"archs\":[\"SCMP_ARCH_X86\"],\"knownFlags\":[\"A\",\"B\"],\"supportedFlags\":[\"A\"]},"
	"\"apparmor\":{\"enabled\":true},\"selinux\":{\"enabled\":false},"
	"\"intelRdt\":{\"enabled\":true,\"schemata\":true,\"monitoring\":true},"
	"\"memoryPolicy\":{\"modes\":[\"MPOL_BIND\"],\"flags\":[\"MPOL_F_NUMA_BALANCING\"]},"
	"\"mountExtensions\":{\"idmap\":{\"enabled\":true}},\"netDevices\":{\"enabled\":true}},"
	"\"annotations\":{\"org.lean.version\":\"1\"},"
	"\"potentiallyUnsafeConfigAnnotations\":[\"org.systemd.property.\"]}";

TEST(encode)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_pair pairs[] = {{"org.lean.version", "1"}};
	struct oci_features f = {
		.oci_version_min = "1.0.0",
		.oci_version_max = "1.3.0",
		.hooks = LIST("prestart", "poststop"),
		.mount_options = LIST("ro"),
		.linux_ = {.namespaces = LIST("cgroup", "time"),
			   .capabilities = LIST("CAP_BPF"),
			   .cgroup = {.v1 = true, .v2 = true, .rdma = true},
			   .seccomp = {.enabled = true,
				       .actions = LIST("SCMP_ACT_LOG"),
				       .operators = LIST("SCMP_CMP_EQ"),
				       .archs = LIST("SCMP_ARCH_X86"),
				       .known_flags = LIST("A", "B"),
				       .supported_flags = LIST("A")},
			   .apparmor_enabled = true,
			   .intel_rdt = {true, true, true},
			   .memory_policy = {LIST("MPOL_BIND"), LIST("MPOL_F_NUMA_BALANCING")},
			   .idmap_enabled = true,
			   .net_devices_enabled = true},
		.annotations = {pairs, 1},
		.potentially_unsafe_config_annotations = LIST("org.systemd.property."),
	};

	CHECK_STR(oci_features_encode(&f, false, a, NULL), full);
	CHECK_HAS(oci_features_encode(&f, true, a, NULL),
		  "\n    \"mountExtensions\": {\n      \"idmap\": {\n        \"enabled\": true\n");
}

TEST(unset_booleans_are_written)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	struct oci_features f = {.oci_version_min = "1.0.0"};

	CHECK_STR(
		oci_features_encode(&f, false, a, NULL),
		"{\"ociVersionMin\":\"1.0.0\",\"linux\":{\"cgroup\":{\"v1\":false,\"v2\":false,"
		"\"systemd\":false,\"systemdUser\":false,\"rdma\":false},\"seccomp\":{\"enabled\":"
		"false},\"apparmor\":{\"enabled\":false},\"selinux\":{\"enabled\":false},"
		"\"intelRdt\":{\"enabled\":false,\"schemata\":false,\"monitoring\":false},"
		"\"mountExtensions\":{\"idmap\":{\"enabled\":false}},\"netDevices\":{\"enabled\":"
		"false}}}");
}

TEST(round_trip)
{
	LR_CLEANUP_ARENA struct lr_arena *a = lr_arena_new();
	const struct oci_features *f;
	struct lr_err err = {0};

	REQUIRE(oci_features_decode(full, strlen(full), a, &f, &err) == 0);
	CHECK(f->linux_.idmap_enabled && f->linux_.net_devices_enabled);
	CHECK(f->linux_.apparmor_enabled && !f->linux_.selinux_enabled);
	CHECK_STR(f->linux_.memory_policy.modes.v[0], "MPOL_BIND");
	CHECK_STR(oci_features_encode(f, false, a, NULL), full);
	CHECK_INT(oci_features_decode("{\"linux\":{\"apparmor\":1}}", 24, a, &f, &err), -EINVAL);
	CHECK_STR(err.path, "linux.apparmor");
}
