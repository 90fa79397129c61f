/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forkd: the keeper, a second process that shares the daemon's table of descriptors, but not its
 * memory. The kernel closes no userfaultfd of that table before both have ended, so nobody's missing
 * pages become zeros when one of them is killed, also not those of a child whose descriptor came an
 * instant ago. When the daemon dies, the keeper ends the children, and closes their descriptors
 * after that; what the daemon held it hands over to the next one (handover.h). When the keeper dies,
 * the daemon starts another.
 *
 * Memory that both see holds who is to be ended: a few numbers a child.
 */
#ifndef LR_FORKD_KEEPER_H
#define LR_FORKD_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/err.h"

#define KEEPER_SLOTS 4096
#define KEEPER_FDS   65536 /* no descriptor of the daemon has a higher number */

/* Once; before there are threads. */
int keeper_begin(struct lr_err *err);
/* For poll(2): it has ended. LR_NOFD: there is none. */
int keeper_pidfd(void);
bool keeper_lives(void);
/* There is none any more: another one. After a failure there is none, and it has to be tried again. */
int keeper_again(struct lr_err *err);

/* Ends this process, its descendants, and all in the cgroup (a directory, or LR_NOFD), if we die.
 * Both descriptors have to stay open until keeper_drop. The slot's number, or -ENOSPC. */
int keeper_add(pid_t pid, int pidfd, int cgroup);
void keeper_drop(int slot);

/* SIGKILL for the process, its descendants and its cgroup. Makes system calls only. */
void keeper_end(pid_t pid, int pidfd, int cgroup);
/* Nobody's memory any more. */
int keeper_is_over(int uffd);

#endif
