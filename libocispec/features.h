/* SPDX-License-Identifier: Apache-2.0 */
/* libocispec: the features structure of features.md and features-linux.md. */
#ifndef OCI_FEATURES_H
#define OCI_FEATURES_H

#include "libocispec/config.h"

struct oci_features_cgroup {
	bool v1, v2, systemd, systemd_user, rdma;
};

struct oci_features_seccomp {
	bool enabled;
	struct oci_strv actions, operators, archs, known_flags, supported_flags;
};

struct oci_features_intel_rdt {
	bool enabled, schemata, monitoring;
};

struct oci_features_memory_policy {
	struct oci_strv modes, flags;
};

struct oci_features {
	const char *oci_version_min;
	const char *oci_version_max;
	struct oci_strv hooks;
	struct oci_strv mount_options;
	struct {
		struct oci_strv namespaces;
		struct oci_strv capabilities;
		struct oci_features_cgroup cgroup;
		struct oci_features_seccomp seccomp;
		bool apparmor_enabled;
		bool selinux_enabled;
		struct oci_features_intel_rdt intel_rdt;
		struct oci_features_memory_policy memory_policy;
		bool idmap_enabled; /* mountExtensions.idmap.enabled */
		bool net_devices_enabled;
	} linux_;
	struct oci_map annotations;
	struct oci_strv potentially_unsafe_config_annotations;
};

#endif
