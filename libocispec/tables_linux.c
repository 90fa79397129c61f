/* SPDX-License-Identifier: Apache-2.0 */
/* libocispec: the objects of config-linux.md; see tables_config.c. */
#include "libocispec/tables.h"

#define FIELD(kind, json, member, ...) OCI_##kind(struct T, json, member, __VA_ARGS__)

static const struct oci_field namespace_fields[] = {
#define T oci_namespace
	FIELD(STR, "type", type, OCI_REQUIRED),
	FIELD(STR, "path", path, 0),
#undef T
};
const struct oci_type oci_namespace_type =
	OCI_TYPE("namespace", struct oci_namespace, namespace_fields);

static const struct oci_field time_offset_fields[] = {
#define T oci_time_offset
	FIELD(I64, "secs", secs, 0),
	FIELD(U32, "nanosecs", nanosecs, 0),
#undef T
};
static const struct oci_type time_offset_type =
	OCI_TYPE("timeOffset", struct oci_time_offset, time_offset_fields);

/* A map in Go, but with these two keys only. */
static const struct oci_field time_offsets_fields[] = {
#define T oci_time_offsets
	FIELD(OPT_OBJ, "boottime", boottime, &time_offset_type, 0),
	FIELD(OPT_OBJ, "monotonic", monotonic, &time_offset_type, 0),
#undef T
};
static const struct oci_type time_offsets_type =
	OCI_TYPE("timeOffsets", struct oci_time_offsets, time_offsets_fields);

static const struct oci_field device_fields[] = {
#define T oci_device
	FIELD(STR, "path", path, OCI_REQUIRED),
	FIELD(STR, "type", type, OCI_REQUIRED),
	FIELD(I64, "major", major, OCI_ALWAYS),
	FIELD(I64, "minor", minor, OCI_ALWAYS),
	FIELD(OPT_U32, "fileMode", file_mode, 0),
	FIELD(OPT_U32, "uid", uid, 0),
	FIELD(OPT_U32, "gid", gid, 0),
#undef T
};
const struct oci_type oci_device_type = OCI_TYPE("device", struct oci_device, device_fields);

static const struct oci_field net_device_fields[] = {
#define T oci_net_device
	FIELD(STR, "name", name, 0),
#undef T
};
const struct oci_type oci_net_device_type =
	OCI_TYPE_KEYED("netDevice", struct oci_net_device, host_name, net_device_fields);

/* ---- resources ------------------------------------------------------------------------- */

