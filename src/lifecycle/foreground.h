/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: staying with a process, for run and exec; internal. */
#ifndef LR_LIFECYCLE_FOREGROUND_H
#define LR_LIFECYCLE_FOREGROUND_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/err.h"
#include "src/tty/tty.h"

/*
 * Until the process is gone: forwards signals, relays the terminal whose master comes by *console
 * (LR_NOFD: none; closed). others: waits for what comes to a subreaper, too. *status: its exit
 * status, or 128 + signal.
 */
int lr_foreground(pid_t pid, int pidfd, bool others, int *console,
		  const struct lr_tty_signals *signals, int *status,
		  struct lr_err *err) LR_MUST_CHECK;

#endif
