/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: staying with a process; see foreground.h. */
#define LR_ROOM "run"
#include "src/lifecycle/foreground.h"

#include <sys/wait.h>

int lr_foreground(pid_t pid, int pidfd, bool others, int *console,
		  const struct lr_tty_signals *signals, int *status, struct lr_err *err)
{
	struct lr_tty_session s = LR_TTY_SESSION_INIT;
	int wait_status;

	s.pid = pid;
	s.pidfd = pidfd;
	s.reap_others = others;
	s.signals = signals;
	if (*console >= 0) {
		s.master = lr_tty_recv_fd(*console, NULL, 0, err);
		*console = lr_close(*console);
		if (s.master < 0)
			return s.master;
	}
	int r = lr_tty_session_run(&s, &wait_status, err);
	if (r < 0)
		return r;
	*status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
	return 0;
}
