/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys: the runtime never shows a container the file it was started from (CVE-2019-5736).
 *
 * Two ways. The program is executed again from a read-only mount of its directory that belongs to
 * no mount namespace, so that nobody, whatever his capabilities, can make it writable: a few system
 * calls. Or, where that cannot be had (no CAP_SYS_ADMIN, before Linux 5.12), from a sealed copy in
 * memory: a third of a microsecond a kilobyte, and as many pages. Against a flaw in the kernel that
 * writes into a file's pages through a read-only view (CVE-2022-0847) only the copy helps; who
 * wants to be safe from the next one asks for it.
 *
 * Call one of these before threads or descriptors that are not close-on-exec, for verbs that put a
 * process into a container. `run` mostly does without: see lifecycle/hide.h.
 */
#ifndef LR_SYS_SELFEXE_H
#define LR_SYS_SELFEXE_H

#include <stdbool.h>

#include "src/base/err.h"

/* The first way that can be had; 0 in the hidden program. */
int lr_selfexe_hide(char **argv, char **envp, struct lr_err *err) LR_MUST_CHECK;

/*
 * Re-executes the calling program from a sealed memfd (F_SEAL_WRITE and friends; MFD_EXEC where the
 * kernel knows it, so that vm.memfd_noexec=1 does not matter) unless it already runs from one, and
 * returns 0 there. -EACCES and a hint when vm.memfd_noexec=2 forbids it.
 */
int lr_selfexe_seal(char **argv, char **envp, struct lr_err *err) LR_MUST_CHECK;
bool lr_selfexe_is_sealed(void);

/* True in a program that runs from such a mount; false when that cannot be. */
bool lr_selfexe_mounted(char **argv, char **envp);
/* Whether this program was started in either way. */
bool lr_selfexe_is_hidden(void);

/*
 * The mount still has a holder then, a descriptor: to close the last one takes as long as the
 * kernel needs for a grace period (50 µs, some milliseconds on a busy machine), which the parent
 * spends while its child is at work. Until then, CAP_SYS_ADMIN could make the mount writable: let
 * go in a child, first thing; in the parent, before anything of the container's can run or look
 * into the child's namespaces. Does nothing in a program that runs from a copy.
 */
void lr_selfexe_let_go(void);

#endif
