/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps: the five capability sets (config.md "process.capabilities").
 *
 * The plan is five bit masks. They are applied in this order, by the process that becomes the
 * container's:
 *
 *   lr_caps_apply_bounding()   while CAP_SETPCAP is still there
 *   lr_caps_keep()             only if the user id changes to non-zero: keeps the permitted set
 *   ... setgroups, setresgid, setresuid (user room) ...
 *   lr_caps_apply_final()      effective, permitted, inheritable, then ambient
 *
 * An absent `capabilities` object means no capability at all, as runc and crun have it. Names that
 * nobody knows, and capabilities that cannot be granted, are warned about and left out (config.md:
 * "the runtime MUST ignore" what it cannot map).
 */
#ifndef LR_CAPS_CAPS_H
#define LR_CAPS_CAPS_H

#include <stddef.h>
#include <stdint.h>

#include "libocispec/config.h"
#include "src/base/err.h"

struct lr_caps_plan {
	uint64_t bounding;
	uint64_t effective;
	uint64_t inheritable;
	uint64_t permitted;
	uint64_t ambient;
};

#define LR_CAPS_BIT(n) (UINT64_C(1) << (n))

/* Pure (but warns through the log). caps may be NULL: all sets empty. -EPERM: inheritable ones that
 * are not in the bounding set, or effective ones that are not permitted. */
int lr_caps_plan(const struct oci_capabilities *caps, struct lr_caps_plan *ret,
		 struct lr_err *err) LR_MUST_CHECK;

/*
 * The number of a capability for a person's spelling: "CAP_SYS_ADMIN", "sys_admin". -EINVAL with
 * *err filled when there is no such name.
 */
int lr_caps_parse(const char *name, struct lr_err *err) LR_MUST_CHECK;

/* Adds one capability as `runc exec --cap` does: bounding, effective, permitted; ambient too if it
 * is inheritable already. Not inheritable: CVE-2022-29162. */
void lr_caps_grant(struct lr_caps_plan *plan, int cap);

/* "CAP_CHOWN" for 0 ...; NULL beyond what this program knows. */
const char *lr_caps_name(int cap);

/* The names that this program and the running kernel both know, by number (for `features`).
 * Fills at most n entries; returns how many there are. Probes by prctl(2). */
size_t lr_caps_names(const char **v, size_t n);

/* The highest capability of the running kernel, found without /proc. */
int lr_caps_last(void);

/* Drops what is not in plan->bounding: one prctl each, the kernel has no other way. */
int lr_caps_apply_bounding(const struct lr_caps_plan *plan, struct lr_err *err) LR_MUST_CHECK;

/* PR_SET_KEEPCAPS; the kernel clears it again at execve. */
int lr_caps_keep(struct lr_err *err) LR_MUST_CHECK;

int lr_caps_apply_final(const struct lr_caps_plan *plan, struct lr_err *err) LR_MUST_CHECK;

#endif
