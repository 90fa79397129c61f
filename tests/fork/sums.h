/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of every page of a process, by /proc/PID/maps and mem alone: "address sum" a line. */
#ifndef LR_FORK_SUMS_H
#define LR_FORK_SUMS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

int sums_write(FILE *f, pid_t pid);
/* How many pages of the process differ from what the file says; the first few are told on
 * standard error. *all: how many were compared; lazy: some
 * pages can't be looked at yet. */
long sums_compare(FILE *f, pid_t pid, bool lazy, long *all);

#endif
