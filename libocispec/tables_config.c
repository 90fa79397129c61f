/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libocispec: the objects of config.md except "linux". Rows stand in the order of the
 * specification's Go types, so that what Go programs write is decoded without searching and what
 * we write compares well with it. OCI_ALWAYS marks what Go has without omitempty.
 */
#include "libocispec/tables.h"

#define FIELD(kind, json, member, ...) OCI_##kind(struct T, json, member, __VA_ARGS__)

static const struct oci_field id_mapping_fields[] = {
#define T oci_id_mapping
	FIELD(U32, "containerID", container_id, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(U32, "hostID", host_id, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(U32, "size", size, OCI_REQUIRED | OCI_ALWAYS),
#undef T
};
const struct oci_type oci_id_mapping_type =
	OCI_TYPE("idMapping", struct oci_id_mapping, id_mapping_fields);

static const struct oci_field root_fields[] = {
#define T oci_root
	FIELD(STR, "path", path, OCI_REQUIRED),
	FIELD(BOOL, "readonly", readonly, 0),
#undef T
};
const struct oci_type oci_root_type = OCI_TYPE("root", struct oci_root, root_fields);

static const struct oci_field mount_fields[] = {
#define T oci_mount
	FIELD(STR, "destination", destination, OCI_REQUIRED),
	FIELD(STR, "type", type, 0),
	FIELD(STR, "source", source, 0),
	FIELD(STRV, "options", options, 0),
	FIELD(LIST, "uidMappings", uid_mappings, &oci_id_mapping_type, 0),
	FIELD(LIST, "gidMappings", gid_mappings, &oci_id_mapping_type, 0),
#undef T
};
const struct oci_type oci_mount_type = OCI_TYPE("mount", struct oci_mount, mount_fields);

/* ---- process --------------------------------------------------------------------------- */

static const struct oci_field console_size_fields[] = {
#define T oci_console_size
	FIELD(U16, "height", height, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(U16, "width", width, OCI_REQUIRED | OCI_ALWAYS),
#undef T
};
static const struct oci_type console_size_type =
	OCI_TYPE("consoleSize", struct oci_console_size, console_size_fields);

static const struct oci_field user_fields[] = {
#define T oci_user
	FIELD(U32, "uid", uid, OCI_ALWAYS),  FIELD(U32, "gid", gid, OCI_ALWAYS),
	FIELD(OPT_U32, "umask", umask, 0),   FIELD(U32V, "additionalGids", additional_gids, 0),
	FIELD(STR, "username", username, 0),
#undef T
};
static const struct oci_type user_type = OCI_TYPE("user", struct oci_user, user_fields);

static const struct oci_field capabilities_fields[] = {
#define T oci_capabilities
	FIELD(STRV, "bounding", bounding, 0),       FIELD(STRV, "effective", effective, 0),
	FIELD(STRV, "inheritable", inheritable, 0), FIELD(STRV, "permitted", permitted, 0),
	FIELD(STRV, "ambient", ambient, 0),
#undef T
};
static const struct oci_type capabilities_type =
	OCI_TYPE("capabilities", struct oci_capabilities, capabilities_fields);

static const struct oci_field rlimit_fields[] = {
#define T oci_rlimit
	FIELD(STR, "type", type, OCI_REQUIRED),
	FIELD(U64, "hard", hard, OCI_REQUIRED | OCI_ALWAYS),
	FIELD(U64, "soft", soft, OCI_REQUIRED | OCI_ALWAYS),
#undef T
};
static const struct oci_type rlimit_type = OCI_TYPE("rlimit", struct oci_rlimit, rlimit_fields);

static const struct oci_field scheduler_fields[] = {
#define T oci_scheduler
	FIELD(STR, "policy", policy, OCI_REQUIRED),
	FIELD(I32, "nice", nice, 0),
	FIELD(I32, "priority", priority, 0),
	FIELD(STRV, "flags", flags, 0),
	FIELD(U64, "runtime", runtime, 0),
	FIELD(U64, "deadline", deadline, 0),
	FIELD(U64, "period", period, 0),
#undef T
};
static const struct oci_type scheduler_type =
	OCI_TYPE("scheduler", struct oci_scheduler, scheduler_fields);

static const struct oci_field io_priority_fields[] = {
#define T oci_io_priority
	FIELD(STR, "class", class, OCI_REQUIRED),
	FIELD(I32, "priority", priority, OCI_ALWAYS),
#undef T
};
static const struct oci_type io_priority_type =
	OCI_TYPE("ioPriority", struct oci_io_priority, io_priority_fields);

static const struct oci_field exec_cpu_affinity_fields[] = {
#define T oci_exec_cpu_affinity
	FIELD(STR, "initial", initial, 0),
	FIELD(STR, "final", final, 0),
#undef T
};
static const struct oci_type exec_cpu_affinity_type =
	OCI_TYPE("execCPUAffinity", struct oci_exec_cpu_affinity, exec_cpu_affinity_fields);

static const struct oci_field process_fields[] = {
#define T oci_process
	FIELD(BOOL, "terminal", terminal, 0),
	FIELD(OPT_OBJ, "consoleSize", console_size, &console_size_type, 0),
	FIELD(OBJ, "user", user, &user_type, OCI_ALWAYS),
	FIELD(STRV, "args", args, 0),
	FIELD(STR, "commandLine", command_line, 0),
	FIELD(STRV, "env", env, 0),
	FIELD(STR, "cwd", cwd, OCI_REQUIRED),
	FIELD(OPT_OBJ, "capabilities", capabilities, &capabilities_type, 0),
	FIELD(LIST, "rlimits", rlimits, &rlimit_type, 0),
	FIELD(BOOL, "noNewPrivileges", no_new_privileges, 0),
	FIELD(STR, "apparmorProfile", apparmor_profile, 0),
	FIELD(OPT_I32, "oomScoreAdj", oom_score_adj, 0),
	FIELD(OPT_OBJ, "scheduler", scheduler, &scheduler_type, 0),
	FIELD(STR, "selinuxLabel", selinux_label, 0),
	FIELD(OPT_OBJ, "ioPriority", io_priority, &io_priority_type, 0),
	FIELD(OPT_OBJ, "execCPUAffinity", exec_cpu_affinity, &exec_cpu_affinity_type, 0),
#undef T
};
const struct oci_type oci_process_type = OCI_TYPE("process", struct oci_process, process_fields);

/* ---- hooks and the whole --------------------------------------------------------------- */

static const struct oci_field hook_fields[] = {
#define T oci_hook
	FIELD(STR, "path", path, OCI_REQUIRED),
	FIELD(STRV, "args", args, 0),
	FIELD(STRV, "env", env, OCI_GIVEN),
	FIELD(OPT_I32, "timeout", timeout, 0),
#undef T
};
const struct oci_type oci_hook_type = OCI_TYPE("hook", struct oci_hook, hook_fields);

static const struct oci_field hooks_fields[] = {
#define T oci_hooks
	FIELD(LIST, "prestart", prestart, &oci_hook_type, 0),
	FIELD(LIST, "createRuntime", create_runtime, &oci_hook_type, 0),
	FIELD(LIST, "createContainer", create_container, &oci_hook_type, 0),
	FIELD(LIST, "startContainer", start_container, &oci_hook_type, 0),
	FIELD(LIST, "poststart", poststart, &oci_hook_type, 0),
	FIELD(LIST, "poststop", poststop, &oci_hook_type, 0),
#undef T
};
const struct oci_type oci_hooks_type = OCI_TYPE("hooks", struct oci_hooks, hooks_fields);

/* "windows", "solaris", "vm" and "zos" have no row: they are read over like unknown ones. */
static const struct oci_field config_fields[] = {
#define T oci_config
	FIELD(STR, "ociVersion", oci_version, OCI_REQUIRED),
	FIELD(OPT_OBJ, "process", process, &oci_process_type, 0),
	FIELD(OPT_OBJ, "root", root, &oci_root_type, 0),
	FIELD(STR, "hostname", hostname, 0),
	FIELD(STR, "domainname", domainname, 0),
	FIELD(LIST, "mounts", mounts, &oci_mount_type, 0),
	FIELD(OPT_OBJ, "hooks", hooks, &oci_hooks_type, 0),
	FIELD(MAP, "annotations", annotations, 0),
	FIELD(OPT_OBJ, "linux", linux_, &oci_linux_type, 0),
#undef T
};
const struct oci_type oci_config_type = OCI_TYPE("config", struct oci_config, config_fields);
