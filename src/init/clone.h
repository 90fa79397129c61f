/* SPDX-License-Identifier: Apache-2.0 */
/* init: the clone itself; internal to src/init. */
#ifndef LR_INIT_CLONE_H
#define LR_INIT_CLONE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/err.h"

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL /* Linux 5.5 */
#endif

/* execve resets handlers, but what the caller ignored stays ignored: nohup, supervisors, language
 * runtimes (SIGPIPE, SIGXFSZ) and threading libraries (32, 33) do that. Nobody does so to the
 * real-time signals above. */
#define LR_CLONE_MAY_BE_IGNORED ((UINT64_C(1) << 33) - 1)
#define LR_CLONE_ABOVE_STAT     (UINT64_C(3) << 31) /* /proc/PID/stat shows 31 of them */

struct lr_clone {
	unsigned flags; /* CLONE_NEW* (and CLONE_PARENT) */
	int cgroup;     /* v2 directory to be born in, or LR_NOFD */
	int pidfd;      /* out, parent: LR_NOFD where the kernel has none */
	bool in_cgroup; /* out, both: the child was born in it */
	uint64_t reset; /* out, both: signals (n: bit n - 1) that may not be at their default in the
			   child: see lr_process_reset_signals */
};

/*
 * As fork(2): 0 in the child, its pid in the parent, or -errno. Falls back to clone(2) where clone3
 * is missing or filtered, and to a plain birth where the kernel refuses to be born into the cgroup.
 */
pid_t lr_clone(struct lr_clone *c, struct lr_err *err) LR_MUST_CHECK;

/*
 * A process in between says which pid its sister has, from inside namespaces of others, so it is
 * not believed: -EPROTO unless that is a child of ours. We will signal it and wait for it.
 */
int lr_clone_check(pid_t pid, struct lr_err *err) LR_MUST_CHECK;

#endif
