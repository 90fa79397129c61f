/* SPDX-License-Identifier: Apache-2.0 */
/* libocispec: the objects that we write: state (runtime.md) and features (features.md). */
#include "libocispec/features.h"
#include "libocispec/state.h"
#include "libocispec/tables.h"

#define FIELD(kind, json, member, ...) OCI_##kind(struct T, json, member, __VA_ARGS__)

/* ---- state ----------------------------------------------------------------------------- */

/* The order and the additions of `runc state`: callers parse them, and compare. */
static const struct oci_field state_fields[] = {
#define T oci_state
	FIELD(STR, "ociVersion", oci_version, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(STR, "id", id, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(I64, "pid", pid, OCI_ALWAYS),
	FIELD(STR, "status", status, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(STR, "bundle", bundle, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(STR, "rootfs", rootfs, 0),
	FIELD(STR, "created", created, 0),
	FIELD(MAP, "annotations", annotations, 0),
	FIELD(STR, "owner", owner, 0),
#undef T
};
const struct oci_type oci_state_type = OCI_TYPE("state", struct oci_state, state_fields);

/* The order of the specification's Go type, which runc gives to hooks: some compare the bytes. */
static const struct oci_field hook_state_fields[] = {
#define T oci_state
	FIELD(STR, "ociVersion", oci_version, OCI_ALWAYS),
	FIELD(STR, "id", id, OCI_ALWAYS),
	FIELD(STR, "status", status, OCI_ALWAYS),
	FIELD(I64, "pid", pid, 0),
	FIELD(STR, "bundle", bundle, OCI_ALWAYS),
	FIELD(MAP, "annotations", annotations, 0),
#undef T
};
const struct oci_type oci_hook_state_type =
	OCI_TYPE("hookState", struct oci_state, hook_state_fields);

static const struct oci_field container_process_state_fields[] = {
#define T oci_container_process_state
	FIELD(STR, "ociVersion", oci_version, OCI_ALWAYS),
	FIELD(STRV, "fds", fds, OCI_ALWAYS),
	FIELD(I64, "pid", pid, OCI_ALWAYS),
	FIELD(STR, "metadata", metadata, 0),
	FIELD(OBJ, "state", state, &oci_hook_state_type, OCI_ALWAYS),
#undef T
};
const struct oci_type oci_container_process_state_type =
	OCI_TYPE("containerProcessState", struct oci_container_process_state,
		 container_process_state_fields);

/* ---- features -------------------------------------------------------------------------- */

/* Every boolean is written: absence would mean "unknown", and we know. */
static const struct oci_field f_cgroup_fields[] = {
#define T oci_features_cgroup
	FIELD(BOOL, "v1", v1, OCI_ALWAYS),
	FIELD(BOOL, "v2", v2, OCI_ALWAYS),
	FIELD(BOOL, "systemd", systemd, OCI_ALWAYS),
	FIELD(BOOL, "systemdUser", systemd_user, OCI_ALWAYS),
	FIELD(BOOL, "rdma", rdma, OCI_ALWAYS),
#undef T
};
static const struct oci_type f_cgroup_type =
	OCI_TYPE("cgroup", struct oci_features_cgroup, f_cgroup_fields);

static const struct oci_field f_seccomp_fields[] = {
#define T oci_features_seccomp
	FIELD(BOOL, "enabled", enabled, OCI_ALWAYS),
	FIELD(STRV, "actions", actions, 0),
	FIELD(STRV, "operators", operators, 0),
	FIELD(STRV, "archs", archs, 0),
	FIELD(STRV, "knownFlags", known_flags, 0),
	FIELD(STRV, "supportedFlags", supported_flags, 0),
#undef T
};
static const struct oci_type f_seccomp_type =
	OCI_TYPE("seccomp", struct oci_features_seccomp, f_seccomp_fields);

static const struct oci_field f_intel_rdt_fields[] = {
#define T oci_features_intel_rdt
	FIELD(BOOL, "enabled", enabled, OCI_ALWAYS),
	FIELD(BOOL, "schemata", schemata, OCI_ALWAYS),
	FIELD(BOOL, "monitoring", monitoring, OCI_ALWAYS),
#undef T
};
static const struct oci_type f_intel_rdt_type =
	OCI_TYPE("intelRdt", struct oci_features_intel_rdt, f_intel_rdt_fields);

static const struct oci_field f_memory_policy_fields[] = {
#define T oci_features_memory_policy
	FIELD(STRV, "modes", modes, 0),
	FIELD(STRV, "flags", flags, 0),
#undef T
};
static const struct oci_type f_memory_policy_type =
	OCI_TYPE("memoryPolicy", struct oci_features_memory_policy, f_memory_policy_fields);

/* Objects of one boolean that struct oci_features keeps flat. */
static const struct oci_field f_apparmor_fields[] = {
#define T oci_features
	FIELD(BOOL, "enabled", linux_.apparmor_enabled, OCI_ALWAYS),
};
static const struct oci_type f_apparmor_type =
	OCI_TYPE("apparmor", struct oci_features, f_apparmor_fields);

static const struct oci_field f_selinux_fields[] = {
	FIELD(BOOL, "enabled", linux_.selinux_enabled, OCI_ALWAYS),
};
static const struct oci_type f_selinux_type =
	OCI_TYPE("selinux", struct oci_features, f_selinux_fields);

static const struct oci_field f_idmap_fields[] = {
	FIELD(BOOL, "enabled", linux_.idmap_enabled, OCI_ALWAYS),
};
static const struct oci_type f_idmap_type = OCI_TYPE("idmap", struct oci_features, f_idmap_fields);

static const struct oci_field f_mount_extensions_fields[] = {
	OCI_FLAT("idmap", &f_idmap_type, OCI_ALWAYS),
};
static const struct oci_type f_mount_extensions_type =
	OCI_TYPE("mountExtensions", struct oci_features, f_mount_extensions_fields);

static const struct oci_field f_net_devices_fields[] = {
	FIELD(BOOL, "enabled", linux_.net_devices_enabled, OCI_ALWAYS),
};
static const struct oci_type f_net_devices_type =
	OCI_TYPE("netDevices", struct oci_features, f_net_devices_fields);

static const struct oci_field f_linux_fields[] = {
	FIELD(STRV, "namespaces", linux_.namespaces, 0),
	FIELD(STRV, "capabilities", linux_.capabilities, 0),
	FIELD(OBJ, "cgroup", linux_.cgroup, &f_cgroup_type, OCI_ALWAYS),
	FIELD(OBJ, "seccomp", linux_.seccomp, &f_seccomp_type, OCI_ALWAYS),
	OCI_FLAT("apparmor", &f_apparmor_type, OCI_ALWAYS),
	OCI_FLAT("selinux", &f_selinux_type, OCI_ALWAYS),
	FIELD(OBJ, "intelRdt", linux_.intel_rdt, &f_intel_rdt_type, OCI_ALWAYS),
	FIELD(OBJ, "memoryPolicy", linux_.memory_policy, &f_memory_policy_type, 0),
	OCI_FLAT("mountExtensions", &f_mount_extensions_type, OCI_ALWAYS),
	OCI_FLAT("netDevices", &f_net_devices_type, OCI_ALWAYS),
};
static const struct oci_type f_linux_type = OCI_TYPE("linux", struct oci_features, f_linux_fields);

static const struct oci_field features_fields[] = {
	FIELD(STR, "ociVersionMin", oci_version_min, 0),
	FIELD(STR, "ociVersionMax", oci_version_max, 0),
	FIELD(STRV, "hooks", hooks, 0),
	FIELD(STRV, "mountOptions", mount_options, 0),
	OCI_FLAT("linux", &f_linux_type, OCI_ALWAYS),
	FIELD(MAP, "annotations", annotations, 0),
	FIELD(STRV, "potentiallyUnsafeConfigAnnotations", potentially_unsafe_config_annotations, 0),
#undef T
};
const struct oci_type oci_features_type =
	OCI_TYPE("features", struct oci_features, features_fields);
