/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libocispec: the tables of the specification's objects (table.h), for code that decodes or
 * encodes a part of them: src/store keeps hooks and resources in its record. tests/unit/ocispec
 * holds them against the specification's JSON schema.
 */
#ifndef OCI_TABLES_H
#define OCI_TABLES_H

#include "libocispec/table.h"

/* config.md */
extern const struct oci_type oci_config_type;
extern const struct oci_type oci_process_type;
extern const struct oci_type oci_root_type;
extern const struct oci_type oci_mount_type;
extern const struct oci_type oci_hook_type;
extern const struct oci_type oci_hooks_type;
extern const struct oci_type oci_id_mapping_type;

/* config-linux.md */
extern const struct oci_type oci_linux_type;
extern const struct oci_type oci_resources_type;
extern const struct oci_type oci_intel_rdt_type;
extern const struct oci_type oci_namespace_type;
extern const struct oci_type oci_device_type;
extern const struct oci_type oci_net_device_type; /* DICT element */
extern const struct oci_type oci_seccomp_type;

/* runtime.md, features.md */
extern const struct oci_type oci_state_type;      /* as the state command prints it */
extern const struct oci_type oci_hook_state_type; /* as hooks and seccomp agents get it */
extern const struct oci_type oci_container_process_state_type;
extern const struct oci_type oci_features_type;

#endif
