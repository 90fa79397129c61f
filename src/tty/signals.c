/* SPDX-License-Identifier: Apache-2.0 */
/* tty: the caller's signals as a descriptor. */
#define LR_ROOM "tty"

#include <sys/signalfd.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/tty/tty.h"

static void choose(sigset_t *set, bool forward)
{
	/* Faults of the runtime itself must stay fatal. SIGTTIN and SIGTTOU are how the shell stops
	 * a background job that wants the terminal: that job is the runtime, not the container. */
	static const int keep[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL, SIGTRAP,
				   SIGSYS,  SIGABRT, SIGTTIN, SIGTTOU};

	if (!forward) {
		sigemptyset(set);
		sigaddset(set, SIGCHLD);
		sigaddset(set, SIGWINCH);
		return;
	}
	sigfillset(set);
	for (size_t i = 0; i < LR_ARRAY_SIZE(keep); i++)
		sigdelset(set, keep[i]);
}

int lr_tty_signals_open(struct lr_tty_signals *ret, bool forward, struct lr_err *err)
{
	struct sigaction reset = {.sa_handler = SIG_DFL};
	sigset_t set;

	/* An inherited SIG_IGN would let the kernel reap our children before we have asked. */
	if (sigaction(SIGCHLD, &reset, NULL) < 0)
		return lr_fail(err, errno, "cannot reset SIGCHLD");
	choose(&set, forward);
	if (sigprocmask(SIG_BLOCK, &set, &ret->old) < 0)
		return lr_fail(err, errno, "cannot block signals");
	ret->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (ret->fd >= 0)
		return 0;
	int r = lr_fail(err, errno, "cannot open a signal descriptor");
	ret->fd = LR_NOFD;
	sigprocmask(SIG_SETMASK, &ret->old, NULL);
	return r;
}

void lr_tty_signals_close(struct lr_tty_signals *s)
{
	struct signalfd_siginfo info;

	if (s->fd < 0)
		return;
	int saved = errno;
	while (read(s->fd, &info, sizeof info) == (ssize_t)sizeof info)
		;
	s->fd = lr_close(s->fd);
	sigprocmask(SIG_SETMASK, &s->old, NULL);
	errno = saved;
}
