/* SPDX-License-Identifier: Apache-2.0 */
/* sys: see visit.h. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/sys/proc.h"
#include "src/sys/syscalls.h"
#include "src/sys/visit.h"

int lr_visit(int ns, int (*what)(const void *arg), const void *arg)
{
	LR_CLEANUP_WAITING const bool waiting = lr_proc_waiting();
	int status = 0;

	/* Not clone3(2), which older kernels lack, and filters refuse. */
	const pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		int r = lr_setns(ns, CLONE_NEWNS);
		_exit(r < 0 ? -r : -what(arg));
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}
