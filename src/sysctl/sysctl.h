/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sysctl: kernel parameters of the container (config-linux.md "linux.sysctl").
 *
 * Only parameters that belong to a namespace may be set, and only when the container has its own
 * of that kind: everything else would change the host. Keys may be written with dots or with
 * slashes, as sysctl(8) takes them: the first separator of the two decides, and the other one
 * then stands for itself ("net.ipv4.conf.eth0/100.rp_filter" is interface eth0.100).
 */
#ifndef LR_SYSCTL_SYSCTL_H
#define LR_SYSCTL_SYSCTL_H

#include <stddef.h>

#include "libocispec/config.h"
#include "src/base/arena.h"
#include "src/base/err.h"

/* Namespaces that are not the host's: made by us, or joined and known to differ from ours. */
#define LR_SYSCTL_IPC  1u
#define LR_SYSCTL_NET  2u
#define LR_SYSCTL_UTS  4u
#define LR_SYSCTL_USER 8u

struct lr_sysctl_entry {
	const char *key;  /* as configured, for messages */
	const char *path; /* "sys/net/ipv4/ip_forward", below a procfs */
	const char *value;
	size_t len;
};

struct lr_sysctl_plan {
	struct lr_sysctl_entry *v;
	size_t n;
};

/* Pure. `own`: LR_SYSCTL_* of the container. */
int lr_sysctl_plan(const struct oci_map *sysctl, unsigned own, struct lr_arena *arena,
		   struct lr_sysctl_plan *ret, struct lr_err *err) LR_MUST_CHECK;

/* Inside the container's namespaces, through the private procfs. */
int lr_sysctl_apply(const struct lr_sysctl_plan *plan, int procfd,
		    struct lr_err *err) LR_MUST_CHECK;

#endif
