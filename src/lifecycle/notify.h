/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifecycle: sd_notify(3) for containers. With NOTIFY_SOCKET in the runtime's environment, the
 * container gets a socket of its own in /run/notify, and its "READY=1" is passed on to the caller's
 * service manager with the container's pid as MAINPID. Nothing else is passed on: a container must
 * not tell the host's manager anything else.
 */
#ifndef LR_LIFECYCLE_NOTIFY_H
#define LR_LIFECYCLE_NOTIFY_H

#include "src/lifecycle/container.h"

#define LR_NOTIFY_DIR    "notify"
#define LR_NOTIFY_TARGET "/run/notify"
#define LR_NOTIFY_ENV    "NOTIFY_SOCKET=" LR_NOTIFY_TARGET "/notify.sock"

/* create: the directory that will be mounted on LR_NOTIFY_TARGET. */
int lr_notify_prepare(const struct lr_entry *e, struct lr_err *err) LR_MUST_CHECK;

/* start and run, before the program starts: a bound socket, or -errno. */
int lr_notify_listen(const struct lr_entry *e, struct lr_err *err) LR_MUST_CHECK;

/*
 * Waits until the container says it is ready, and passes that on; or until it is gone. main_pid
 * 0: leave MAINPID as it is (the runtime stays in the foreground). Closes sock. Failures to pass
 * on are warned about: the container runs.
 */
void lr_notify_wait(int sock, pid_t main_pid, int pidfd);

/* The same in a process of its own, for callers that have to go on. Returns its pid, or -errno. */
pid_t lr_notify_spawn(int sock, int pidfd, struct lr_err *err) LR_MUST_CHECK;

#endif
