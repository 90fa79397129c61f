/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: births in the caller's memory: for `run`, which copies nothing that way, and for a library
 * in a program with threads and gigabytes.
 *
 * A clone that copies the page tables of a parent with 2 GB takes 30 ms, one that shares them (as
 * vfork(2) does) 0.05 ms. The child runs the same stages while this thread, and no other, waits for
 * its execve. So it works alone: nobody answers it, what it has to say it writes where both see it,
 * and it writes itself into the record. It changes copies of plans only, and allocates nothing.
 *
 * What is the memory's and not the process's:
 *   - PR_SET_DUMPABLE: off before the clone, as in a pid namespace that others share they see the
 *     child from its first moment on. It is set back when the last birth of the process is over,
 *     since the child's setuid(2) clears it, too, and others of the container's user could look
 *     into our memory until then.
 *   - signal handlers: none runs in the child. All signals are blocked, if they are not anyway, and
 *     CLONE_CLEAR_SIGHAND (Linux 5.5) takes the handlers away.
 *   - the OOM killer: it kills all that share a memory, but passes over a process that is in vfork.
 */
#ifndef LR_INIT_SHARED_H
#define LR_INIT_SHARED_H

#include "src/init/clone.h"
#include "src/init/init.h"

/*
 * Nobody was born: this kernel, machine or plan has no births in our memory. Take the usual way.
 * Not an errno: a child's own error is never taken for it.
 */
#define LR_SHARED_NOT_HERE 1

/*
 * fn(arg) in a child that shares our memory; returns when it executes a program or ends. Its pid,
 * and then lr_shared_over is to be called; 0: LR_SHARED_NOT_HERE. *pid is set for the child.
 */
pid_t lr_clone_shared(struct lr_clone *c, const struct lr_init_shared *shared, void (*fn)(void *),
		      void *arg, pid_t *pid) LR_MUST_CHECK;
/*
 * Our memory may be looked at again, as far as it could before. Waits until the child no longer has
 * it: the kernel wakes us a moment before that. pid 0: that is known, as the page has executed the
 * program or the child was waited for.
 */
void lr_shared_over(pid_t pid);

#endif
