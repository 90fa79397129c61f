/* SPDX-License-Identifier: Apache-2.0 */
/* Children of tests: some live on meanwhile, some do what can't be undone. */
#ifndef LR_TEST_CHILD_H
#define LR_TEST_CHILD_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

__attribute__((unused)) static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* What fails there fails the test. */
__attribute__((unused)) static void in_child(void (*body)(void))
{
	int st = -1;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		body();
		fflush(stdout);
		_exit(lr_failures ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &st, 0) == pid);
	CHECK_INT(st, 0);
}

#endif