static const struct oci_field device_cgroup_fields[] = {
#define T oci_device_cgroup
	FIELD(BOOL, "allow", allow, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(STR, "type", type, 0),
	FIELD(OPT_I64, "major", major, 0),
	FIELD(OPT_I64, "minor", minor, 0),
	FIELD(STR, "access", access, 0),
#undef T
};
static const struct oci_type device_cgroup_type =
	OCI_TYPE("deviceCgroup", struct oci_device_cgroup, device_cgroup_fields);

static const struct oci_field memory_fields[] = {
#define T oci_memory
	FIELD(OPT_I64, "limit", limit, 0),
	FIELD(OPT_I64, "reservation", reservation, 0),
	FIELD(OPT_I64, "swap", swap, 0),
	FIELD(OPT_I64, "kernel", kernel, 0),
	FIELD(OPT_I64, "kernelTCP", kernel_tcp, 0),
	FIELD(OPT_U64, "swappiness", swappiness, 0),
	FIELD(OPT_BOOL, "disableOOMKiller", disable_oom_killer, 0),
	FIELD(OPT_BOOL, "useHierarchy", use_hierarchy, 0),
	FIELD(OPT_BOOL, "checkBeforeUpdate", check_before_update, 0),
#undef T
};
static const struct oci_type memory_type = OCI_TYPE("memory", struct oci_memory, memory_fields);

static const struct oci_field cpu_fields[] = {
#define T oci_cpu
	FIELD(OPT_U64, "shares", shares, 0),
	FIELD(OPT_I64, "quota", quota, 0),
	FIELD(OPT_U64, "burst", burst, 0),
	FIELD(OPT_U64, "period", period, 0),
	FIELD(OPT_I64, "realtimeRuntime", realtime_runtime, 0),
	FIELD(OPT_U64, "realtimePeriod", realtime_period, 0),
	FIELD(STR, "cpus", cpus, 0),
	FIELD(STR, "mems", mems, 0),
	FIELD(OPT_I64, "idle", idle, 0),
#undef T
};
static const struct oci_type cpu_type = OCI_TYPE("cpu", struct oci_cpu, cpu_fields);

static const struct oci_field weight_device_fields[] = {
#define T oci_weight_device
	FIELD(I64, "major", major, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(I64, "minor", minor, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(OPT_U16, "weight", weight, 0),
	FIELD(OPT_U16, "leafWeight", leaf_weight, 0),
#undef T
};
static const struct oci_type weight_device_type =
	OCI_TYPE("weightDevice", struct oci_weight_device, weight_device_fields);

static const struct oci_field throttle_device_fields[] = {
#define T oci_throttle_device
	FIELD(I64, "major", major, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(I64, "minor", minor, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(U64, "rate", rate, OCI_REQUIRED | OCI_ALWAYS),
#undef T
};
static const struct oci_type throttle_device_type =
	OCI_TYPE("throttleDevice", struct oci_throttle_device, throttle_device_fields);

static const struct oci_field block_io_fields[] = {
#define T oci_block_io
	FIELD(OPT_U16, "weight", weight, 0),
	FIELD(OPT_U16, "leafWeight", leaf_weight, 0),
	FIELD(LIST, "weightDevice", weight_device, &weight_device_type, 0),
	FIELD(LIST, "throttleReadBpsDevice", throttle_read_bps_device, &throttle_device_type, 0),
	FIELD(LIST, "throttleWriteBpsDevice", throttle_write_bps_device, &throttle_device_type, 0),
	FIELD(LIST, "throttleReadIOPSDevice", throttle_read_iops_device, &throttle_device_type, 0),
	FIELD(LIST, "throttleWriteIOPSDevice", throttle_write_iops_device, &throttle_device_type,
	      0),
#undef T
};
static const struct oci_type block_io_type =
	OCI_TYPE("blockIO", struct oci_block_io, block_io_fields);

static const struct oci_field hugepage_limit_fields[] = {
#define T oci_hugepage_limit
	FIELD(STR, "pageSize", page_size, OCI_REQUIRED),
	FIELD(U64, "limit", limit, OCI_REQUIRED | OCI_ALWAYS),
#undef T
};
static const struct oci_type hugepage_limit_type =
	OCI_TYPE("hugepageLimit", struct oci_hugepage_limit, hugepage_limit_fields);

static const struct oci_field interface_priority_fields[] = {
#define T oci_interface_priority
	FIELD(STR, "name", name, OCI_REQUIRED),
	FIELD(U32, "priority", priority, OCI_REQUIRED | OCI_ALWAYS),
#undef T
};
static const struct oci_type interface_priority_type =
	OCI_TYPE("interfacePriority", struct oci_interface_priority, interface_priority_fields);

static const struct oci_field network_fields[] = {
#define T oci_network
	FIELD(OPT_U32, "classID", class_id, 0),
	FIELD(LIST, "priorities", priorities, &interface_priority_type, 0),
#undef T
};
static const struct oci_type network_type = OCI_TYPE("network", struct oci_network, network_fields);

static const struct oci_field pids_fields[] = {
#define T oci_pids
	FIELD(OPT_I64, "limit", limit, 0),
#undef T
};
static const struct oci_type pids_type = OCI_TYPE("pids", struct oci_pids, pids_fields);

static const struct oci_field rdma_fields[] = {
#define T oci_rdma
	FIELD(OPT_U32, "hcaHandles", hca_handles, 0),
	FIELD(OPT_U32, "hcaObjects", hca_objects, 0),
#undef T
};
static const struct oci_type rdma_type =
	OCI_TYPE_KEYED("rdma", struct oci_rdma, device, rdma_fields);

static const struct oci_field resources_fields[] = {
#define T oci_resources
	FIELD(LIST, "devices", devices, &device_cgroup_type, 0),
	FIELD(OPT_OBJ, "memory", memory, &memory_type, 0),
	FIELD(OPT_OBJ, "cpu", cpu, &cpu_type, 0),
	FIELD(OPT_OBJ, "pids", pids, &pids_type, 0),
	FIELD(OPT_OBJ, "blockIO", block_io, &block_io_type, 0),
	FIELD(LIST, "hugepageLimits", hugepage_limits, &hugepage_limit_type, 0),
	FIELD(OPT_OBJ, "network", network, &network_type, 0),
	FIELD(DICT, "rdma", rdma, &rdma_type, 0),
	FIELD(MAP, "unified", unified, 0),
#undef T
};
const struct oci_type oci_resources_type =
	OCI_TYPE("resources", struct oci_resources, resources_fields);

/* ---- the rest of "linux" --------------------------------------------------------------- */

/* 1.3 took enableCMT and enableMBM out again; like other unknown ones they are ignored. */
static const struct oci_field intel_rdt_fields[] = {
#define T oci_intel_rdt
	FIELD(STR, "closID", clos_id, 0),
	FIELD(STRV, "schemata", schemata, 0),
	FIELD(STR, "l3CacheSchema", l3_cache_schema, 0),
	FIELD(STR, "memBwSchema", mem_bw_schema, 0),
	FIELD(BOOL, "enableMonitoring", enable_monitoring, 0),
#undef T
};
const struct oci_type oci_intel_rdt_type =
	OCI_TYPE("intelRdt", struct oci_intel_rdt, intel_rdt_fields);

static const struct oci_field memory_policy_fields[] = {
#define T oci_memory_policy
	FIELD(STR, "mode", mode, OCI_REQUIRED),
	FIELD(STR, "nodes", nodes, 0),
	FIELD(STRV, "flags", flags, 0),
#undef T
};
static const struct oci_type memory_policy_type =
	OCI_TYPE("memoryPolicy", struct oci_memory_policy, memory_policy_fields);

static const struct oci_field seccomp_arg_fields[] = {
#define T oci_seccomp_arg
	FIELD(U32, "index", index, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(U64, "value", value, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(U64, "valueTwo", value_two, 0),
	FIELD(STR, "op", op, OCI_REQUIRED),
#undef T
};
static const struct oci_type seccomp_arg_type =
	OCI_TYPE("seccompArg", struct oci_seccomp_arg, seccomp_arg_fields);

static const struct oci_field seccomp_rule_fields[] = {
#define T oci_seccomp_rule
	FIELD(STRV, "names", names, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(STR, "action", action, OCI_REQUIRED),
	FIELD(OPT_U32, "errnoRet", errno_ret, 0),
	FIELD(LIST, "args", args, &seccomp_arg_type, 0),
#undef T
};
static const struct oci_type seccomp_rule_type =
	OCI_TYPE("seccompRule", struct oci_seccomp_rule, seccomp_rule_fields);

static const struct oci_field seccomp_fields[] = {
#define T oci_seccomp
	FIELD(STR, "defaultAction", default_action, OCI_REQUIRED),
	FIELD(OPT_U32, "defaultErrnoRet", default_errno_ret, 0),
	FIELD(STRV, "architectures", architectures, 0),
	FIELD(STRV, "flags", flags, 0),
	FIELD(STR, "listenerPath", listener_path, 0),
	FIELD(STR, "listenerMetadata", listener_metadata, 0),
	FIELD(LIST, "syscalls", syscalls, &seccomp_rule_type, 0),
#undef T
};
const struct oci_type oci_seccomp_type = OCI_TYPE("seccomp", struct oci_seccomp, seccomp_fields);

static const struct oci_field personality_fields[] = {
#define T oci_personality
	FIELD(STR, "domain", domain, OCI_REQUIRED),
	FIELD(STRV, "flags", flags, 0),
#undef T
};
static const struct oci_type personality_type =
	OCI_TYPE("personality", struct oci_personality, personality_fields);

static const struct oci_field linux_fields[] = {
#define T oci_linux
	FIELD(LIST, "uidMappings", uid_mappings, &oci_id_mapping_type, 0),
	FIELD(LIST, "gidMappings", gid_mappings, &oci_id_mapping_type, 0),
	FIELD(MAP, "sysctl", sysctl, 0),
	FIELD(OPT_OBJ, "resources", resources, &oci_resources_type, 0),
	FIELD(STR, "cgroupsPath", cgroups_path, 0),
	FIELD(LIST, "namespaces", namespaces, &oci_namespace_type, 0),
	FIELD(LIST, "devices", devices, &oci_device_type, 0),
	FIELD(DICT, "netDevices", net_devices, &oci_net_device_type, 0),
	FIELD(OPT_OBJ, "seccomp", seccomp, &oci_seccomp_type, 0),
	FIELD(STR, "rootfsPropagation", rootfs_propagation, 0),
	FIELD(STRV, "maskedPaths", masked_paths, 0),
	FIELD(STRV, "readonlyPaths", readonly_paths, 0),
	FIELD(STR, "mountLabel", mount_label, 0),
	FIELD(OPT_OBJ, "intelRdt", intel_rdt, &oci_intel_rdt_type, 0),
	FIELD(OPT_OBJ, "memoryPolicy", memory_policy, &memory_policy_type, 0),
	FIELD(OPT_OBJ, "personality", personality, &personality_type, 0),
	FIELD(OPT_OBJ, "timeOffsets", time_offsets, &time_offsets_type, 0),
#undef T
};
const struct oci_type oci_linux_type = OCI_TYPE("linux", struct oci_linux, linux_fields);
