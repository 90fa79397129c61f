/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook: starting the process. The child shares the caller's memory until it executes the hook
 * (CLONE_VM | CLONE_VFORK, as vfork(2), but on a stack of its own), which costs a third of a fork
 * and lets it say directly what went wrong.
 *
 * Between clone and exec the child must not run any of the caller's signal handlers: all signals
 * are blocked across the clone, and the child makes every handler the default before it unblocks.
 */
#define LR_ROOM "hook"
#include <fcntl.h>
#include <sched.h>
#include <stdalign.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/hook/internal.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

#define STACK_SIZE 32768

/* close_range(2) is Linux 5.9. */
static void close_from(unsigned first)
{
	struct rlimit lim;

	if (lr_close_range(first, ~0U, 0) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur > 1048576)
		lim.rlim_cur = 1048576;
	for (unsigned fd = first; fd < lim.rlim_cur; fd++)
		close((int)fd);
}

static int place_fds(const int fds[3])
{
	int high[3];

	/* The caller may have been started without standard descriptors. */
	for (int i = 0; i < 3; i++) {
		high[i] = fds[i] < 3 ? fcntl(fds[i], F_DUPFD, 3) : fds[i];
		if (high[i] < 0)
			return -1;
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(high[i], i) < 0)
			return -1;
	}
	close_from(3);
	return 0;
}

/* Runs in the caller's memory, on its own stack: no ASan, which would take it for corruption. */
__attribute__((no_sanitize("address"))) static int child(void *arg)
{
	struct lr_hook_job *job = arg;
	const struct oci_hook *h = job->hook;
	char *own_name[] = {(char *)h->path, NULL};
	const char *const *given = h->env.v ? h->env.v : job->opts->env;
	sigset_t none;

	setpgid(0, 0); /* so that a timeout ends all of it */
	for (int sig = 1; sig < NSIG; sig++)
		(void)lr_signal_default(sig);
	if (place_fds(job->fds) < 0) {
		job->failed_step = "placing its descriptors";
		goto fail;
	}
	if (job->opts->dir && chdir(job->opts->dir) < 0) {
		job->failed_step = "entering its working directory";
		goto fail;
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (job->opts->become) {
		int r = job->opts->become(job->opts->arg, &job->why);
		if (r < 0) {
			job->failed_step = "becoming a process of the container";
			errno = -r;
			goto fail;
		}
	}
	job->failed_step = "executing it";
	execve(h->path, h->args.n ? (char *const *)h->args.v : own_name,
	       given ? (char *const *)given : environ);
fail:
	job->error = errno;
	lr_proc_end(127);
}

int lr_hook_spawn(struct lr_hook_job *job)
{
	alignas(16) char stack[STACK_SIZE];
	int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
	sigset_t all, old;

	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &old) < 0)
		return -errno;
	pid_t pid = clone(child, stack + sizeof(stack), flags | CLONE_PIDFD, job, &job->pidfd);
	if (pid < 0 && errno == EINVAL) { /* CLONE_PIDFD is Linux 5.2 */
		job->pidfd = LR_NOFD;
		pid = clone(child, stack + sizeof(stack), flags, job);
	}
	int r = pid < 0 ? -errno : 0;
	sigprocmask(SIG_SETMASK, &old, NULL);
	job->pid = pid;
	return r;
}
