/* SPDX-License-Identifier: Apache-2.0 */
/* sys: a process' number in its own pid namespace, which is the innermost one that it has a number in. */
#ifndef LR_SYS_INNER_H
#define LR_SYS_INNER_H

#include <stdint.h>
#include <sys/types.h>

/* 0: it is gone, or this cannot be known. *depth (or NULL): in how many namespaces it has a number, from ours on. */
uint32_t lr_inner_pid(pid_t pid, unsigned *depth);

/* The same by what stands behind NSpid:, NStgid: or their like in its status; NULL: nothing does. */
uint32_t lr_inner_of(const char *numbers, unsigned *depth);

#endif
