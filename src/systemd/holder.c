/* SPDX-License-Identifier: Apache-2.0 */
/* systemd: the process that keeps a scope alive until the container is in it; see systemd.h. */
#define LR_ROOM "systemd"

#include "src/systemd/systemd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/sys/syscalls.h"

#define RELEASE_MS 5000

static _Noreturn void hold(int until)
{
	sigset_t all;
	char byte;

	/* A terminal's signals are for the container. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* Locks and sockets that others wait on: not ours to keep. */
	if (until > 0)
		(void)lr_close_range(0, (unsigned)until - 1, 0);
	(void)lr_close_range((unsigned)until + 1, ~0U, 0);
	while (read(until, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

int lr_systemd_hold(pid_t *holder, int *until, struct lr_err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return lr_fail(err, errno, "make a pipe");
	pid_t pid = fork();
	if (pid == 0) {
		lr_close(fds[1]);
		hold(fds[0]);
	}
	lr_close(fds[0]);
	*until = fds[1];
	*holder = pid;
	return pid < 0 ? lr_fail(err, errno, "fork") : 0;
}

void lr_systemd_release(pid_t *holder)
{
	/* Another thread of our caller may have forked, and its child may keep the pipe for ever. */
	if (*holder > 0) {
		LR_CLEANUP_FD int pidfd = lr_pidfd_open(*holder, 0);
		struct pollfd p = {.fd = pidfd, .events = POLLIN};

		if (pidfd >= 0 && poll(&p, 1, RELEASE_MS) == 0)
			(void)kill(*holder, SIGKILL);
	}
	while (*holder > 0 && waitpid(*holder, NULL, 0) < 0 && errno == EINTR)
		;
	*holder = 0;
}
