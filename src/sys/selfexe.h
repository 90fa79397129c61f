/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: the runtime never shows a container the file it was started from (CVE-2019-5736).
 *
 * lr_selfexe_seal re-executes the calling program from a sealed memfd (F_SEAL_WRITE and friends;
 * MFD_EXEC where the kernel knows it, so that vm.memfd_noexec=1 does not matter) unless it already
 * runs from one. Call it first thing in main, before threads or open descriptors, for verbs that
 * put a process into a container. On success it returns 0 in the sealed copy. -EACCES and a hint
 * when vm.memfd_noexec=2 forbids it.
 */
#ifndef LR_SYS_SELFEXE_H
#define LR_SYS_SELFEXE_H

#include <stdbool.h>

#include "src/base/err.h"

int lr_selfexe_seal(char **argv, char **envp, struct lr_err *err) LR_MUST_CHECK;
bool lr_selfexe_is_sealed(void);

/*
 * The same without a copy: re-executes the program from a read-only mount of its directory that
 * belongs to no mount namespace, so that no container can make it writable. True in the program
 * that was started so; false when that cannot be (no CAP_SYS_ADMIN, before Linux 5.12): then a copy
 * is needed. Weaker than a copy in one way: a flaw in the kernel that writes to a file's pages
 * through a read-only view (CVE-2022-0847) would reach the host's file.
 */
bool lr_selfexe_mounted(char **argv, char **envp);

#endif
