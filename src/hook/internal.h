/* SPDX-License-Identifier: Apache-2.0 */
/* hook: what its files share among themselves. */
#ifndef LR_HOOK_INTERNAL_H
#define LR_HOOK_INTERNAL_H

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "src/hook/hook.h"

/* One hook on its way. */
struct lr_hook_job {
	const struct oci_hook *hook;
	const char *kind;
	size_t number; /* from 0 */
	const struct lr_hook_opts *opts;
	int fds[3]; /* its standard descriptors */

	pid_t pid;
	int pidfd; /* LR_NOFD: the kernel has none */
	int error; /* errno of what failed before the hook's first instruction */
	const char *failed_step;
	struct lr_err why; /* of opts->become */
	int status;        /* of waitpid(2) */
	bool timed_out;
};

/* The end of what a hook printed. */
struct lr_hook_output {
	int fd; /* to read from */
	int tee_fd;
	size_t n;
	char buf[1024 + 1];
};

/* Starts it; returns when it runs or could not (job->error). 0 or -errno. */
int lr_hook_spawn(struct lr_hook_job *job) LR_MUST_CHECK;

/* Reads its output until it ends, or ends it at its timeout; reaps it. 0 or -errno. */
int lr_hook_wait(struct lr_hook_job *job, struct lr_hook_output *o) LR_MUST_CHECK;

#endif
