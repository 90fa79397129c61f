/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: a sister's number is believed only if it is a child of ours. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/init/clone.h"
#include "tests/unit/test.h"

TEST(only_children_of_ours_are_signalled)
{
	struct lr_err err = {0};
	const pid_t others[] = {0, -1, 1, getpid(), getppid(), 0x7fffffff};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		CHECK_INT(lr_clone_check(others[i], &err), -EPROTO);
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	CHECK_INT(lr_clone_check(pid, &err), 0);
	kill(pid, SIGKILL);
	/* Also one that has died already; it stays to be waited for. */
	siginfo_t info;
	CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	CHECK_INT(lr_clone_check(pid, &err), 0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_INT(lr_clone_check(pid, &err), -EPROTO);
}
