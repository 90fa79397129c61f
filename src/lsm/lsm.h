/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lsm: AppArmor profile and SELinux label of the process (config.md "process.apparmorProfile",
 * "process.selinuxLabel"). Both take effect at the next execve, by writing to /proc/self/attr;
 * always through the private procfs (CVE-2025-52881: a label written to a file of the container's
 * choice is a label not applied).
 */
#ifndef LR_LSM_LSM_H
#define LR_LSM_LSM_H

#include <stdbool.h>

#include "libocispec/config.h"
#include "src/base/err.h"

struct lr_lsm_plan {
	const char *apparmor; /* NULL: nothing to do */
	const char *selinux;  /* NULL: nothing to do */
};

/* Pure: takes NULL or "" as absent; refuses what would not fit into one write. The strings stay
 * the caller's. */
int lr_lsm_plan(const char *apparmor_profile, const char *selinux_label, struct lr_lsm_plan *ret,
		struct lr_err *err) LR_MUST_CHECK;

/* Probes of the running system (for `features` too). */
bool lr_lsm_apparmor_enabled(void);
bool lr_lsm_selinux_enabled(void);

/*
 * Before anything is created, on the host: an LSM that is asked for must be there, a silent
 * "not confined" is the one answer nobody wants. The exception: the AppArmor profile "unconfined"
 * where there is no AppArmor, which is dropped from the plan. No system call for an empty plan.
 */
int lr_lsm_check(struct lr_lsm_plan *plan, struct lr_err *err) LR_MUST_CHECK;

/* The same for linux.mountLabel, NULL or "" for none: a file system is told so by a mount option
 * that means nothing without SELinux. */
int lr_lsm_check_mount_label(const char *label, struct lr_err *err) LR_MUST_CHECK;

/* In the container, after everything that needs the runtime's own label, before execve. */
int lr_lsm_apply(const struct lr_lsm_plan *plan, int procfd, struct lr_err *err) LR_MUST_CHECK;

/*
 * SELinux only: the label of keys made from now on, so that the session keyring is the
 * container's. `on` false sets the default again; call it after the keyring was made.
 */
int lr_lsm_label_keys(const struct lr_lsm_plan *plan, int procfd, bool on,
		      struct lr_err *err) LR_MUST_CHECK;

#endif
