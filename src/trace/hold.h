/* SPDX-License-Identifier: Apache-2.0 */
/* trace: what the room's files share; see trace.h. */
#ifndef LR_TRACE_HOLD_H
#define LR_TRACE_HOLD_H

#include <sys/types.h>

#include "src/base/err.h"

/* Waits until it stops, for half a minute at most: a hostile program may see to it that it never
 * does (-ETIMEDOUT). -ESRCH: it has ended, or is on its way out. */
int lr_trace_wait_long(pid_t tid, int *status, struct lr_err *err);
/* 1: it has stopped; 0: not yet. */
int lr_trace_glance(pid_t tid, int *status, struct lr_err *err);

/* seize.c. -EPERM: it may not be traced. -EBUSY: who executes a program in its process does not come to an end. */
int lr_trace_seize(pid_t tid, struct lr_err *err);

#endif
