/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libocispec: the container state of runtime.md (with the additions of runc that callers read),
 * and the container process state that a seccomp agent receives (config-linux.md).
 */
#ifndef OCI_STATE_H
#define OCI_STATE_H

#include "libocispec/config.h"

struct oci_state {
	const char *oci_version;
	const char *id;
	const char *status; /* "creating", "created", "running", "paused", "stopped" */
	int64_t pid;        /* 0 when there is no process; then left out for hooks, 0 for callers */
	const char *bundle; /* absolute path */
	const char *rootfs; /* runc's addition: absolute path; NULL: left out */
	const char *created; /* runc's addition: RFC 3339 with nanoseconds; NULL: left out */
	struct oci_map annotations;
	const char *owner; /* runc's addition; NULL: left out */
};

struct oci_container_process_state {
	const char *oci_version;
	struct oci_strv fds;
	int64_t pid;
	const char *metadata;
	struct oci_state state;
};

#endif
