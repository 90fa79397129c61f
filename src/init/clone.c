/* SPDX-License-Identifier: Apache-2.0 */
/* init: the clone itself; see clone.h. */
#define LR_ROOM "clone"
#include "src/init/clone.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/sys/proc.h"
#include "src/sys/syscalls.h"

static uint64_t ignored(void)
{
	struct lr_proc_stat st;

	return lr_proc_stat_self(&st) < 0 ? LR_CLONE_MAY_BE_IGNORED
					  : st.ignored | LR_CLONE_ABOVE_STAT;
}

static pid_t clone_new(const struct lr_clone *c, bool into_cgroup, int *pidfd)
{
	struct clone_args args = {
		.flags = c->flags | CLONE_PIDFD | CLONE_CLEAR_SIGHAND |
			 (into_cgroup ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)pidfd,
		/* With CLONE_PARENT the kernel takes that of the process in between. */
		.exit_signal = c->flags & CLONE_PARENT ? 0 : SIGCHLD,
		.cgroup = into_cgroup ? (unsigned)c->cgroup : 0,
	};
	return lr_clone3(&args, sizeof(args));
}

/* Kernels before 5.5, and seccomp profiles that answer ENOSYS so that libc falls back. */
static pid_t clone_old(const struct lr_clone *c, int *pidfd)
{
	unsigned long flags = c->flags | CLONE_PIDFD | (c->flags & CLONE_PARENT ? 0 : SIGCHLD);

#if defined(__s390__)
	long r = syscall(SYS_clone, NULL, flags, pidfd, NULL, 0);
#else
	long r = syscall(SYS_clone, flags, NULL, pidfd, NULL, 0);
#endif
	return r < 0 ? -errno : (pid_t)r;
}

static int explain(int code, unsigned flags, struct lr_err *err)
{
	lr_fail(err, code, "clone");
	if (code == EPERM && flags & CLONE_NEWUSER)
		lr_err_hint(err,
			    "may this user create user namespaces? see user.max_user_namespaces "
			    "and kernel.unprivileged_userns_clone");
	else if (code == EPERM)
		lr_err_hint(err,
			    "CAP_SYS_ADMIN is needed, or a user namespace in linux.namespaces");
	else if (code == ENOSPC)
		lr_err_hint(err,
			    "a limit on namespaces is reached; see sysctl user.max_*_namespaces");
	else if (code == EINVAL)
		lr_err_hint(err, "the kernel lacks one of the namespaces in linux.namespaces");
	else if (code == EAGAIN)
		lr_err_hint(
			err,
			"a limit on processes is reached (RLIMIT_NPROC, pids.max, kernel.pid_max)");
	return -code;
}

pid_t lr_clone(struct lr_clone *c, struct lr_err *err)
{
	int pidfd = LR_NOFD;
	pid_t pid = -EAGAIN;

	/* Set before clone, so that both sides have it. */
	c->in_cgroup = c->cgroup >= 0;
	c->reset = ignored();
	if (c->in_cgroup) {
		pid = clone_new(c, true, &pidfd);
		if (pid < 0)
			lr_debug("clone into the cgroup: errno %d, joining it later", -pid);
	}
	if (pid < 0) {
		c->in_cgroup = false;
		pid = clone_new(c, false, &pidfd);
	}
	if (pid == -ENOSYS || pid == -EPERM || pid == -EINVAL) {
		c->reset = LR_CLONE_MAY_BE_IGNORED;
		pid = clone_old(c, &pidfd);
	}
	if (pid < 0)
		return explain(-pid, c->flags, err);
	c->pidfd = pid > 0 ? pidfd : LR_NOFD;
	return pid;
}

int lr_clone_check(pid_t pid, struct lr_err *err)
{
	siginfo_t info;

	if (pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
		return 0;
	return lr_refuse(err, EPROTO, "process %d is not a child of the runtime", pid);
}
