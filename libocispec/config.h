/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libocispec: config.json as an immutable C structure.
 *
 * One structure per object of the OCI runtime specification 1.3 (config.md and
 * config-linux.md), one member per property, named as the specification names it (in
 * snake_case). Everything lives in one arena and is released with it; nothing here owns heap.
 *
 * How absence is shown:
 *   - strings: NULL;
 *   - objects: NULL pointer;
 *   - lists and maps: n == 0 (v may then be NULL). A list of strings that is present always ends
 *     in a NULL entry beyond n, so that it can be handed to execve(2);
 *   - numbers and booleans whose absence differs from zero/false: NULL pointer;
 *     the others are plain members and read as 0/false when absent.
 */
#ifndef OCI_CONFIG_H
#define OCI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oci_strv {
	const char **v; /* NULL-terminated when present */
	size_t n;
};

struct oci_pair {
	const char *key;
	const char *value;
};

/* A JSON object whose values are strings, in the order of the file. */
struct oci_map {
	struct oci_pair *v;
	size_t n;
};

/* ---- config.md ------------------------------------------------------------------------- */

struct oci_root {
	const char *path;
	bool readonly;
};

struct oci_id_mapping {
	uint32_t container_id;
	uint32_t host_id;
	uint32_t size;
};

struct oci_id_mappings {
	struct oci_id_mapping *v;
	size_t n;
};

struct oci_mount {
	const char *destination;
	const char *type;
	const char *source;
	struct oci_strv options;
	struct oci_id_mappings uid_mappings;
	struct oci_id_mappings gid_mappings;
};

struct oci_mounts {
	struct oci_mount *v;
	size_t n;
};

struct oci_console_size {
	uint16_t height; /* rows */
	uint16_t width;  /* columns */
};

struct oci_user {
	uint32_t uid;
	uint32_t gid;
	const uint32_t *umask;
	struct {
		uint32_t *v;
		size_t n;
	} additional_gids;
	const char *username; /* Windows only; decoded, not used */
};

struct oci_rlimit {
	const char *type; /* "RLIMIT_NOFILE" */
	uint64_t soft;
	uint64_t hard;
};

struct oci_rlimits {
	struct oci_rlimit *v;
	size_t n;
};

struct oci_capabilities {
	struct oci_strv bounding;
	struct oci_strv effective;
	struct oci_strv inheritable;
	struct oci_strv permitted;
	struct oci_strv ambient;
};

struct oci_scheduler {
	const char *policy; /* "SCHED_OTHER" */
	int32_t nice;
	int32_t priority;
	struct oci_strv flags;
	uint64_t runtime;  /* nanoseconds */
	uint64_t deadline; /* nanoseconds */
	uint64_t period;   /* nanoseconds */
};

struct oci_io_priority {
	const char *class; /* "IOPRIO_CLASS_BE" */
	int32_t priority;
};

struct oci_exec_cpu_affinity {
	const char *initial; /* cpu list, "0-3,7" */
	const char *final;
};

struct oci_process {
	bool terminal;
	const struct oci_console_size *console_size;
	const char *cwd;
	struct oci_strv env;
	struct oci_strv args;
	const char *command_line; /* Windows only */
	struct oci_user user;
	struct oci_rlimits rlimits;
	const struct oci_capabilities *capabilities;
	const char *apparmor_profile;
	const char *selinux_label;
	bool no_new_privileges;
	const int32_t *oom_score_adj;
	const struct oci_scheduler *scheduler;
	const struct oci_io_priority *io_priority;
	const struct oci_exec_cpu_affinity *exec_cpu_affinity;
};

struct oci_hook {
	const char *path;
	struct oci_strv args;
	struct oci_strv env;
	const int32_t *timeout; /* seconds, > 0 */
};

struct oci_hook_list {
	struct oci_hook *v;
	size_t n;
};

struct oci_hooks {
	struct oci_hook_list prestart;
	struct oci_hook_list create_runtime;
	struct oci_hook_list create_container;
	struct oci_hook_list start_container;
	struct oci_hook_list poststart;
	struct oci_hook_list poststop;
};

/* ---- config-linux.md ------------------------------------------------------------------- */

struct oci_namespace {
	const char *type; /* "pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time" */
	const char *path;
};

struct oci_namespaces {
	struct oci_namespace *v;
	size_t n;
};

struct oci_time_offset {
	int64_t secs;
	uint32_t nanosecs;
};

struct oci_time_offsets {
	const struct oci_time_offset *monotonic;
	const struct oci_time_offset *boottime;
};

struct oci_device {
	const char *type; /* "c", "b", "u", "p" */
	const char *path;
	int64_t major;
	int64_t minor;
	const uint32_t *file_mode;
	const uint32_t *uid;
	const uint32_t *gid;
};

struct oci_devices {
	struct oci_device *v;
	size_t n;
};

struct oci_net_device {
	const char *host_name; /* the key: name of the device on the host */
	const char *name;      /* name in the container, NULL: unchanged */
};

struct oci_net_devices {
	struct oci_net_device *v;
	size_t n;
};

struct oci_device_cgroup {
	bool allow;
	const char *type; /* "a", "c", "b"; NULL: all */
	const int64_t *major;
	const int64_t *minor;
	const char *access; /* subset of "rwm"; NULL: all */
};

