/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: staying with a process, for run and exec; internal. */
#ifndef LR_LIFECYCLE_FOREGROUND_H
#define LR_LIFECYCLE_FOREGROUND_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/err.h"
#include "src/tty/tty.h"

/*
 * Forwards signals until the process is gone, and relays the terminal whose master is sent by
 * *console (LR_NOFD: none; closed). others: also waits for processes that a subreaper gets.
 * *status: its exit status, or 128 + signal.
 */
int lr_foreground(pid_t pid, int pidfd, bool others, int *console,
		  const struct lr_tty_signals *signals, int *status,
		  struct lr_err *err) LR_MUST_CHECK;

#endif