struct oci_device_cgroups {
	struct oci_device_cgroup *v;
	size_t n;
};

struct oci_memory {
	const int64_t *limit; /* bytes; -1: none */
	const int64_t *reservation;
	const int64_t *swap; /* memory + swap, as in cgroup v1 */
	const int64_t *kernel;
	const int64_t *kernel_tcp;
	const uint64_t *swappiness; /* 0..100 */
	const bool *disable_oom_killer;
	const bool *use_hierarchy;
	const bool *check_before_update;
};

struct oci_cpu {
	const uint64_t *shares;
	const int64_t *quota;  /* µs per period; -1: none */
	const uint64_t *burst; /* µs */
	const uint64_t *period;
	const int64_t *realtime_runtime;
	const uint64_t *realtime_period;
	const char *cpus;
	const char *mems;
	const int64_t *idle;
};

struct oci_weight_device {
	int64_t major;
	int64_t minor;
	const uint16_t *weight;
	const uint16_t *leaf_weight;
};

struct oci_throttle_device {
	int64_t major;
	int64_t minor;
	uint64_t rate; /* bytes or operations per second */
};

struct oci_throttle_devices {
	struct oci_throttle_device *v;
	size_t n;
};

struct oci_block_io {
	const uint16_t *weight;
	const uint16_t *leaf_weight;
	struct {
		struct oci_weight_device *v;
		size_t n;
	} weight_device;
	struct oci_throttle_devices throttle_read_bps_device;
	struct oci_throttle_devices throttle_write_bps_device;
	struct oci_throttle_devices throttle_read_iops_device;
	struct oci_throttle_devices throttle_write_iops_device;
};

struct oci_hugepage_limit {
	const char *page_size; /* "2MB" */
	uint64_t limit;        /* bytes */
};

struct oci_hugepage_limits {
	struct oci_hugepage_limit *v;
	size_t n;
};

struct oci_interface_priority {
	const char *name;
	uint32_t priority;
};

struct oci_network {
	const uint32_t *class_id;
	struct {
		struct oci_interface_priority *v;
		size_t n;
	} priorities;
};

struct oci_pids {
	/* 0 is a real limit of zero, -1 none. (Before 1.3 0 was none: decode.c makes that -1.) */
	const int64_t *limit;
};

struct oci_rdma {
	const char *device; /* the key */
	const uint32_t *hca_handles;
	const uint32_t *hca_objects;
};

struct oci_rdmas {
	struct oci_rdma *v;
	size_t n;
};

struct oci_resources {
	struct oci_device_cgroups devices;
	const struct oci_memory *memory;
	const struct oci_cpu *cpu;
	const struct oci_block_io *block_io;
	struct oci_hugepage_limits hugepage_limits;
	const struct oci_network *network;
	const struct oci_pids *pids;
	struct oci_rdmas rdma;
	struct oci_map unified;
};

struct oci_intel_rdt {
	const char *clos_id;
	struct oci_strv schemata;
	const char *l3_cache_schema;
	const char *mem_bw_schema;
	bool enable_monitoring;
};

struct oci_memory_policy {
	const char *mode; /* "MPOL_BIND" */
	const char *nodes;
	struct oci_strv flags;
};

struct oci_seccomp_arg {
	uint32_t index;
	uint64_t value;
	uint64_t value_two;
	const char *op; /* "SCMP_CMP_EQ" */
};

struct oci_seccomp_rule {
	struct oci_strv names;
	const char *action;
	const uint32_t *errno_ret;
	struct {
		struct oci_seccomp_arg *v;
		size_t n;
	} args;
};

struct oci_seccomp {
	const char *default_action;
	const uint32_t *default_errno_ret;
	struct oci_strv architectures;
	struct oci_strv flags;
	const char *listener_path;
	const char *listener_metadata;
	struct {
		struct oci_seccomp_rule *v;
		size_t n;
	} syscalls;
};

struct oci_personality {
	const char *domain; /* "LINUX", "LINUX32" */
	struct oci_strv flags;
};

struct oci_linux {
	struct oci_namespaces namespaces;
	struct oci_id_mappings uid_mappings;
	struct oci_id_mappings gid_mappings;
	const struct oci_time_offsets *time_offsets;
	struct oci_devices devices;
	struct oci_net_devices net_devices;
	const char *cgroups_path;
	const struct oci_resources *resources;
	const struct oci_intel_rdt *intel_rdt;
	const struct oci_memory_policy *memory_policy;
	struct oci_map sysctl;
	const struct oci_seccomp *seccomp;
	const char *rootfs_propagation;
	struct oci_strv masked_paths;
	struct oci_strv readonly_paths;
	const char *mount_label;
	const struct oci_personality *personality;
};

struct oci_config {
	const char *oci_version;
	const struct oci_root *root;
	struct oci_mounts mounts;
	const struct oci_process *process;
	const char *hostname;
	const char *domainname;
	const struct oci_hooks *hooks;
	struct oci_map annotations;
	const struct oci_linux *linux_; /* "linux"; the plain word is a predefined macro in gnu17 */
};

#endif
